// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The insertions of research/slpmt/workloads as plain code in sections, without one annotation:
// what the compiler makes of their stores by itself. A comment '// STRUCTURE: NAME' says which
// store of the simulated workload a line is; compiler/test/patterns counts which of those it needs
// no log for.
//
// As there, keys are new, values are words that follow from the key, and nothing is erased.
// Source: SLPMT, Table II; STAMP's hashtable, red-black tree and heap.
#pragma once

#include <holdfast/alloc.hpp>
#include <holdfast/txfunc.hpp>

#include <algorithm>
#include <cstdint>

namespace kernels {

using word = std::uint64_t;

constexpr word value_word(word key, word i) {
    return (key ^ (i + 1) * 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9;
}

struct pair {
    word key;
    word* value;
};

namespace hashtable {

struct node {
    pair* data;
    node* next;
};
struct chain {
    node* first;
    word size;
};
struct table {
    chain** slots;
    word slot_count, size;
    chain** old_slots;
    word old_count;
    pair* new_pair;
};
constexpr word slots_at_first = 16, pairs_per_slot = 3, growth = 3;

inline word slot_of(word key, word count) { return (key * 0x9e3779b97f4a7c15 >> 20) % count; }

/// Null: the pool is full.
inline chain** make_slots(word count) noexcept {
    auto** slots = hf::make_array<chain*>(count);
    auto* chains = hf::make_array<chain>(count);
    if (slots == nullptr || chains == nullptr) return nullptr;
    for (word i = 0; i < count; ++i) {
        slots[i] = &chains[i];     // hashtable: new slot
        chains[i].first = nullptr; // hashtable: new header
        chains[i].size = 0;        // hashtable: new header
    }
    return slots;
}

HF_TXFUNC inline bool create(table* in) noexcept {
    chain** slots = make_slots(slots_at_first);
    if (slots == nullptr) return false;
    in->slots = slots;               // hashtable: table slots
    in->slot_count = slots_at_first; // hashtable: table slot count
    in->size = 0;                    // hashtable: table size
    in->old_slots = nullptr;         // hashtable: old table
    return true;
}

/// Nodes are made anew: the old table stays as it is.
inline bool resize(table* in, pair* added) noexcept {
    chain** old = in->slots;
    const word old_count = in->slot_count, count = old_count * growth;
    chain** slots = make_slots(count);
    if (slots == nullptr) return false;
    for (word i = 0; i < old_count; ++i)
        for (node* at = old[i]->first; at != nullptr; at = at->next) {
            auto* moved = hf::make_array<node>(1);
            if (moved == nullptr) return false;
            chain* to = slots[slot_of(at->data->key, count)];
            moved->data = at->data;  // hashtable: moved node
            moved->next = to->first; // hashtable: moved node
            to->first = moved;       // hashtable: new header
            to->size += 1;           // hashtable: new header
        }
    in->slots = slots;         // hashtable: table slots
    in->slot_count = count;    // hashtable: table slot count
    in->old_slots = old;       // hashtable: old table
    in->old_count = old_count; // hashtable: old slot count
    in->new_pair = added;      // hashtable: new pair
    return true;
}

HF_TXFUNC inline bool insert(table* in, word key, word value_words) noexcept {
    auto* value = hf::make_array<word>(value_words);
    auto* added = hf::make_array<pair>(1);
    auto* one = hf::make_array<node>(1);
    if (value == nullptr || added == nullptr || one == nullptr) return false;
    for (word i = 0; i < value_words; ++i) value[i] = value_word(key, i); // hashtable: value bytes
    added->key = key;                                                     // hashtable: pair key
    added->value = value;                                  // hashtable: value pointer
    if (in->old_slots != nullptr) in->old_slots = nullptr; // hashtable: old table
    if (in->size + 1 > pairs_per_slot * in->slot_count && !resize(in, added)) return false;
    chain* to = in->slots[slot_of(key, in->slot_count)];
    one->data = added;     // hashtable: chain node data
    one->next = to->first; // hashtable: chain node next
    to->first = one;       // hashtable: chain first
    to->size += 1;         // hashtable: chain size
    in->size += 1;         // hashtable: table size
    return true;
}

} // namespace hashtable

namespace rbtree {

constexpr word black = 0, red = 1;
struct node {
    word key;
    word* value;
    node *left, *right, *parent;
    word colour;
};
struct tree {
    node* root;
};
using side = node* node::*;
constexpr side sides[2] = {&node::left, &node::right};

inline void replace_child(tree* in, node* parent, node* old, node* with) noexcept {
    if (parent == nullptr) in->root = with;            // rbtree: root
    else if (parent->left == old) parent->left = with; // rbtree: child
    else parent->right = with;                         // rbtree: child
}

/// Lifts the right child of 'top'.
inline void rotate_left(tree* in, node* top) noexcept {
    node *lifted = top->right, *inner = lifted->left, *above = top->parent;
    top->right = inner;                        // rbtree: child
    if (inner != nullptr) inner->parent = top; // rbtree: rotated parent
    lifted->parent = above;                    // rbtree: rotated parent
    replace_child(in, above, top, lifted);
    lifted->left = top;   // rbtree: child
    top->parent = lifted; // rbtree: rotated parent
}

/// Lifts the left child of 'top'.
inline void rotate_right(tree* in, node* top) noexcept {
    node *lifted = top->left, *inner = lifted->right, *above = top->parent;
    top->left = inner;                         // rbtree: child
    if (inner != nullptr) inner->parent = top; // rbtree: rotated parent
    lifted->parent = above;                    // rbtree: rotated parent
    replace_child(in, above, top, lifted);
    lifted->right = top;  // rbtree: child
    top->parent = lifted; // rbtree: rotated parent
}

inline void balance(tree* in, node* at) noexcept {
    while (at->parent != nullptr && at->parent->colour == red) {
        node *parent = at->parent, *above = parent->parent;
        const bool right = above->right == parent; // where the parent lies
        node* uncle = right ? above->left : above->right;
        if (uncle != nullptr && uncle->colour == red) {
            parent->colour = black; // rbtree: colour
            uncle->colour = black;  // rbtree: colour
            above->colour = red;    // rbtree: colour
            at = above;
            continue;
        }
        if (at == (right ? parent->left : parent->right)) {
            if (right) rotate_right(in, parent);
            else rotate_left(in, parent);
            parent = at;
        }
        parent->colour = black; // rbtree: colour
        above->colour = red;    // rbtree: colour
        if (right) rotate_left(in, above);
        else rotate_right(in, above);
        break;
    }
    if (in->root->colour == red) in->root->colour = black; // rbtree: colour
}

HF_TXFUNC inline bool insert(tree* in, word key, word value_words) noexcept {
    node* parent = nullptr;
    for (node* at = in->root; at != nullptr; at = at->key < key ? at->right : at->left) parent = at;
    auto* value = hf::make_array<word>(value_words);
    auto* one = hf::make_array<node>(1);
    if (value == nullptr || one == nullptr) return false;
    for (word i = 0; i < value_words; ++i) value[i] = value_word(key, i); // rbtree: value bytes
    one->key = key;                                                       // rbtree: key
    one->value = value;                                                   // rbtree: value pointer
    one->left = nullptr;                                                  // rbtree: left
    one->right = nullptr;                                                 // rbtree: right
    one->parent = parent;                                                 // rbtree: new parent
    one->colour = red;                                                    // rbtree: colour
    if (parent == nullptr) in->root = one;                                // rbtree: root
    else if (parent->key < key) parent->right = one;                      // rbtree: child
    else parent->left = one;                                              // rbtree: child
    balance(in, one);
    return true;
}

} // namespace rbtree

namespace heap {

struct all {
    pair** elements;
    word size;
};
constexpr word capacity = 4096;

HF_TXFUNC inline bool create(all* in) noexcept {
    auto** elements = hf::make_array<pair*>(capacity);
    if (elements == nullptr) return false;
    in->elements = elements; // heap: elements
    in->size = 0;            // heap: size
    return true;
}

HF_TXFUNC inline bool insert(all* in, word key, word value_words) noexcept {
    auto* value = hf::make_array<word>(value_words);
    auto* one = hf::make_array<pair>(1);
    if (value == nullptr || one == nullptr || in->size == capacity) return false;
    for (word i = 0; i < value_words; ++i) value[i] = value_word(key, i); // heap: value bytes
    one->key = key;                                                       // heap: pair key
    one->value = value;                                                   // heap: value pointer
    pair** array = in->elements;
    word at = in->size;
    in->size = at + 1; // heap: size
    array[at] = one;   // heap: element
    while (at != 0) {
        const word parent = (at - 1) / 2;
        pair* above = array[parent];
        if (above->key > key) break;
        array[parent] = one; // heap: element
        array[at] = above;   // heap: element
        at = parent;
    }
    return true;
}

} // namespace heap

namespace avl {

struct node {
    word key;
    word* value;
    node *left, *right;
    word height;
};
struct tree {
    node* root;
};
constexpr unsigned depth_max = 64;

inline word height_of(const node* at) { return at != nullptr ? at->height : 0; }
inline void set_height(node* at) noexcept {
    const word height = 1 + std::max(height_of(at->left), height_of(at->right));
    if (at->height != height) at->height = height; // avl: height
}
inline node* rotate_left(node* top) noexcept {
    node* lifted = top->right;
    top->right = lifted->left; // avl: child
    lifted->left = top;        // avl: child
    set_height(top);
    set_height(lifted);
    return lifted;
}
inline node* rotate_right(node* top) noexcept {
    node* lifted = top->left;
    top->left = lifted->right; // avl: child
    lifted->right = top;       // avl: child
    set_height(top);
    set_height(lifted);
    return lifted;
}

/// Returns the subtree's top.
inline node* balance(node* at) noexcept {
    const word of_left = height_of(at->left), of_right = height_of(at->right);
    if (of_left > of_right + 1) {
        if (height_of(at->left->left) < height_of(at->left->right))
            at->left = rotate_left(at->left); // avl: child
        return rotate_right(at);
    }
    if (of_right > of_left + 1) {
        if (height_of(at->right->right) < height_of(at->right->left))
            at->right = rotate_right(at->right); // avl: child
        return rotate_left(at);
    }
    set_height(at);
    return at;
}

HF_TXFUNC inline bool insert(tree* in, word key, word value_words) noexcept {
    node** way[depth_max]; // the links from the root down
    unsigned depth = 0;
    for (node** to = &in->root;; to = (*to)->key < key ? &(*to)->right : &(*to)->left) {
        if (depth == depth_max) return false;
        way[depth++] = to;
        if (*to == nullptr) break;
    }
    auto* value = hf::make_array<word>(value_words);
    auto* one = hf::make_array<node>(1);
    if (value == nullptr || one == nullptr) return false;
    for (word i = 0; i < value_words; ++i) value[i] = value_word(key, i); // avl: value bytes
    one->key = key;                                                       // avl: key
    one->value = value;                                                   // avl: value pointer
    one->left = nullptr;                                                  // avl: left
    one->right = nullptr;                                                 // avl: right
    one->height = 1;                                                      // avl: height
    *way[--depth] = one;                                                  // avl: child
    while (depth != 0) {
        node** to = way[--depth];
        node* top = balance(*to);
        if (*to != top) *to = top; // avl: child
    }
    return true;
}

} // namespace avl

} // namespace kernels
