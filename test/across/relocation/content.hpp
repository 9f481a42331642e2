// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the pools of the relocation tests hold, and how it is filled and checked: by code built
// relocatable and, from the same source, by ordinary code.
#pragma once

#include <structures/avl_tree.hpp>
#include <structures/bptree.hpp>
#include <structures/hash_map.hpp>
#include <structures/rb_tree.hpp>
#include <structures/skip_list.hpp>

#include <holdfast/engines.hpp>
#include <holdfast/pool.hpp>
#include <holdfast/txfunc.hpp>

#include <array>
#include <cstdint>

// Not in the structures' namespace: sections have one name in both builds.
namespace relocation_test {

struct value {
    std::array<std::uint64_t, 32> words; // large: the trees keep it apart from the node
    bool operator==(const value&) const = default;
};
inline value value_of(std::uint64_t key) {
    value made;
    for (std::uint64_t& word : made.words)
        word = key = key * 6364136223846793005ULL + 1442695040888963407ULL;
    return made;
}

// In no order: trees rotate both ways.
inline std::uint64_t key_of(std::uint64_t i) { return i * 0x9e3779b97f4a7c15ULL; }

struct item {
    item* next;
    std::uint64_t number;
    item* before;
};

struct content {
    hf::structures::hash_map<std::uint64_t, value> hash;
    hf::structures::rb_tree<std::uint64_t, value> red_black;
    hf::structures::avl_tree<std::uint64_t, value> avl;
    hf::structures::skip_list<std::uint64_t, value> skips;
    hf::structures::bptree<std::uint64_t, value> leaves;
    item* first;
    std::uint64_t links;
    void* spare[4];
};

/// A doubly linked list, changed by a section whose arguments are pointers.
HF_TXFUNC inline void push(content* in, std::uint64_t number) noexcept {
    auto* fresh = static_cast<item*>(hf_alloc(sizeof(item)));
    fresh->next = in->first;
    fresh->number = number;
    fresh->before = nullptr;
    if (in->first != nullptr) in->first->before = fresh;
    in->links += 1;
    hf::crash_point("push");
    in->first = fresh;
}

/// The same as a section whose arguments hold addresses among their bytes.
struct place {
    item* first;
    std::uint64_t number;
    std::uint64_t again; // with it the struct is too large to be passed in registers
};
HF_TXFUNC inline void push_at(content* in, place where) noexcept {
    auto* fresh = static_cast<item*>(hf_alloc(sizeof(item)));
    fresh->next = where.first;
    fresh->number = where.number;
    fresh->before = nullptr;
    if (where.first != nullptr) where.first->before = fresh;
    in->links += 1;
    if (where.again == 0) hf::crash_point("push_at");
    else hf::crash_point("push_at_again");
    in->first = fresh;
}

inline bool fill(content* in, std::uint64_t from, std::uint64_t to) {
    bool all = true;
    for (std::uint64_t i = from; i < to; ++i) {
        const std::uint64_t key = key_of(i);
        const value v = value_of(i);
        all = in->hash.insert(key, v) && in->red_black.insert(key, v) && in->avl.insert(key, v) &&
              in->skips.insert(key, v) && in->leaves.insert(key, v) && all;
        push(in, i);
    }
    return all;
}

template <class Map> bool holds(const Map& map, std::uint64_t count) {
    bool all = map.check() && map.size() == count;
    for (std::uint64_t i = 0; i < count; ++i) {
        value found{};
        all = map.find(key_of(i), &found) && found == value_of(i) && all;
    }
    return all;
}

inline bool holds_list(const content* in, std::uint64_t count) {
    if (in->links != count) return false;
    const item* before = nullptr;
    for (const item* each = in->first; each != nullptr; before = each, each = each->next)
        if (count-- == 0 || each->number != count || each->before != before) return false;
    return count == 0;
}

/// 'maps' keys from 0 in every structure, as many links as 'links'.
inline bool holds_all(const content* in, std::uint64_t maps, std::uint64_t links) {
    return holds(in->hash, maps) && holds(in->red_black, maps) && holds(in->avl, maps) &&
           holds(in->skips, maps) && holds(in->leaves, maps) && holds_list(in, links);
}

inline hf::open_options options_for(hf::mode mode) {
    hf::open_options options;
    options.layout = "relocation_test/1";
    options.create_bytes = 16 << 20;
    options.mode = mode;
    options.salvage = true; // copies are made of pools left open, while nobody works on them
    options.engines = hf::engines_of_build();
    return options;
}

} // namespace relocation_test
