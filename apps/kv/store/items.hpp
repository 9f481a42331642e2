// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The contents of holdfast-kv's pool: 256 hash tables of items, a lock each, and the state that
// flush_all left. Ordinary objects and native pointers; docs/guide/kv.md shows the picture.
//
// (1) An item is one block, complete before a section links it. Afterwards only 'exptime', 'marks',
//     'cas' and, for a number that keeps its length, the value change, in a section under the
//     writer's lock.
// (2) The instance of a key is the upper byte of its hash; the table uses the bits below.
// (3) 'last_access' and 'fetched' are hints, for eviction and for clients that ask: written by
//     readers outside any section, never logged, and any value that a crash leaves there is a good
//     one.
// (4) An instance is followed when this process has looked through it (looking.cpp): until then its
//     pointers, lengths and counts may be anything.
#pragma once

#include <structures/hash_table.hpp>

#include <holdfast/lock.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace hf::kv {

struct item {
    structures::hash_node node;
    std::uint64_t cas;         // unique for this content; grows over restarts
    std::uint32_t flags;       // the client's, opaque
    std::uint32_t exptime;     // Unix second from which the item is gone; 0: never
    std::uint32_t stored;      // Unix second in which it was stored
    std::uint32_t last_access; // Unix second, see (3)
    std::uint32_t value_bytes;
    std::uint16_t key_bytes;
    std::uint8_t marks;   // mark_stale and its like (face.hpp)
    std::uint8_t fetched; // whether it was read since it was stored, see (3)
    // key bytes, then value bytes

    char* bytes() noexcept { return reinterpret_cast<char*>(this + 1); }
    const char* bytes() const noexcept { return reinterpret_cast<const char*>(this + 1); }
    std::string_view key() const noexcept { return {bytes(), key_bytes}; }
    std::string_view value() const noexcept { return {bytes() + key_bytes, value_bytes}; }
};
static_assert(sizeof(item) == 48 && offsetof(item, node) == 0 && offsetof(item, cas) == 16);
static_assert(std::is_trivially_copyable_v<item> && std::is_standard_layout_v<item>);

constexpr std::size_t item_bytes(std::size_t key_bytes, std::size_t value_bytes) noexcept {
    return sizeof(item) + key_bytes + value_bytes;
}

inline constexpr unsigned instance_count = 256;

/// A part of the keys: its own lock, its own table, lines of its own.
struct alignas(64) instance {
    hf::shared_mutex lock;
    structures::hash_table table;
};

/// Root object; zero-filled is a store that was never used.
struct kv_root {
    std::uint64_t seed;        // of the key hash; 0: not chosen yet
    std::uint64_t flush_cas;   // items with this cas or a smaller one are gone
    std::uint64_t flush_times; // [due:32][before:32], see flush_state (face.hpp)
    std::uint64_t reserved[5];
    instance instances[instance_count];
};
static_assert(offsetof(kv_root, instances) == 64);

inline instance& instance_of(kv_root& root, std::uint64_t hash) noexcept {
    return root.instances[hash >> 56];
}

} // namespace hf::kv
