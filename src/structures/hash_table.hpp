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
//   (6) No node of a bucket's chain sorts below the bucket's 'least'. Most chains are short, so it
//       mostly spares a walk the cache miss of looking at a node.
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

/// One chain.
struct hash_bucket {
    hash_node* first;
    std::uint64_t least; // lower bound of the chain's order values (6); nothing while it is empty
};

/// Zero-filled is a valid empty table. At most 2^32 - 1 nodes.
struct hash_table {
    static constexpr unsigned small_log2 = 3;
    static constexpr unsigned segment_count = 32 - small_log2;
    // Split when there are more than this many nodes per bucket.
    static constexpr std::uint64_t nodes_per_bucket = 1;

    std::uint64_t shape;                  // [buckets - 1 : 32][nodes : 32], one word: one log entry
    hash_bucket* segments[segment_count]; // segments[i]: buckets 2^(i+3) … 2^(i+4) - 1
    hash_bucket small[1u << small_log2];  // buckets 0-7
};
static_assert(sizeof(hash_table) == 8 * (1 + 29 + 2 * 8));

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

inline const hash_bucket* bucket_at(const hash_table* table, std::uint64_t slot) noexcept {
    if (slot < (1u << hash_table::small_log2)) return &table->small[slot];
    return table->segments[segment_of(slot)] + (slot - std::bit_floor(slot));
}
inline hash_bucket* bucket_at(hash_table* table, std::uint64_t slot) noexcept {
    return const_cast<hash_bucket*>(bucket_at(static_cast<const hash_table*>(table), slot));
}

// First link of a chain whose node does not sort below 'bound'; that node, if any, and a lower bound
// of its order value and its successors'.
struct found_link {
    hash_node** at;
    hash_node* next;
    std::uint64_t least;
};
inline found_link seek(hash_bucket* bucket, std::uint64_t bound) noexcept {
    hash_node** at = &bucket->first;
    hash_node* node = *at;
    std::uint64_t least = bucket->least;
    if (node == nullptr || least >= bound) return {at, node, least};
    while (node != nullptr && (least = order(node->hash)) < bound) {
        at = &node->next;
        node = *at;
    }
    return {at, node, least};
}

// Least order value that belongs to bucket 'fresh' when it is added.
constexpr std::uint64_t middle_of(std::uint64_t fresh) {
    const unsigned level = static_cast<unsigned>(std::bit_width(fresh)) - 1;
    const std::uint64_t range = fresh - (std::uint64_t{1} << level);
    return (2 * range + 1) << (63 - level);
}

// The bucket that splits into itself and bucket 'fresh'.
inline hash_bucket* source_of(hash_table* table, std::uint64_t fresh) noexcept {
    const unsigned level = static_cast<unsigned>(std::bit_width(fresh)) - 1;
    return bucket_at(table, slot_of_range(level, fresh - (std::uint64_t{1} << level)));
}

// Bucket 'fresh', the next to be added; null when its segment is still to be allocated.
inline hash_bucket* home_of(hash_table* table, std::uint64_t fresh) noexcept {
    const bool starts_segment = fresh >= (1u << hash_table::small_log2) && std::has_single_bit(fresh);
    if (starts_segment && table->segments[segment_of(fresh)] == nullptr) return nullptr;
    return bucket_at(table, fresh);
}

// Whether one more node makes a split due.
constexpr bool crowded(std::uint64_t shape) {
    return node_count(shape) >= bucket_count(shape) * hash_table::nodes_per_bucket &&
           bucket_count(shape) < one_bucket;
}

// Allocates the segment that bucket 'fresh' starts. Not zeroed, see (4).
inline hash_bucket* add_segment(hash_table* table, std::uint64_t fresh) noexcept {
    auto* buckets = hf::make_array<hash_bucket>(fresh);
    if (buckets != nullptr) table->segments[segment_of(fresh)] = buckets;
    return buckets;
}

// Adds up to 256 buckets, towards 'wanted'. False when the pool is full.
inline bool split_some(hash_table* table, std::uint64_t wanted) noexcept {
    const std::uint64_t shape = table->shape;
    const std::uint64_t buckets = bucket_count(shape);
    const std::uint64_t target = wanted < buckets + 256 ? wanted : buckets + 256;
    std::uint64_t reached = buckets;
    for (; reached < target; ++reached) {
        const found_link cut = seek(source_of(table, reached), middle_of(reached));
        hash_bucket* home = home_of(table, reached);
        if (home == nullptr) home = add_segment(table, reached);
        if (home == nullptr) break;
        home->first = cut.next;
        home->least = cut.least;
        if (cut.next != nullptr) *cut.at = nullptr;
    }
    table->shape = shape + (reached - buckets) * one_bucket;
    return reached == target;
}

} // namespace detail

/// Where a node goes and which bucket is split on the way: every word that link() will read, so that
/// a caller can collect them before its section (under its lock) and pass them as arguments. The
/// section then overwrites nothing that it has read.
struct hash_place {
    hash_node** at;            // link that gets the node; null: the first bucket of a new segment's
    hash_node* next;           // what follows the node
    std::uint64_t shape;       // of the table, before
    std::uint64_t order;       // of the node
    std::uint64_t first;       // 1: 'at' is a bucket's; 0: a node's
    hash_node** cut;           // link at which the split chain is to end; null: no split
    hash_node* moved;          // first node of the new bucket
    std::uint64_t moved_least; // the new bucket's 'least'
    hash_bucket* home;         // the new bucket; null: no split, or its segment is to be allocated
};

/// Nodes in the table.
inline std::uint64_t size(const hash_table* table) noexcept {
    return detail::node_count(table->shape);
}

/// First node with this hash, or null. Its equals follow: walk ->next while ->hash is the same
/// (walking on to the end of the chain is harmless).
///
/// Cost:    about nodes_per_bucket / 2 nodes read.
/// Threads: caller holds its lock at least shared.
inline hash_node* chain(const hash_table* table, std::uint64_t hash) noexcept {
    const std::uint64_t wanted = detail::order(hash);
    const hash_bucket* bucket = detail::bucket_at(table, detail::slot_of(table->shape, hash));
    hash_node* node = bucket->first;
    if (node == nullptr || wanted < bucket->least) return nullptr;
    while (node != nullptr && detail::order(node->hash) < wanted) node = node->next;
    return node != nullptr && node->hash == hash ? node : nullptr;
}

/// Finds the place for a node with this hash, in front of those that have it already; 'same' gets the
/// first of them, or null. The place holds until the table next changes.
inline hash_place find_place(hash_table* table, std::uint64_t hash, hash_node*& same) noexcept {
    const std::uint64_t shape = table->shape;
    const std::uint64_t wanted = detail::order(hash);
    const std::uint64_t fresh = detail::bucket_count(shape);
    const bool splits = detail::crowded(shape);
    hash_bucket* const bucket = detail::bucket_at(table, detail::slot_of(shape, hash));
    hash_bucket* const source = splits ? detail::source_of(table, fresh) : bucket;
    __builtin_prefetch(source); // two chains to walk: let their cache misses overlap
    const detail::found_link link = detail::seek(bucket, wanted);
    same = link.next != nullptr && link.least <= wanted && link.next->hash == hash ? link.next : nullptr;

    hash_place place{};
    place.at = link.at;
    place.next = link.next;
    place.shape = shape;
    place.order = wanted;
    place.first = link.at == &bucket->first;
    if (!splits) return place;
    const detail::found_link cut = detail::seek(source, detail::middle_of(fresh));
    place.cut = cut.at;
    place.moved = cut.next;
    place.moved_least = cut.least;
    place.home = detail::home_of(table, fresh);
    if (place.at != place.cut) return place;
    if (wanted < detail::middle_of(fresh)) { // the node goes just where the chain is to be cut
        place.next = nullptr;
    } else {
        place.at = place.home != nullptr ? &place.home->first : nullptr;
        place.first = 1;
    }
    return place;
}
inline hash_place find_place(hash_table* table, std::uint64_t hash) noexcept {
    hash_node* same = nullptr;
    return find_place(table, hash, same);
}

/// Whether the table has no room for one more node, whatever the pool has.
inline bool full(const hash_place& place) noexcept {
    return detail::node_count(place.shape) == detail::one_bucket - 1;
}

/// In a section: links the node at a place found under the same lock; may split one bucket.
///
/// Ordering: 0 clobber writes when the place came in as arguments.
/// Errors:   false when the table is full; nothing changed. A full pool only delays the split.
inline bool link(hash_table* table, hash_node* node, const hash_place& found) noexcept {
    const hash_place place = found; // locals: no store below can be taken for one into 'found'
    if (full(place)) return false;
    std::uint64_t shape = place.shape + 1;
    hash_node** at = place.at;
    hash_bucket* home = place.home;
    hash_node* next = place.next;
    std::uint64_t first = place.first;
    if (place.cut != nullptr && home == nullptr) {
        home = detail::add_segment(table, detail::bucket_count(place.shape));
        if (at == nullptr) at = home != nullptr ? &home->first : place.cut;
        if (home == nullptr && at == place.cut) { // not split after all
            next = place.moved;
            first = place.cut_first;
        }
    }
    if (home != nullptr) {
        home->first = place.moved;
        home->least = place.moved_least;
        if (place.moved != nullptr) *place.cut = nullptr;
        shape += detail::one_bucket;
    }
    node->next = next;
    *at = node; // after the split: may be 'home' or 'cut'
    if (first != 0) reinterpret_cast<hash_bucket*>(at)->least = place.order;
    table->shape = shape;
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
/// Ordering: 1 clobber write, the link; 0 when 'at' and 'next' (old_node->next) came in as arguments.
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

/// Whether (1)-(4) hold.
inline bool check(const hash_table* table) noexcept {
    const std::uint64_t shape = table->shape;
    std::uint64_t nodes = 0;
    for (std::uint64_t slot = 0; slot < detail::bucket_count(shape); ++slot) {
        if (slot >= (1u << hash_table::small_log2) &&
            table->segments[detail::segment_of(slot)] == nullptr)
            return false;
        std::uint64_t least = 0;
        for (const hash_node* node = *detail::bucket_at(table, slot); node != nullptr;
             node = node->next) {
            if (detail::slot_of(shape, node->hash) != slot) return false;
            if (detail::order(node->hash) < least) return false;
            least = detail::order(node->hash);
            if (++nodes > detail::node_count(shape)) return false; // a circle ends here
        }
    }
    return nodes == detail::node_count(shape);
}

} // namespace HF_STRUCTURES_ENGINE
} // namespace hf::structures
