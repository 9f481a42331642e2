// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which thread may use which block: the volatile half of the allocator, over the durable heap.
//
// A block is free, reserved (handed out, its bit not yet set), allocated, or retired (bit cleared
// by a section whose commit mark is not yet durable). Reserving and releasing are volatile and cost
// no ordering point; publishing and retracting belong to the section's commit.
//
// (1) A slab chunk whose slots are handed out has a slab_state; its 'taken' bits cover every slot
//     that is allocated, reserved, retired or cached by a thread. It is made from the durable bits
//     before the first slot of the chunk changes hands, so no slot is handed out twice.
// (2) Opening costs nothing: a cursor walks the chunk entries as room is needed, and a chunk's bits
//     are read when the chunk is first used. Work per refill is bounded, except for the walk to the
//     first free chunk after an opening (about 50 ns a chunk).
// (3) Lock order: slab class, then chunks.
// (4) Memory can run out anywhere. Then a free block may stay out of circulation until the pool is
//     opened again, and no block is handed out twice. Giving back never fails.
// (5) Free chunks may be without space on the disk: trim() gave it back, in this open or before.
//     Such chunks are in 'holes_', or nobody has looked yet. They get space before they are handed
//     out.
// (6) In a full pool a thread keeps no free blocks at hand, and a class no free chunk. So blocks
//     that are freed for one of another size become whole chunks and runs of chunks, whichever
//     thread frees them. A pool is full when a thread has found no chunks. A pool that is opened at
//     its longest is full until a thread has found some. It stays full until it grows or a quarter
//     of it is free: one run that was found does not promise the next.
#pragma once

#include <alloc/heap.hpp>
#include <base/line.hpp>

#include <holdfast/sizes.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace hf {

struct slab_state;

/// Free blocks that one thread keeps at hand, by size class. Its owner alone touches it.
struct thread_cache {
    // Offsets, used from the back. One has no more capacity than it may keep blocks.
    std::array<std::vector<std::uint64_t>, 256> blocks;
    // By class: the chunk whose entry this thread has made durable, as long as it got its blocks by
    // no refill since: until then the blocks at hand, or those they became, keep the chunk what it
    // is. 0: none.
    std::array<std::uint64_t, 256> named_chunk{};

    bool named(const heap& of, block b) const noexcept {
        return of.is_slab(b.bytes) && named_chunk[of.classes().class_of(b.bytes)] == of.chunk_of(b);
    }
    /// The block was published by this thread, durably.
    void note_named(const heap& of, block b) noexcept {
        if (of.is_slab(b.bytes)) named_chunk[of.classes().class_of(b.bytes)] = of.chunk_of(b);
    }
};

/// What a block is for. The last chunks of a pool's limit are kept for the logs of sections: in a
/// full pool a section that frees a great deal still finds room for its log.
enum class purpose : std::uint8_t { data, log };

/// How many bytes below 'max_bytes' only logs may use.
constexpr std::uint64_t log_reserve_bytes(std::uint64_t max_bytes, std::uint64_t chunk_bytes) {
    return max_bytes < 1_MiB ? 0 : round_down(std::min(max_bytes / 64, 4_MiB), chunk_bytes);
}

class allocator {
public:
    explicit allocator(pool_file& file);
    ~allocator();
    allocator(const allocator&) = delete;
    allocator& operator=(const allocator&) = delete;

    /// A free block for 'bytes', reserved for the caller; offset 0 when the pool is full, or cannot
    /// grow: full() says why. Throws std::bad_alloc, as do find and claim.
    block reserve(thread_cache& cache, std::uint64_t bytes, purpose what = purpose::data) {
        if (bytes != 0 && heap_.is_slab(bytes)) [[likely]] {
            const unsigned size_class = heap_.classes().class_of(bytes);
            auto& at_hand = cache.blocks[size_class];
            if (!at_hand.empty()) [[likely]]
                return {take_last(at_hand), heap_.classes().block_bytes(size_class)};
        }
        return reserve_otherwise(cache, bytes, what);
    }
    /// The refusal of what reserve() found no room for: how long the pool is, how long it may
    /// become, and why it does not. Its code is pool_full, or that of the growth that failed
    /// otherwise (io_error, limit_reached, truncated …).
    status full(const std::string& what, const std::string& more = {}) const;
    /// Why the pool has not grown when that was last tried; ok when it has, and before.
    status why_full() const;
    /// Gives back a reserved block, or one whose retraction is durable.
    void release(thread_cache& cache, block b) noexcept {
        HF_ASSERT_SLOW(heap_.well_formed(b));
        HF_ASSERT_SLOW(!heap_.bit(b.offset));                  // never published, or retracted
        if (heap_.is_slab(b.bytes) && !is_full()) [[likely]] { // (6)
            auto& at_hand = cache.blocks[heap_.classes().class_of(b.bytes)];
            if (at_hand.size() != at_hand.capacity()) [[likely]]
                return at_hand.push_back(b.offset);
        }
        release_otherwise(cache, b);
    }
    /// Gives back everything a thread keeps at hand.
    void release_all(thread_cache& cache) noexcept;

    /// The allocated block that starts at 'offset'; bytes 0 if no block starts there. Loads its
    /// chunk's volatile state, so that the block can be retracted safely afterwards (1).
    [[gnu::always_inline]] block find(std::uint64_t offset) {
        const heap_extent* const e = heap_.find_extent(offset);
        if (e == nullptr) [[unlikely]]
            return {offset, 0};
        const block b = heap_.allocated_in(*e, offset);
        if (b.bytes != 0 && !is_known(*e, offset)) [[unlikely]]
            take_in(b);
        return b;
    }

    /// Gives the disk space of free chunks back to the file system, a piece at a time; others
    /// allocate in between. What only logs may use keeps its own. Returns the bytes given back.
    /// Errors: mode_unavailable (the file system cannot), io_error. Throws std::bad_alloc.
    result<std::uint64_t> trim();
    /// From here on no chunk behind the pool's first 'bytes' is taken for data. False: the pool
    /// does not grow any more in any case. Any thread.
    bool limit_growth(std::uint64_t bytes);
    std::uint64_t growth_limit() const noexcept { return growth_limit_; }
    /// Bytes of free chunks that are known to have no space on the disk, or may have none.
    std::uint64_t hole_bytes() const;

    /// Recovery: takes a block that a pending section's log names out of circulation, and gives its
    /// chunk the entry that publishing needs. False when the block cannot be one, or has bytes of a
    /// block that is allocated or was claimed before: released twice, it would be handed out twice.
    bool claim(block b);

    heap& durable() noexcept { return heap_; }
    const heap& durable() const noexcept { return heap_; }
    pool_file& file() noexcept { return *file_; }

private:
    struct slab_list {
        std::mutex lock;
        std::vector<slab_state*> partial; // chunks with free slots, the current one last
    };
    struct free_memory {
        void operator()(void* memory) const noexcept { std::free(memory); }
    };
    struct extent_state {
        // Per chunk; null: not examined, or no slab. Memory that the system fills with zeros where
        // it is touched.
        std::unique_ptr<std::atomic<slab_state*>[], free_memory> slabs;
        std::uint64_t scanned = 0; // chunks before this one are known
    };

    using chunk_runs = std::map<std::uint64_t, std::uint64_t>; // offset -> chunks; never adjacent

    bool overlaps_large(std::uint64_t offset, std::uint64_t bytes) const noexcept;
    void look_for_large();
    bool claim_slot(block b, const heap_extent& e, std::uint64_t chunk);
    /// Whether the chunk around 'offset' has its slab_state.
    bool is_known(const heap_extent& e, std::uint64_t offset) const noexcept {
        const unsigned i = heap_.number_of(e);
        return i < extents_known_.load(std::memory_order_acquire) &&
               extents_[i].slabs[heap_.chunk_number(e, offset)].load(std::memory_order_acquire) !=
                   nullptr;
    }
    static std::uint64_t take_last(std::vector<std::uint64_t>& at_hand) noexcept {
        const std::uint64_t last = at_hand.back();
        at_hand.pop_back();
        return last;
    }
    block reserve_otherwise(thread_cache& cache, std::uint64_t bytes, purpose what);
    void release_otherwise(thread_cache& cache, block b) noexcept;
    void take_in(block allocated);
    block reserve_known(thread_cache& cache, std::uint64_t bytes, purpose what);
    bool refill(thread_cache& cache, unsigned size_class);
    slab_state* next_slab(slab_list& list, unsigned size_class);
    void take_fresh(std::uint64_t chunk_offset, unsigned size_class);
    std::uint64_t next_unexamined(unsigned size_class);
    slab_state* examine(std::uint64_t chunk_offset, unsigned size_class);
    std::atomic<slab_state*>& slab_place(std::uint64_t offset) const noexcept;
    void list_slab(slab_list& list, slab_state* slab);
    void unlist_slab(slab_list& list, slab_state* slab);
    bool scanned(std::uint64_t offset) const noexcept;
    std::uint64_t take_chunks(std::uint64_t chunks, const growth_bound& until);
    std::uint64_t find_chunks(std::uint64_t chunks, const growth_bound& until);
    void take_in_growth();
    void note_refused(const status& why);
    /// Behind it nothing but logs is put.
    growth_bound data_bound() const noexcept;
    std::uint64_t take_free(std::uint64_t chunks, std::uint64_t end);
    bool scan_more();
    std::uint64_t scan_one(unsigned extent);
    void add_free_run(std::uint64_t offset, std::uint64_t chunks) {
        add_run(free_runs_, offset, chunks);
        free_known_ += chunks;
    }
    void add_run(chunk_runs& to, std::uint64_t offset, std::uint64_t chunks);
    bool carve(chunk_runs& from, std::uint64_t offset, std::uint64_t chunks);
    bool touch(std::uint64_t offset, std::uint64_t chunks, std::uint64_t next) const noexcept;
    bool fill_holes(std::uint64_t chunks, std::uint64_t end, status& why);
    bool fill(std::uint64_t offset, std::uint64_t chunks, status& why);
    std::uint64_t holes_among(std::uint64_t offset, std::uint64_t chunks) const;
    result<std::uint64_t> trim_next(std::uint64_t& from);
    bool is_full() const noexcept { return full_.load(std::memory_order_relaxed); }
    void put_back(unsigned size_class, const std::uint64_t* offsets, std::size_t count) noexcept;
    void return_chunk(slab_list& list, slab_state* slab);
    bool return_kept_chunks() noexcept;
    bool is_scarce() const noexcept;
    void take_in_extents();
    /// Whether free runs, in order, are of known chunks and not adjacent, and no block that is out
    /// of circulation lies in one.
    bool valid() const noexcept;
    bool valid(const chunk_runs& runs) const noexcept;
    bool has_slab(std::uint64_t offset, std::uint64_t chunks) const noexcept;

    pool_file* file_;
    heap heap_;
    const std::uint64_t log_reserve_;
    std::atomic<std::uint64_t>
        growth_limit_;                     // no promise to other threads' allocations in progress
    std::atomic<bool> full_{false};        // (6)
    std::atomic<bool> chunks_kept_{false}; // classes may have wholly free chunks
    std::vector<slab_list> slabs_;         // by class
    mutable std::mutex chunks_;            // guards what follows, and growth
    status refused_;                       // the growth that was tried last
    chunk_runs free_runs_;                 // with space on the disk
    std::uint64_t free_known_ = 0;         // chunks in free_runs_
    chunk_runs holes_;                     // free, and maybe without (5)
    std::uint64_t holes_known_ = 0;        // chunks in holes_
    std::map<std::uint64_t, std::uint64_t> large_; // large blocks out of circulation whatever their
                                                   // bit says: offset -> bytes
    // Large blocks that were allocated when the first claim was made, in address order. A log may
    // name bytes inside of one, and a bit stands for its start alone.
    std::vector<block> allocated_large_;
    bool looked_for_large_ = false;
    std::vector<std::vector<std::uint64_t>> unexamined_; // by class: slab chunks, bits not read yet
    std::array<extent_state, extents_max> extents_;
    std::atomic<unsigned> extents_known_{0};
};

} // namespace hf
