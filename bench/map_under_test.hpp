// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the hash-map benchmark drives: one interface over our map, built once per engine, and over
// the peers. The virtual call costs every one of them the same nanosecond or two.
//
// Fairness: same keys, values and locks; chained peers get the bucket arrays that our map reaches
// at its full size, before the clock starts; files are prefaulted for all or for none.
#pragma once

#include <holdfast/pool.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace hf::bench {

struct map_options {
    std::string directory = "/dev/shm"; // for pool files
    hf::mode mode = hf::mode::process;
    std::uint64_t keys = 1000000;       // to be inserted: sizes pools and fixed bucket arrays
    std::size_t value_bytes = 256;
    unsigned threads = 1;
    bool reserve = false;               // grow our map before the clock starts
    bool prefault = true;               // touch every page of the file before the clock starts
};

/// What a peer's name stands for under a mode, and what must be in the environment for it.
struct map_facts {
    bool emulated_pm = false;   // pmem mode on memory that is not persistent
    bool counts_events = false; // its flushes and fences go through hf::persist
    std::string note;           // what the reader of a number must know
};

class map_under_test {
public:
    virtual ~map_under_test() = default;
    /// Inserts a key that is not there yet. False when there is no room.
    virtual bool insert(std::uint64_t key, const void* value) noexcept = 0;
    virtual bool find(std::uint64_t key, void* value) noexcept = 0;
    virtual map_facts facts() const = 0;
};

constexpr std::size_t lock_count = 256; // instances of every chained map

/// Buckets per instance that our map has at its full size, a power of two.
std::uint64_t buckets_per_instance(std::uint64_t keys);
/// Bytes a pool file needs for the keys, with room to spare.
std::uint64_t pool_bytes(const map_options& options);

/// Engines and peers by name; aborts with a message when a file cannot be made, returns null for an
/// unknown name.
std::unique_ptr<map_under_test> make_map(std::string_view engine, const map_options& options);

// Ours: hashmap_holdfast.cpp, built once per engine.
std::unique_ptr<map_under_test> make_map_none(const map_options& options);
std::unique_ptr<map_under_test> make_map_undo(const map_options& options);
std::unique_ptr<map_under_test> make_map_clobber(const map_options& options);
// Peers.
std::unique_ptr<map_under_test> make_map_pmdk(const map_options& options);
std::unique_ptr<map_under_test> make_map_pmdk_actions(const map_options& options);
std::unique_ptr<map_under_test> make_map_lmdb(const map_options& options, bool writemap_nosync);
std::unique_ptr<map_under_test> make_map_floor_2f(const map_options& options);
std::unique_ptr<map_under_test> make_map_volatile(const map_options& options);

} // namespace hf::bench
