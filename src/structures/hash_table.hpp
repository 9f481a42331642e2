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

// First link at or after 'at' whose node does not sort below 'bound'; 'next' gets that node.
inline hash_node** seek(hash_node** at, std::uint64_t bound, hash_node*& next) noexcept {
    hash_node* node = *at;
    while (node != nullptr && order(node->hash) < bound) {
        at = &node->next;
        node = *at;
    }
    next = node;
    return at;
}

// Least order value that belongs to bucket 'fresh' when it is added.
constexpr std::uint64_t middle_of(std::uint64_t fresh) {
    const unsigned level = static_cast<unsigned>(std::bit_width(fresh)) - 1;
    const std::uint64_t range = fresh - (std::uint64_t{1} << level);
    return (2 * range + 1) << (63 - level);
}

// Where the nodes of bucket 'fresh', the next to be added, are now and where they will be.
struct split_place {
    hash_node** cut;       // link at which the old chain is to end
    hash_node* moved;      // first node of the new one
    hash_node** home;      // the new bucket; null: its segment is still to be allocated
    std::uint64_t segment; // 1 + number of that segment; 0: none to allocate
};

// The bucket that splits into itself and bucket 'fresh'.
inline hash_node** source_of(hash_table* table, std::uint64_t fresh) noexcept {
    const unsigned level = static_cast<unsigned>(std::bit_width(fresh)) - 1;
    return bucket_at(table, slot_of_range(level, fresh - (std::uint64_t{1} << level)));
}

inline split_place find_split(hash_table* table, std::uint64_t fresh, hash_node** source) noexcept {
    split_place split{};
    split.cut = seek(source, middle_of(fresh), split.moved);
    if (fresh >= (1u << hash_table::small_log2) && std::has_single_bit(fresh) &&
        table->segments[segment_of(fresh)] == nullptr)
        split.segment = segment_of(fresh) + 1;
    else split.home = bucket_at(table, fresh);
    return split;
}

// Whether one more node makes a split due.
constexpr bool crowded(std::uint64_t shape) {
    return node_count(shape) >= bucket_count(shape) * hash_table::nodes_per_bucket &&
           bucket_count(shape) < one_bucket;
}

// The home of a bucket whose segment is missing: the first of a new segment. Not zeroed, see (4).
inline hash_node** add_segment(hash_table* table, std::uint64_t number) noexcept {
    hash_node** buckets =
        hf::make_array<hash_node*>(std::size_t{1} << (number + hash_table::small_log2));
    if (buckets != nullptr) table->segments[number] = buckets;
    return buckets;
}

// Adds up to 256 buckets, towards 'wanted'. False when the pool is full.
inline bool split_some(hash_table* table, std::uint64_t wanted) noexcept {
    const std::uint64_t shape = table->shape;
    const std::uint64_t buckets = bucket_count(shape);
    const std::uint64_t target = wanted < buckets + 256 ? wanted : buckets + 256;
    std::uint64_t reached = buckets;
    for (; reached < target; ++reached) {
        const split_place split = find_split(table, reached, source_of(table, reached));
        hash_node** home = split.home;
        if (home == nullptr) home = add_segment(table, split.segment - 1);
        if (home == nullptr) break;
        *home = split.moved;
        if (split.moved != nullptr) *split.cut = nullptr;
    }
    table->shape = shape + (reached - buckets) * one_bucket;
    return reached == target;
}

} // namespace detail

/// Where a node goes and which bucket is split on the way: every word that link() will read, so
/// that a caller can collect them before its section (under its lock) and pass them as arguments.
/// The section then overwrites nothing that it has read.
struct hash_place {
    hash_node** at;        // link that gets the node; null: the first bucket of the new segment
    hash_node* next;       // what follows the node
    std::uint64_t shape;   // of the table, before
    hash_node** home;      // the new bucket; null: no split, or see segment
    hash_node** cut;       // link at which the split chain is to end
    hash_node* moved;      // first node of the new bucket
    std::uint64_t segment; // 1 + number of the segment to allocate for the new bucket; 0: none
};

/// Nodes in the table.
inline std::uint64_t size(const hash_table* table) noexcept {
    return detail::node_count(table->shape);
}

/// First node with this hash, or null. Its equals follow: walk ->next while ->hash is the same
/// (walking on to the end of the chain is harmless).
///
/// Cost:    about one node read besides the one found.
/// Threads: caller holds its lock at least shared.
inline hash_node* chain(const hash_table* table, std::uint64_t hash) noexcept {
    const std::uint64_t wanted = detail::order(hash);
    hash_node* node = *detail::bucket_at(table, detail::slot_of(table->shape, hash));
    while (node != nullptr && detail::order(node->hash) < wanted) node = node->next;
    return node != nullptr && node->hash == hash ? node : nullptr;
}

/// Finds the place for a node with this hash. The place holds until the table next changes.
inline hash_place find_place(hash_table* table, std::uint64_t hash) noexcept {
    hash_place place{};
    const std::uint64_t shape = table->shape;
    place.shape = shape;
    const std::uint64_t wanted = detail::order(hash);
    hash_node** const bucket = detail::bucket_at(table, detail::slot_of(shape, hash));
    if (!detail::crowded(shape)) {
        place.at = detail::seek(bucket, wanted, place.next);
        return place;
    }
    // Two chains to walk: let their cache misses overlap.
    const std::uint64_t fresh = detail::bucket_count(shape);
    hash_node** const source = detail::source_of(table, fresh);
    __builtin_prefetch(source);
    __builtin_prefetch(*bucket);
    __builtin_prefetch(*source);
    place.at = detail::seek(bucket, wanted, place.next);
    const detail::split_place split = detail::find_split(table, fresh, source);
    place.home = split.home;
    place.cut = split.cut;
    place.moved = split.moved;
    place.segment = split.segment;
    if (place.at == place.cut) { // the node goes just where the chain is to be cut
        if (wanted >= detail::middle_of(fresh)) place.at = place.home;
        else place.next = nullptr;
    }
    return place;
}

/// Whether the table has no room for one more node, whatever the pool has.
inline bool full(const hash_place& place) noexcept {
    return detail::node_count(place.shape) == detail::one_bucket - 1;
}

/// Whether a bucket is split when a node is linked at the place.
inline bool splits(const hash_place& place) noexcept {
    return place.home != nullptr || place.segment != 0;
}

/// In a section: links a node whose 'next' is place.next already, at a place that splits nothing;
/// 'at' and 'shape' are the place's.
///
/// Ordering: 0 clobber writes when they came in as arguments.
inline void link_alone(hash_table* table, hash_node* node, hash_node** at,
                       std::uint64_t shape) noexcept {
    *at = node;
    table->shape = shape + 1;
}

/// In a section: links a node whose 'next' is place.next already, at a place found under the same
/// lock; may split one bucket. A full pool only delays the split.
///
/// Requires: !full(place).
/// Ordering: 0 clobber writes when the place came in as arguments.
inline void link_filled(hash_table* table, hash_node* node, const hash_place& found) noexcept {
    const hash_place place = found; // locals: no store below can be taken for one into 'found'
    std::uint64_t shape = place.shape + 1;
    hash_node** at = place.at;
    hash_node** home = place.home;
    if (place.segment != 0) {
        home = detail::add_segment(table, place.segment - 1);
        if (at == nullptr) at = home != nullptr ? home : place.cut;
        if (home == nullptr && at == place.cut) node->next = place.moved; // not split after all
    }
    if (home != nullptr) {
        *home = place.moved;
        if (place.moved != nullptr) *place.cut = nullptr;
        shape += detail::one_bucket;
    }
    *at = node; // after the split: may be 'home' or 'cut'
    table->shape = shape;
}

/// In a section: the same for a node whose 'next' is still to be filled in.
///
/// Errors:   false when the table is full; nothing changed.
inline bool link(hash_table* table, hash_node* node, const hash_place& found) noexcept {
    if (full(found)) return false;
    node->next = found.next;
    link_filled(table, node, found);
    return true;
}

/// In a section: links the node; may split one bucket.
///
/// Ordering: 2 clobber writes (link, shape); with a split up to 4.
/// Errors:   false when the table is full; nothing changed. A full pool only delays the split.
/// Threads:  caller holds its lock exclusively until the section has returned.
inline bool link(hash_table* table, hash_node* node) noexcept {
    return link(table, node, find_place(table, node->hash));
}

/// The link that holds 'node', which is in the table.
inline hash_node** link_of(hash_table* table, const hash_node* node) noexcept {
    hash_node** at = detail::bucket_at(table, detail::slot_of(table->shape, node->hash));
    while (*at != node) at = &(*at)->next;
    return at;
}

/// In a section: puts 'new_node', of the same hash, where 'old_node' was.
///
/// Ordering: 1 clobber write, the link; 0 when 'at' and 'next' (old_node->next) came in as
/// arguments.
inline void replace(hash_node** at, hash_node* next, hash_node* new_node) noexcept {
    new_node->next = next;
    *at = new_node;
}
inline void replace(hash_table* table, hash_node* old_node, hash_node* new_node) noexcept {
    replace(link_of(table, old_node), old_node->next, new_node);
}

/// In a section: takes a node out; the caller frees it. Buckets are never merged.
///
/// Ordering: 2 clobber writes (link, shape); 0 when they came in as arguments.
inline void unlink(hash_table* table, hash_node** at, hash_node* next,
                   std::uint64_t shape) noexcept {
    *at = next;
    table->shape = shape - 1;
}
inline void unlink(hash_table* table, hash_node* node) noexcept {
    unlink(table, link_of(table, node), node->next, table->shape);
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
    return detail::split_some(table, wanted);
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

/// The first word found at which a table is not as it must be; 'at' is null when there is none.
struct hash_fault {
    const void* at = nullptr;
    const char* what = "";
    std::uint64_t expected = 0, found = 0;
};

/// Whether (4) holds in memory that may say anything: nothing is followed. 'believe(segment, bytes)'
/// says whether a segment of so many bytes may be there.
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

/// Whether (1)-(3) hold, and the count, in memory that may say anything: 'believe(node)' says whether
/// a node may be there, before it is followed. Ends whatever the chains are.
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
        const hash_node* passed = nullptr; // every so often another: in a circle it comes again
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
