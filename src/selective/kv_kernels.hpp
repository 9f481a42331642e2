// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The insertions of the study's key-value store (research/slpmt/workloads) as plain code in
// sections, without one annotation, as kernels.hpp has those of the kernels: what the compiler
// makes of their stores by itself. Its comments name stores in the same way.
//
// Source: SLPMT, Table II; the maps of PMDK's examples: B-tree, crit-bit tree, radix tree.
#pragma once

#include "kernels.hpp"

#include <bit>

namespace kernels {

/// Null: the pool is full.
inline word* make_value(word key, word words) noexcept {
    auto* value = hf::make_array<word>(words);
    if (value == nullptr) return nullptr;
    for (word i = 0; i < words; ++i)
        value[i] = value_word(key, i); // kv-btree, kv-ctree, kv-rtree: value bytes
    return value;
}

namespace btree {

constexpr word order = 8, items_max = order - 1, middle = items_max / 2;
struct node {
    word count;
    word keys[items_max];
    word* values[items_max];
    node* children[order]; // the first is null in a leaf
};
struct tree {
    node* root;
};

inline void put_item(node* into, word at, word key, word* value) noexcept {
    for (word i = into->count; i > at; --i) {
        into->keys[i] = into->keys[i - 1];     // kv-btree: key
        into->values[i] = into->values[i - 1]; // kv-btree: value
    }
    into->keys[at] = key;     // kv-btree: key
    into->values[at] = value; // kv-btree: value
    into->count += 1;         // kv-btree: count
}

/// The upper half of a full node's items, in a node of its own; null: the pool is full.
inline node* split_off(node* full) noexcept {
    auto* right = hf::make_array<node>(1);
    if (right == nullptr) return nullptr;
    for (word i = middle + 1; i < items_max; ++i) {
        right->keys[i - middle - 1] = full->keys[i];     // kv-btree: new node's key
        right->values[i - middle - 1] = full->values[i]; // kv-btree: new node's value
    }
    for (word i = middle + 1; i < order; ++i)
        right->children[i - middle - 1] = full->children[i]; // kv-btree: new node's child
    right->count = items_max - middle - 1;                   // kv-btree: new node's count
    full->count = middle;                                    // kv-btree: count
    return right;
}

inline bool split(node* parent, word at, node* full) noexcept {
    node* right = split_off(full);
    if (right == nullptr) return false;
    for (word i = parent->count + 1; i > at + 1; --i)
        parent->children[i] = parent->children[i - 1]; // kv-btree: child
    parent->children[at + 1] = right;                  // kv-btree: child
    put_item(parent, at, full->keys[middle], full->values[middle]);
    return true;
}

HF_TXFUNC inline bool insert(tree* in, word key, word value_words) noexcept {
    word* value = make_value(key, value_words);
    if (value == nullptr) return false;
    node* at = in->root;
    if (at == nullptr) {
        auto* first = hf::make_array<node>(1);
        if (first == nullptr) return false;
        first->keys[0] = key;                                          // kv-btree: new node's key
        first->values[0] = value;                                      // kv-btree: new node's value
        for (word i = 0; i < order; ++i) first->children[i] = nullptr; // kv-btree: new node's child
        first->count = 1;                                              // kv-btree: new node's count
        in->root = first;                                              // kv-btree: root
        return true;
    }
    if (at->count == items_max) {
        auto* top = hf::make_array<node>(1);
        node* right = split_off(at);
        if (top == nullptr || right == nullptr) return false;
        top->keys[0] = at->keys[middle];     // kv-btree: new node's key
        top->values[0] = at->values[middle]; // kv-btree: new node's value
        top->children[0] = at;               // kv-btree: new node's child
        top->children[1] = right;            // kv-btree: new node's child
        top->count = 1;                      // kv-btree: new node's count
        in->root = top;                      // kv-btree: root
        at = top;
    }
    for (;;) {
        word place = 0;
        while (place < at->count && at->keys[place] < key) ++place;
        node* child = at->children[place];
        if (child == nullptr) return put_item(at, place, key, value), true;
        if (child->count != items_max) at = child;
        else if (!split(at, place, child)) return false; // and look again
    }
}

} // namespace btree

namespace ctree {

struct node;
struct entry {
    word key;    // 0: an inner node is below; keys are odd
    void* below; // or the key's value
};
struct node {
    word bit;
    entry entries[2];
};

inline entry* below(entry* at, word key) noexcept {
    auto* inner = static_cast<node*>(at->below);
    return &inner->entries[key >> inner->bit & 1];
}

HF_TXFUNC inline bool insert(entry* top, word key, word value_words) noexcept {
    word* value = make_value(key, value_words);
    if (value == nullptr) return false;
    if (top->key == 0 && top->below == nullptr) { // the tree is empty
        top->key = key;                           // kv-ctree: key
        top->below = value;                       // kv-ctree: entry
        return true;
    }
    auto* one = hf::make_array<node>(1);
    if (one == nullptr) return false;
    const entry* there = top;
    while (there->key == 0) there = below(const_cast<entry*>(there), key);
    const auto bit = static_cast<word>(63 - std::countl_zero(key ^ there->key));
    entry* at = top;
    while (at->key == 0 && static_cast<node*>(at->below)->bit > bit) at = below(at, key);
    const word own = key >> bit & 1;
    one->bit = bit;                          // kv-ctree: new node's bit
    one->entries[own].key = key;             // kv-ctree: new node's key
    one->entries[own].below = value;         // kv-ctree: new node's entry
    one->entries[1 - own].key = at->key;     // kv-ctree: new node's key
    one->entries[1 - own].below = at->below; // kv-ctree: new node's entry
    at->key = 0;                             // kv-ctree: key
    at->below = one;                         // kv-ctree: entry
    return true;
}

} // namespace ctree

namespace rtree {

constexpr word key_bytes = 8, slots = 256;
struct node {
    node* slot[slots];
    word* value;
    word fragment_bytes;
    word fragment; // its first byte is the lowest
};
struct tree {
    node* root;
};

inline word byte_of(word key, word i) { return key >> (8 * (key_bytes - 1 - i)) & 255; }
inline word first_bytes(word fragment, word count) {
    return count >= 8 ? fragment : fragment & ((word{1} << 8 * count) - 1);
}

inline node* make_node(word fragment, word bytes, word* value) noexcept {
    auto* one = hf::make_array<node>(1);
    if (one == nullptr) return nullptr;
    for (word i = 0; i < slots; ++i) one->slot[i] = nullptr; // kv-rtree: cleared slot
    one->value = value;                                      // kv-rtree: new node's value
    one->fragment_bytes = bytes;                             // kv-rtree: new node's fragment
    one->fragment = fragment;                                // kv-rtree: new node's fragment
    return one;
}

inline node* make_leaf(word key, word depth, word* value) noexcept {
    word fragment = 0;
    for (word i = depth; i < key_bytes; ++i) fragment |= byte_of(key, i) << 8 * (i - depth);
    return make_node(fragment, key_bytes - depth, value);
}

inline void put_link(tree* in, node* parent, word slot, node* to) noexcept {
    if (parent != nullptr) parent->slot[slot] = to; // kv-rtree: slot
    else in->root = to;                             // kv-rtree: root
}

HF_TXFUNC inline bool insert(tree* in, word key, word value_words) noexcept {
    word* value = make_value(key, value_words);
    if (value == nullptr) return false;
    node *parent = nullptr, *at = in->root;
    word slot = 0, depth = 0;
    while (at != nullptr) {
        const word bytes = at->fragment_bytes, fragment = at->fragment;
        word same = 0;
        while (same < bytes && (fragment >> 8 * same & 255) == byte_of(key, depth + same)) ++same;
        depth += same;
        if (same < bytes) { // a fork within the fragment: a node above keeps what both have
            node* fork = make_node(first_bytes(fragment, same), same, nullptr);
            node* leaf = make_leaf(key, depth + 1, value);
            if (fork == nullptr || leaf == nullptr) return false;
            fork->slot[fragment >> 8 * same & 255] = at; // kv-rtree: new node's slot
            fork->slot[byte_of(key, depth)] = leaf;      // kv-rtree: new node's slot
            at->fragment = bytes - same > 1 ? fragment >> 8 * (same + 1) : 0; // kv-rtree: fragment
            at->fragment_bytes = bytes - same - 1;                            // kv-rtree: fragment
            put_link(in, parent, slot, fork);
            return true;
        }
        parent = at;
        slot = byte_of(key, depth++);
        at = at->slot[slot];
    }
    node* leaf = make_leaf(key, depth, value);
    if (leaf == nullptr) return false;
    put_link(in, parent, slot, leaf);
    return true;
}

} // namespace rtree

} // namespace kernels
