// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Room for nodes: slots of one size in arenas taken from the pool's heap, whole chunks each.
//
// (1) Which slots are in use is volatile: 'taken' bits, one a slot, set for every slot that a
//     version names, that waits to be reclaimed, or that lies in a cache. They come from the bitmap
//     of an arena that was closed cleanly, or from the trace.
// (2) Until the trace after a crash is done, slots come only from arenas taken since.
// (3) An arena is in the list only while the heap holds it allocated. While that begins or ends,
//     'taking' names the arena; then the list shows the next open whose it is. An arena without a
//     node in use may get another slot size.
// (4) One lock guards it all; caches spare most callers it.
#pragma once

#include <base/assert.hpp>
#include <mod/format.hpp>
#include <open/pool_impl.hpp>

#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

namespace hf::mod {

/// Slot sizes: multiples of a granule up to 1 KiB, then four to each doubling; up to an eighth of a
/// chunk. Larger nodes get an arena of their own.
inline constexpr unsigned small_classes = 64;
inline constexpr unsigned class_count = small_classes + 12;
constexpr std::uint64_t class_bytes(unsigned c) {
    if (c < small_classes) return (c + 1) * granule_bytes;
    const unsigned step = c - small_classes;
    return (1024ULL << step / 4) * (5 + step % 4) / 4;
}
/// Requires: bytes is not 0, and no more than the largest class has.
constexpr unsigned class_of(std::uint64_t bytes) {
    HF_ASSERT_SLOW(bytes != 0);
    if (bytes <= 1024)
        return static_cast<unsigned>((bytes + granule_bytes - 1) / granule_bytes) - 1;
    unsigned c = small_classes;
    while (class_bytes(c) < bytes) ++c;
    HF_ASSERT(c < class_count);
    return c;
}
static_assert(class_bytes(class_count - 1) == 8192 && class_of(8192) == class_count - 1);
static_assert(class_of(1) == 0 && class_of(1024) == 63 && class_bytes(64) == 1280);

struct arena {
    std::uint64_t offset; // from pool start
    std::uint64_t bytes;
    std::uint32_t slot_bytes, slots;
    std::uint32_t slots_at; // from 'offset'
    std::uint32_t in_class; // the slots' size; class_count: the one slot of a large arena
    std::uint32_t free;     // clear bits in 'taken'
    std::uint64_t inverse;  // 2^32 / granules of a slot, rounded up
    bool closed;            // (2)
    bool listed;            // in its class's list of arenas with room
    bool walked = false;    // met in the durable list
    std::vector<std::uint64_t> taken;
    std::vector<std::uint64_t> reached; // by the trace

    /// The slot of the node at 'at', from pool start; no_slot if no node starts there.
    std::uint32_t slot_of(std::uint64_t at) const noexcept {
        const std::uint64_t within = (at - offset - slots_at) / granule_bytes;
        if (at < offset + slots_at || within >= bytes / granule_bytes) return no_slot;
        // An arena of several slots has few granules: the product is exact.
        const std::uint64_t slot = slots == 1 ? 0 : within * inverse >> 32;
        return slot < slots && slot * (slot_bytes / granule_bytes) == within
                   ? static_cast<std::uint32_t>(slot)
                   : no_slot;
    }
    static constexpr std::uint32_t no_slot = ~std::uint32_t{0};
    void set_form(std::uint32_t bytes_each, std::uint32_t count) noexcept;
    bool is_taken(std::uint32_t slot) const noexcept {
        HF_ASSERT_SLOW(slot < slots);
        return (taken[slot / 64] >> slot % 64 & 1) != 0;
    }
};

/// Free nodes at one writer's hand.
struct node_cache {
    std::array<std::vector<ref>, class_count> free;
};

class node_space {
public:
    /// 'super': null until set_superblock().
    node_space(pool::impl& in, superblock* super);
    ~node_space();
    node_space(const node_space&) = delete;
    node_space& operator=(const node_space&) = delete;
    void set_superblock(superblock* super) noexcept {
        HF_ASSERT(super_ == nullptr && super != nullptr);
        super_ = super;
    }

    /// A free node, in use from here on; 0 when the pool is full.
    ref take(node_cache& from, std::uint64_t bytes) {
        if (bytes - 1 < class_bytes(small_classes - 1)) [[likely]] {
            auto& free = from.free[class_of(bytes)];
            if (!free.empty()) [[likely]] {
                const ref node = free.back();
                free.pop_back();
                return node;
            }
        }
        return take_more(from, bytes);
    }
    /// Gives a node back; ignores anything else. Requires: nothing durable names it, nobody reads
    /// it.
    void give(node_cache& to, ref node) noexcept;
    void give_now(ref node) noexcept; // to no cache
    void give_all(node_cache& from) noexcept;
    /// Gives arenas without a node in use back to the pool's heap. 4 ordering points for each.
    void trim() noexcept;
    /// The bytes of the node's slot. Requires: a node.
    std::uint64_t bytes_of(ref node);
    /// Whether these bytes lie in the slots of an arena.
    bool holds(const std::byte* at, std::size_t bytes) noexcept;
    /// Slots of all arenas that were looked at.
    std::uint64_t slot_count() const noexcept;

    /// A structure named what is no node, or gave one up twice. From here on no commit is made.
    void note_damage() noexcept { damaged_.store(true, std::memory_order_relaxed); }
    bool damaged() const noexcept { return damaged_.load(std::memory_order_relaxed); }

    /// The arena and slot of a node that is only said to be one; null when none starts there.
    arena* find(ref node) {
        const std::uint64_t at = std::uint64_t{node} * granule_bytes;
        if (node == 0 || at >= limit_) return nullptr;
        arena* a = known(node);
        if (a == nullptr) [[unlikely]]
            a = look_for(at);
        return a == nullptr || a->slot_of(at) == arena::no_slot ? nullptr : a;
    }
    /// Reads every arena of the list that was not read yet. Errors: corrupt.
    status load_all();
    /// Closes the known arenas, as (2) requires; end_trace(), when all nodes are marked in
    /// 'reached', opens them again.
    void begin_trace();
    void end_trace();

    /// Whether (1) holds for every arena, and the table finds it at its nodes.
    bool valid() const noexcept;

    /// Stores the bitmaps of all arenas that were looked at, flushed.
    void store_bitmaps() noexcept;

    std::uint64_t arena_bytes() const noexcept;
    /// Slots and bytes out of circulation, those in caches included.
    void count(std::uint64_t& nodes, std::uint64_t& bytes) const noexcept;
    template <class Visit> void for_each(Visit&& visit) const {
        std::scoped_lock held{lock_};
        for (const auto& a : arenas_) visit(*a);
    }
    /// Offsets of all arenas, from the durable list alone, as far as that is a list.
    template <class Visit> void for_each_durable(Visit&& visit) const {
        std::uint64_t left = limit_ >> chunk_shift_;
        for (std::uint64_t at = super_ ? super_->arenas : 0; at != 0 && left > 0; --left) {
            if (at % granule_bytes != 0 || !pool_->blocks.durable().covers(at, sizeof(arena_head)))
                return;
            visit(at);
            at = reinterpret_cast<const arena_head*>(pool_->at(at))->next;
        }
    }

private:
    std::atomic<arena*>& place(std::uint64_t offset) const noexcept {
        return table_[offset >> chunk_shift_];
    }
    arena* known(ref node) const noexcept {
        return place(std::uint64_t{node} * granule_bytes).load(std::memory_order_acquire);
    }
    ref take_more(node_cache& from, std::uint64_t bytes);
    bool make_room(std::vector<ref>& free, std::size_t keep) noexcept;
    arena* look_for(std::uint64_t at);
    bool refill(node_cache& to, unsigned c);
    ref take_large(std::uint64_t bytes);
    arena* room_in(unsigned c);
    arena* load_next();
    arena* load(std::uint64_t offset);
    arena* take_arena(std::uint64_t bytes, std::uint32_t slot_bytes);
    bool give_back(arena& a, std::uint64_t* link);
    void name_taking(const block& b) noexcept;
    void turn(arena& a, std::uint32_t slot_bytes);
    arena* reuse_empty(std::uint32_t slot_bytes);
    void format(arena& a, std::uint32_t slot_bytes);
    void list(arena& a);
    void put_back(const ref* nodes, std::size_t count) noexcept;
    bool valid(const arena& a) const noexcept;
    bool well_formed(std::uint64_t offset, const arena_head& head) const noexcept;

    struct free_memory {
        void operator()(void* memory) const noexcept { std::free(memory); }
    };
    pool::impl* pool_;
    superblock* super_;
    unsigned chunk_shift_;
    std::uint64_t limit_; // nodes lie below it
    mutable std::mutex lock_;
    std::unique_ptr<std::atomic<arena*>[], free_memory> table_; // by chunk; an arena's first only
    std::vector<std::unique_ptr<arena>> arenas_;
    std::array<std::vector<arena*>, class_count> room_; // with free slots, the current one last
    std::vector<arena*> empty_;                         // without a taken slot; may be stale
    std::uint64_t next_unloaded_ = 0; // durable list from here on is not read; 0: all is
    bool corrupt_ = false;            // the list leads out of the heap, or in a circle
    bool closed_ = false;             // (2) holds arenas back
    std::atomic<bool> damaged_{false};
};

} // namespace hf::mod
