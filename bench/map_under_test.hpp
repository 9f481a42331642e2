// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The interface that the benchmarks drive: one over our structures, built once per engine, and over
// the peers. The virtual call costs each of them the same nanosecond or two.
//
// Fairness: same keys, values and locks. Chained maps, ours among them, have the bucket arrays that
// they need at their full size before the clock starts (unless an option lets ours grow). Files are
// prefaulted for all or for none.
#pragma once

#include <holdfast/pool.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hf::bench {

// map, set: containers, measured while they hold many elements already. The others are filled.
enum class structure : std::uint8_t { hashmap, bptree, skiplist, rbtree, avl, map, set };

/// As the command line says it.
std::string_view name_of(structure which);
const std::vector<structure>& all_structures();
constexpr bool is_container(structure which) {
    return which == structure::map || which == structure::set;
}
constexpr bool ordered(structure which) {
    return which != structure::hashmap && !is_container(which);
}
/// 32 in the B+tree, as in Clobber §5.2.
constexpr std::size_t key_bytes(structure which) { return which == structure::bptree ? 32 : 8; }

struct map_options {
    structure which = structure::hashmap;
    std::string directory = "/dev/shm"; // for pool files
    hf::mode mode = hf::mode::process;
    std::uint64_t keys = 1000000; // to be inserted: sizes pools and fixed bucket arrays
    std::size_t value_bytes = 256;
    unsigned threads = 1;
    bool reserve = true;            // our hash map, too, has its buckets before the clock starts
    bool prefault = true;           // touch every page of the file before the clock starts
    bool durable_on_return = false; // of engine mod; else by the thread's next section
    bool sections_on_return = true; // the same of engine undo
    std::string keep_at;            // the file: opened if it is there, and left there
};

/// The meaning of a peer's name in a mode, and the environment that it needs.
struct map_facts {
    bool emulated_pm = false;    // pmem mode on memory that is not persistent
    bool counts_events = false;  // its flushes and fences are seen: all go through hf::persist
    bool counts_log = false;     // its log's entries and bytes are counted
    std::string note;            // for the reader of a number
    std::string durability = {}; // "next" or "return", where there is a choice
};

/// The memory of the elements that are there.
struct memory_use {
    std::uint64_t elements = 0;
    std::uint64_t bytes = 0;                 // of nodes or objects in use, their headers included
    std::optional<std::uint64_t> heap_bytes; // taken from the pool for them
};

/// The contents of an existing file when it was opened.
struct reopened {
    double open_ms = 0; // recovery included
    std::uint64_t file_bytes = 0;
    std::optional<std::uint32_t> sections_pending; // where it is known
    std::optional<std::uint64_t> keys;
    std::optional<bool> sound; // the structure's own invariants hold
};

class map_under_test {
public:
    virtual ~map_under_test() = default;
    /// Inserts a key that is not there yet. False when there is no room.
    virtual bool insert(std::uint64_t key, const void* value) noexcept = 0;
    virtual bool find(std::uint64_t key, void* value) noexcept = 0;
    /// Gives a key that is there another value.
    virtual bool update(std::uint64_t key, const void* value) noexcept = 0;
    /// Copies, one after the other, at most 'count' values from 'key' on in the order of the keys
    /// to 'value'; returns how many. Only where the keys are ordered.
    virtual std::uint64_t scan(std::uint64_t key, std::uint64_t count, void* value) noexcept = 0;
    /// A thread's operations between these two are durable when the second returns, and need not be
    /// before. 'operations': how many come. A map that cannot make several durable together does
    /// nothing here.
    virtual void begin_batch(std::uint64_t operations) noexcept { (void)operations; }
    virtual void end_batch() noexcept {}
    virtual map_facts facts() const = 0;
    /// Nothing if it is unknown.
    virtual std::optional<memory_use> memory() { return std::nullopt; }
    /// For maps that can be kept in a file (map_options::keep_at).
    virtual std::optional<reopened> state() const { return std::nullopt; }
};

constexpr std::size_t lock_count = 256; // instances of every chained map

/// Buckets per instance that our map has at its full size, a power of two.
std::uint64_t buckets_per_instance(std::uint64_t keys);
/// Bytes a pool file needs for the keys, with room to spare.
constexpr std::uint64_t pool_bytes(const map_options& given) {
    const std::uint64_t links = ordered(given.which) ? 192 : 64; // and room in nodes half full
    const std::uint64_t per_key = (given.value_bytes + links) * 3 / 2 + 64;
    const std::uint64_t bytes = given.keys * per_key + (std::uint64_t{64} << 20);
    return bytes / 4096 * 4096;
}

/// Engines and peers by name; aborts with a message if a file cannot be made; returns null for a
/// name that the structure does not have.
std::unique_ptr<map_under_test> make_map(std::string_view engine, const map_options& options);
/// Names of the engines and peers that a structure has.
std::vector<std::string> engines_for(structure which);

} // namespace hf::bench
