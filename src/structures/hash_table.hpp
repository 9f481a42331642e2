// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An intrusive chained hash table that grows by linear hashing: at most one bucket is split per
// insertion and nothing is ever moved or rehashed. Plain code with native pointers; the engine is
// the including file's.
//
//   (1) order(node), the node's hash with its halves exchanged, sorts every chain upwards. Nodes of
//       equal hash are neighbours.
//   (2) With b = 2^k + s buckets, 0 <= s < 2^k, the order values are cut into 2^k equal ranges, of
//       which the first s are cut once more. One bucket per range.
//   (3) The lower half of a split range keeps its bucket; the upper half gets bucket b. So a split
//       cuts one chain in two at one place: it writes the new bucket and at most one other link.
//   (4) Buckets 0-7 lie in the table, the others in segments of 8, 16, 32 … buckets that never
//       move. Buckets >= b hold garbage and are never read.
//   (5) A zero-filled table is empty and has one bucket.
//
// Source: Litwin 1980 (linear hashing); Shalev and Shavit, JACM 53(3) 2006 (split-ordered lists).
// Differs: ranges are numbered by their upper bits, so no bit reversal and no sentinel nodes.
#pragma once

#include <structures/namespace.hpp>

#include <holdfast/alloc.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace hf::structures {
inline namespace HF_STRUCTURES_ENGINE {

/// First member (or base) of whatever the table holds. The caller fills 'hash', well mixed, before
/// it links the node and never changes it while linked; 'next' belongs to the table.
struct hash_node {
    hash_node* next;
    std::uint64_t hash;
};

/// Zero-filled is a valid empty table. At most 2^32 - 1 nodes.
struct hash_table {
    static constexpr unsigned small_log2 = 3;
    static constexpr unsigned segment_count = 32 - small_log2;
    // Split when there are more than this many nodes per bucket. Measured with 256-byte values, 1 M
    // insertions: 1 beats 2 by 13-28 % of processor time: every node looked at is a cache miss.
    static constexpr std::uint64_t nodes_per_bucket = 1;

    std::uint64_t shape;                 // [buckets - 1 : 32][nodes : 32], one word: one log entry
    hash_node* small[1u << small_log2];  // buckets 0-7
    hash_node** segments[segment_count]; // segments[i]: buckets 2^(i+3) … 2^(i+4) - 1
};
static_assert(sizeof(hash_table) == 8 * (1 + 8 + 29));

namespace detail {

constexpr std::uint64_t one_bucket = std::uint64_t{1} << 32;
constexpr std::uint64_t node_count(std::uint64_t shape) { return shape & (one_bucket - 1); }
constexpr std::uint64_t bucket_count(std::uint64_t shape) { return (shape >> 32) + 1; }

// Halves exchanged, so that callers may choose among tables by a hash's upper bits.
constexpr std::uint64_t order(std::uint64_t hash) { return std::rotl(hash, 32); }

// The bucket of a range at 'level': a range is the upper half of a split at the level where its
// number became odd (3).
constexpr std::uint64_t slot_of_range(unsigned level, std::uint64_t range) {
    if (range == 0) return 0;
    const int halvings = std::countr_zero(range);
    return (std::uint64_t{1} << (level - 1 - static_cast<unsigned>(halvings))) +
           (range >> (halvings + 1));
}

constexpr std::uint64_t slot_of(std::uint64_t shape, std::uint64_t hash) {
    const std::uint64_t buckets = bucket_count(shape);
    const unsigned level = static_cast<unsigned>(std::bit_width(buckets)) - 1;
    const std::uint64_t split = buckets - (std::uint64_t{1} << level);
    const std::uint64_t fine = order(hash) >> (63 - level); // level + 1 bits
    if (fine / 2 < split) return slot_of_range(level + 1, fine);
    return slot_of_range(level, fine / 2);
}

constexpr unsigned segment_of(std::uint64_t slot) {
    return static_cast<unsigned>(std::bit_width(slot)) - 1 - hash_table::small_log2;
}

inline hash_node* const* bucket_at(const hash_table* table, std::uint64_t slot) noexcept {
    if (slot < (1u << hash_table::small_log2)) return &table->small[slot];
    return table->segments[segment_of(slot)] + (slot - std::bit_floor(slot));
}
inline hash_node** bucket_at(hash_table* table, std::uint64_t slot) noexcept {
    return const_cast<hash_node**>(bucket_at(static_cast<const hash_table*>(table), slot));
}

// First link at or after 'at' whose node does not sort below 'bound'.
inline hash_node** seek(hash_node** at, std::uint64_t bound) noexcept {
    while (*at != nullptr && order((*at)->hash) < bound) at = &(*at)->next;
    return at;
}

// Least order value that belongs to bucket 'fresh' when it is added.
constexpr std::uint64_t middle_of(std::uint64_t fresh) {
    const unsigned level = static_cast<unsigned>(std::bit_width(fresh)) - 1;
    const std::uint64_t range = fresh - (std::uint64_t{1} << level);
    return (2 * range + 1) << (63 - level);
}

// The bucket that splits into itself and bucket 'fresh'.
inline hash_node** source_of(hash_table* table, std::uint64_t fresh) noexcept {
    const unsigned level = static_cast<unsigned>(std::bit_width(fresh)) - 1;
    return bucket_at(table, slot_of_range(level, fresh - (std::uint64_t{1} << level)));
}

// Whether so many nodes are too many for so many buckets.
constexpr bool crowded(std::uint64_t shape) {
    return node_count(shape) > bucket_count(shape) * hash_table::nodes_per_bucket &&
           bucket_count(shape) < one_bucket;
}

// The word that will name the array of buckets for bucket 'fresh', the next one, if that array is
// missing; null: it is there.
inline hash_node*** missing_segment(hash_table* table, std::uint64_t fresh) noexcept {
    if (fresh < (1u << hash_table::small_log2)) return nullptr;
    hash_node*** segment = &table->segments[segment_of(fresh)];
    return *segment == nullptr ? segment : nullptr;
}

// In a section: adds one bucket. False when the pool is full.
inline bool split(hash_table* table) noexcept {
    const std::uint64_t fresh = bucket_count(table->shape);
    if (hash_node*** segment = missing_segment(table, fresh)) {
        hash_node** buckets = hf::make_array<hash_node*>(fresh); // not zeroed, see (4)
        if (buckets == nullptr) return false;
        *segment = buckets;
    }
    hash_node** cut = seek(source_of(table, fresh), middle_of(fresh));
    *bucket_at(table, fresh) = *cut;
    if (*cut != nullptr) *cut = nullptr;
    table->shape += one_bucket;
    return true;
}

} // namespace detail

/// Nodes in the table.
inline std::uint64_t size(const hash_table* table) noexcept {
    return detail::node_count(table->shape);
}

/// First node that does not sort below this hash in its bucket, or null.
///
/// Threads: caller holds its lock at least shared.
inline hash_node* first_from(const hash_table* table, std::uint64_t hash) noexcept {
    hash_node* node = *detail::bucket_at(table, detail::slot_of(table->shape, hash));
    while (node != nullptr && detail::order(node->hash) < detail::order(hash)) node = node->next;
    return node;
}

/// First node with this hash, or null. Its equals follow: walk ->next while ->hash is the same
/// (walking on to the end of the chain is harmless).
///
/// Cost:    about one node read besides the one found.
/// Threads: caller holds its lock at least shared.
inline hash_node* chain(const hash_table* table, std::uint64_t hash) noexcept {
    hash_node* node = first_from(table, hash);
    return node != nullptr && node->hash == hash ? node : nullptr;
}

/// The array of buckets that the next link() allocates; null: it allocates none.
inline hash_node*** segment_to_come(hash_table* table) noexcept {
    if (!detail::crowded(table->shape + 1)) return nullptr;
    return detail::missing_segment(table, detail::bucket_count(table->shape));
}

/// In a section: links the node; may split one bucket.
///
/// Ordering: 2 words overwritten (link, shape); with a split up to 4.
/// Errors:   false when the table is full; nothing changed. A full pool only delays the split.
/// Threads:  caller holds its lock exclusively until the section has returned.
inline bool link(hash_table* table, hash_node* node) noexcept {
    if (detail::node_count(table->shape) == detail::one_bucket - 1) return false;
    hash_node** at = detail::bucket_at(table, detail::slot_of(table->shape, node->hash));
    at = detail::seek(at, detail::order(node->hash));
    node->next = *at;
    *at = node;
    ++table->shape;
    if (detail::crowded(table->shape)) (void)detail::split(table);
    return true;
}

/// The link that holds 'node', which is in the table.
inline hash_node** link_of(hash_table* table, const hash_node* node) noexcept {
    hash_node** at = detail::bucket_at(table, detail::slot_of(table->shape, node->hash));
    while (*at != node) at = &(*at)->next;
    return at;
}

/// In a section: puts 'new_node', of the same hash, where 'old_node' was.
///
/// Ordering: 1 word overwritten.
inline void replace(hash_table* table, hash_node* old_node, hash_node* new_node) noexcept {
    new_node->next = old_node->next;
    *link_of(table, old_node) = new_node;
}

/// In a section: takes a node out; the caller frees it. Buckets are never merged.
///
/// Ordering: 2 words overwritten (link, shape).
inline void unlink(hash_table* table, hash_node* node) noexcept {
    *link_of(table, node) = node->next;
    --table->shape;
}

/// Whether 'nodes' nodes fit without another split.
inline bool reserved(const hash_table* table, std::uint64_t nodes) noexcept {
    return nodes <= detail::bucket_count(table->shape) * hash_table::nodes_per_bucket;
}

/// In a section: grows towards room for 'nodes' nodes without a split. A table that never grew gets
/// it all at once; any other grows by at most 256 buckets a call, which bounds the section's log:
/// call until reserved().
///
/// Cost:     8 bytes per bucket written.
/// Errors:   false when the pool is full; what was reached stays.
inline bool reserve(hash_table* table, std::uint64_t nodes) noexcept {
    std::uint64_t buckets = detail::bucket_count(table->shape);
    const std::uint64_t wanted =
        (nodes + hash_table::nodes_per_bucket - 1) / hash_table::nodes_per_bucket;
    if (wanted <= buckets) return true;
    if (wanted > detail::one_bucket) return false;
    if (table->shape == 0) { // virgin (5): new segments hold no chains, and are filled with null
        constexpr std::uint64_t small = std::uint64_t{1} << hash_table::small_log2;
        for (buckets = small; buckets < wanted; buckets *= 2) {
            hash_node** segment = hf::make_array<hash_node*>(buckets);
            if (segment == nullptr) break;
            std::memset(segment, 0, buckets * sizeof(hash_node*));
            table->segments[detail::segment_of(buckets)] = segment;
        }
        table->shape = (buckets - 1) << 32;
        return buckets >= wanted;
    }
    for (const std::uint64_t target = std::min(wanted, buckets + 256); buckets < target; ++buckets)
        if (!detail::split(table)) return false;
    return true;
}

/// Calls f(hash_node*) for every node; f may free it.
template <class F> void for_each(const hash_table* table, F f) {
    const std::uint64_t buckets = detail::bucket_count(table->shape);
    for (std::uint64_t slot = 0; slot < buckets; ++slot) {
        for (hash_node* node = *detail::bucket_at(table, slot); node != nullptr;) {
            hash_node* next = node->next;
            f(node);
            node = next;
        }
    }
}

/// Calls f(hash_node*) for the nodes of one bucket that do not sort below 'from', which is 0 at
/// first. Returns the argument for the next call, 0 after the last bucket.
///
/// A walk by such calls meets every node exactly once that is linked all the time, however the
/// table changes between them. It meets a node at most once that is linked or unlinked meanwhile.
/// Threads: caller holds its lock at least shared, during a call.
template <class F>
std::uint64_t for_each_in_bucket(const hash_table* table, std::uint64_t from, F f) {
    const std::uint64_t hash = detail::order(from); // exchanging the halves twice changes nothing
    for (hash_node* node = first_from(table, hash); node != nullptr; node = node->next) f(node);
    const std::uint64_t buckets = detail::bucket_count(table->shape);
    if (buckets == 1) return 0;
    const unsigned level = static_cast<unsigned>(std::bit_width(buckets)) - 1;
    const std::uint64_t split = buckets - (std::uint64_t{1} << level);
    // The end of the range (2); that of the last is 2^64.
    const unsigned bits = from >> (64 - level) < split ? 63 - level : 64 - level;
    return ((from >> bits) + 1) << bits;
}

/// The first word at which a table is damaged; 'at' is null if none is.
struct hash_fault {
    const void* at = nullptr;
    const char* what = "";
    std::uint64_t expected = 0, found = 0;
};

/// Whether (4) holds in memory that may say anything: nothing is followed. 'believe(segment,
/// bytes)' says whether a segment of so many bytes may be there.
template <class Believe>
hash_fault fault_of_segments(const hash_table* table, Believe&& believe) noexcept {
    const std::uint64_t buckets = detail::bucket_count(table->shape);
    for (unsigned i = 0; i < hash_table::segment_count; ++i) {
        hash_node** const segment = table->segments[i];
        const std::uint64_t first = std::uint64_t{1} << (i + hash_table::small_log2);
        if (segment == nullptr ? buckets <= first : believe(segment, first * sizeof *segment))
            continue;
        return {&table->segments[i], "a segment of buckets", 0,
                reinterpret_cast<std::uintptr_t>(segment)};
    }
    return {};
}

/// Whether (1)-(3) hold, and the count, in memory with any contents: 'believe(node)' decides
/// whether a node may be there, before it is followed. Ends for any chains.
///
/// Requires: no fault_of_segments().
template <class Believe>
hash_fault fault_of_chains(const hash_table* table, Believe&& believe) noexcept {
    const std::uint64_t shape = table->shape;
    const std::uint64_t counted = detail::node_count(shape);
    const std::uint64_t buckets = detail::bucket_count(shape);
    std::uint64_t nodes = 0;
    for (std::uint64_t slot = 0; slot < buckets; ++slot) {
        if (slot + 8 < buckets) __builtin_prefetch(*detail::bucket_at(table, slot + 8));
        std::uint64_t least = 0;
        const hash_node* passed = nullptr; // replaced every so often: in a circle it comes again
        hash_node* const* at = detail::bucket_at(table, slot);
        for (const hash_node* node = *at; node != nullptr; at = &node->next, node = *at) {
            const auto found = reinterpret_cast<std::uintptr_t>(node);
            if (node == passed) return {at, "the end of a chain", 0, found};
            if (!believe(node)) return {at, "a node", 0, found};
            if (detail::slot_of(shape, node->hash) != slot)
                return {&node->hash, "a hash of bucket", slot, detail::slot_of(shape, node->hash)};
            if (detail::order(node->hash) < least)
                return {&node->hash, "a hash in order, at least", least, detail::order(node->hash)};
            least = detail::order(node->hash);
            if (std::has_single_bit(++nodes)) passed = node;
        }
    }
    if (nodes != counted) return {&table->shape, "the count of nodes", nodes, counted};
    return {};
}

/// Whether (1)-(4) hold.
inline bool check(const hash_table* table) noexcept {
    const auto believe = [](const auto*, auto...) { return true; };
    return fault_of_segments(table, believe).at == nullptr &&
           fault_of_chains(table, believe).at == nullptr;
}

} // namespace HF_STRUCTURES_ENGINE
} // namespace hf::structures
