// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The heap's durable state: per chunk an entry, per 16-byte granule a bit. Nothing else about the
// allocator is stored; free lists are volatile and found again as they are needed.
//
// (1) A block is allocated if and only if the bit of its first granule is set and its chunk's entry
//     gives a class (slab) or run length (large) in which a block can start there.
// (2) Every change is idempotent and is made only by a committing section (or by recovery, from its
//     log), so a crash in the middle of one is cured by making it again.
// (3) An entry of a chunk without set bits says nothing: such a chunk is free, whatever it reads.
#pragma once

#include <alloc/size_classes.hpp>
#include <base/alone.hpp>
#include <base/assert.hpp>
#include <pool/pool_file.hpp>

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <vector>

namespace hf {

/// A block of the heap: where it starts, from pool start, and what it occupies (rounded).
struct block {
    std::uint64_t offset;
    std::uint64_t bytes;
};

enum class chunk_kind : std::uint8_t { free = 0, slab = 1, large = 2 };

/// A chunk's durable entry: [kind:8][size class:8][reserved:16][run length in chunks:32].
struct chunk_entry {
    std::uint64_t word;

    static chunk_entry slab(unsigned size_class) noexcept {
        return {std::uint64_t{1} | std::uint64_t{size_class} << 8};
    }
    static chunk_entry large(std::uint64_t chunks) noexcept {
        return {std::uint64_t{2} | chunks << 32};
    }
    chunk_kind kind() const noexcept { return static_cast<chunk_kind>(word & 0xff); }
    unsigned size_class() const noexcept { return static_cast<unsigned>(word >> 8 & 0xff); }
    std::uint64_t run_chunks() const noexcept { return word >> 32; }
};
static_assert(sizeof(chunk_entry) == 8);

/// One extent, split into its tables and its chunks.
struct alignas(64) heap_extent {
    std::uint64_t data_offset = 0;             // first chunk, from pool start
    std::atomic<std::uint64_t> data_bytes = 0; // of its chunks
    std::atomic<std::uint64_t> chunks = 0;     // grows, of the last extent, while others read it
    std::uint64_t chunks_max = 0;              // that the tables have room for
    std::uint64_t* entries = nullptr;          // durable, one per chunk
    std::uint64_t* bits = nullptr;             // durable, one bit per granule of the chunks
    std::uint64_t metadata_bytes = 0;

    bool covers(std::uint64_t offset) const noexcept {
        return offset - data_offset < data_bytes.load(std::memory_order_acquire);
    }
};

class heap {
public:
    explicit heap(pool_file& file);

    /// Takes in what the file has become longer by. Threads: the caller serialises.
    void refresh() noexcept;
    /// Whether every extent's tables lie in front of its chunks, and extents in file order, apart.
    bool valid() const noexcept;
    unsigned extent_count() const noexcept { return count_.load(std::memory_order_acquire); }
    const heap_extent& extent_at(unsigned i) const noexcept {
        HF_ASSERT_SLOW(i < extent_count());
        return extents_[i];
    }
    /// Index of the extent whose chunks cover 'offset'; extent_count() when none does.
    unsigned extent_of(std::uint64_t offset) const noexcept {
        const heap_extent* const e = find_extent(offset);
        return e == nullptr ? extent_count() : number_of(*e);
    }
    /// The same extent; null when none does.
    const heap_extent* find_extent(std::uint64_t offset) const noexcept {
        // The newest extent is the largest and the busiest.
        const heap_extent* e = newest_.load(std::memory_order_acquire);
        while (!e->covers(offset))
            if (e-- == extents_.data()) return nullptr;
        return e;
    }
    unsigned number_of(const heap_extent& e) const noexcept {
        return static_cast<unsigned>(&e - extents_.data());
    }
    /// The same. Requires: one covers 'offset'.
    const heap_extent& extent_around(std::uint64_t offset) const noexcept {
        HF_ASSERT_SLOW(covers(offset, granule_bytes));
        const heap_extent* e = newest_.load(std::memory_order_acquire);
        while (offset < e->data_offset) --e;
        return *e;
    }
    /// Counts the extent's chunks before the one around 'offset'. Requires: the extent covers that.
    std::uint64_t chunk_number(const heap_extent& e, std::uint64_t offset) const noexcept {
        return (offset - e.data_offset) >> chunk_shift_;
    }
    /// How far into its chunk 'offset' is. Requires: the same.
    std::uint64_t in_chunk(const heap_extent& e, std::uint64_t offset) const noexcept {
        return (offset - e.data_offset) & (chunk_bytes_ - 1);
    }

    const size_classes& classes() const noexcept { return classes_; }
    std::uint64_t chunk_bytes() const noexcept { return chunk_bytes_; }
    /// The bytes that a request of 'bytes' occupies. 0 when no block can be that large.
    std::uint64_t rounded(std::uint64_t bytes) const noexcept;
    bool is_slab(std::uint64_t bytes) const noexcept { return bytes <= classes_.slab_max_bytes(); }

    chunk_entry entry(const heap_extent& e, std::uint64_t chunk) const noexcept {
        HF_ASSERT_SLOW(chunk < e.chunks);
        return {std::atomic_ref(e.entries[chunk]).load(std::memory_order_acquire)};
    }
    /// Whether [offset, offset + bytes) lies in the chunks of one extent.
    bool covers(std::uint64_t offset, std::uint64_t bytes) const noexcept {
        const unsigned i = extent_of(offset);
        if (i == extent_count()) return false;
        const heap_extent& e = extents_[i];
        return bytes <= e.data_offset + e.chunks * chunk_bytes_ - offset;
    }
    /// Offset of the chunk that the block starts in. Requires: a block of the heap.
    std::uint64_t chunk_of(block b) const noexcept {
        HF_ASSERT_SLOW(covers(b.offset, b.bytes));
        const heap_extent& e = extent_around(b.offset);
        return b.offset - in_chunk(e, b.offset);
    }
    bool bit(std::uint64_t offset) const noexcept;
    /// Whether the chunk that the slot is in is one of slots of its size. Requires: a slot of the
    /// heap.
    bool allocates_here(block slot) const noexcept {
        const heap_extent& e = extents_[extent_of(slot.offset)];
        return entry(e, chunk_number(e, slot.offset)).word ==
               chunk_entry::slab(classes_.class_of(slot.bytes)).word;
    }
    /// Chunks that no block is in, as ranges of the file, in order. Throws std::bad_alloc.
    std::vector<extent> spare() const;
    /// Granule bits set in the whole heap: as many as blocks, unless the tables are damaged.
    std::uint64_t bits_set() const noexcept;
    /// True when no granule bit of the chunk is set.
    bool chunk_empty(const heap_extent& e, std::uint64_t chunk) const noexcept;
    /// Whether 'b', well-formed, is allocated, or no block of another size is in its chunks.
    bool may_hold(block b) const noexcept;
    /// True when 'b' could be a block: bounds, alignment to its slot or chunk, rounded size.
    bool well_formed(block b) const noexcept;

    /// Makes 'b' allocated; calls dirty(address) for each word changed. Idempotent. A failure may
    /// keep one word and not the other, so a log must name the block (2); without one, name_chunk
    /// and set_bit want an ordering point between them.
    template <class Dirty> void publish(block b, Dirty&& dirty) {
        name_chunk(b, dirty);
        set_bit(b, dirty);
    }
    /// The first half of publish: the chunk's entry says what block starts there.
    template <class Dirty> void name_chunk(block b, Dirty&& dirty) {
        HF_ASSERT_SLOW(well_formed(b));
        const heap_extent& e = extent_around(b.offset);
        const chunk_entry wanted = is_slab(b.bytes) ? chunk_entry::slab(classes_.class_of(b.bytes))
                                                    : chunk_entry::large(b.bytes >> chunk_shift_);
        std::uint64_t& named = e.entries[chunk_number(e, b.offset)];
        if (std::atomic_ref(named).load(std::memory_order_acquire) != wanted.word)
            std::atomic_ref(named).store(wanted.word, std::memory_order_release);
        dirty(&named); // even if another thread stored it: it may not have flushed it
    }
    /// The second half.
    template <class Dirty> [[gnu::always_inline]] void set_bit(block b, Dirty&& dirty) {
        HF_ASSERT_SLOW(b.offset % granule_bytes == 0);
        const heap_extent& e = extent_around(b.offset);
        const std::uint64_t g = (b.offset - e.data_offset) / granule_bytes;
        const std::uint64_t bit = std::uint64_t{1} << g % 64;
        const std::atomic_ref word(e.bits[g / 64]);
        if (is_alone()) word.store(word.load() | bit, std::memory_order_release);
        else if (has_byte(b))
            byte_of(e, g).store(std::uint8_t(1u << g % 8), std::memory_order_release);
        else word.fetch_or(bit);
        dirty(&e.bits[g / 64]);
    }
    /// The same where order is kept, of a block that the allocator has handed out: it has named the
    /// chunk of a small one, and no word needs a flush that another thread stored.
    template <class Dirty> [[gnu::always_inline]] void publish_in_order(block b, Dirty&& dirty) {
        HF_ASSERT_SLOW(well_formed(b));
        if (!is_slab(b.bytes)) [[unlikely]]
            name_chunk(b, dirty);
        HF_ASSERT_SLOW(!is_slab(b.bytes) || allocates_here(b));
        set_bit(b, dirty);
    }
    /// Makes 'b' free; a large block's entry goes with it. Idempotent. As with publish, a log must
    /// name a large block; without one, clear_bit is enough (3).
    template <class Dirty> [[gnu::always_inline]] void retract(block b, Dirty&& dirty) {
        HF_ASSERT_SLOW(well_formed(b));
        clear_bit(b, dirty);
        if (is_slab(b.bytes)) [[likely]]
            return;
        const heap_extent& e = extent_around(b.offset);
        const std::uint64_t chunk = chunk_number(e, b.offset);
        std::atomic_ref(e.entries[chunk]).store(0, std::memory_order_release);
        dirty(&e.entries[chunk]);
    }
    template <class Dirty> [[gnu::always_inline]] void clear_bit(block b, Dirty&& dirty) {
        HF_ASSERT_SLOW(b.offset % granule_bytes == 0);
        const heap_extent& e = extent_around(b.offset);
        const std::uint64_t g = (b.offset - e.data_offset) / granule_bytes;
        const std::uint64_t bit = std::uint64_t{1} << g % 64;
        const std::atomic_ref word(e.bits[g / 64]);
        if (is_alone()) word.store(word.load() & ~bit, std::memory_order_release);
        else if (has_byte(b)) byte_of(e, g).store(0, std::memory_order_release);
        else word.fetch_and(~bit);
        dirty(&e.bits[g / 64]);
    }
    /// The word with the bit of 'offset'. Requires: covers(offset, granule_bytes).
    const std::uint64_t* word_of(std::uint64_t offset) const noexcept {
        const heap_extent& e = extent_around(offset);
        return &e.bits[(offset - e.data_offset) / granule_bytes / 64];
    }
    /// The allocated block that starts at 'offset', from the durable state; bytes 0 when none does.
    block allocated_at(std::uint64_t offset) const noexcept {
        const heap_extent* const e = find_extent(offset);
        return e == nullptr ? block{offset, 0} : allocated_in(*e, offset);
    }
    /// The same. Requires: the extent covers 'offset'.
    [[gnu::always_inline]] block allocated_in(const heap_extent& e,
                                              std::uint64_t offset) const noexcept {
        HF_ASSERT_SLOW(e.covers(offset));
        if (offset % granule_bytes != 0) return {offset, 0};
        const std::uint64_t g = (offset - e.data_offset) / granule_bytes;
        if ((std::atomic_ref(e.bits[g / 64]).load(std::memory_order_acquire) >> g % 64 & 1) == 0)
            return {offset, 0};
        const chunk_entry what = entry(e, chunk_number(e, offset));
        if (what.kind() == chunk_kind::slab && what.size_class() < classes_.count() &&
            classes_.is_slot(in_chunk(e, offset), what.size_class()))
            return {offset, classes_.block_bytes(what.size_class())};
        if (what.kind() != chunk_kind::large) return {offset, 0};
        return allocated_large({offset, what.run_chunks() << chunk_shift_});
    }

    /// Visits the numbers of the slots of 'size' bytes whose bits are set in the chunk that starts
    /// at 'offset'.
    template <class Visit>
    void for_each_slot(std::uint64_t offset, std::uint64_t size, Visit&& visit) const {
        HF_ASSERT_SLOW(covers(offset, chunk_bytes_));
        HF_ASSERT_SLOW(size > 0);
        const heap_extent& e = extents_[extent_of(offset)];
        HF_ASSERT_SLOW((offset - e.data_offset) % chunk_bytes_ == 0);
        HF_ASSERT_SLOW(size % granule_bytes == 0);
        const std::uint64_t words = chunk_bytes_ / granule_bytes / 64;
        const std::uint64_t first = chunk_number(e, offset) * words;
        for (std::uint64_t w = 0; w < words; ++w) {
            const std::atomic_ref word(e.bits[first + w]);
            // Bits off slot starts, or past the last slot, mean nothing.
            for (std::uint64_t left = word.load(std::memory_order_acquire); left != 0;
                 left &= left - 1) {
                const std::uint64_t within =
                    (w * 64 + static_cast<unsigned>(std::countr_zero(left))) * granule_bytes;
                if (within % size == 0 && within + size <= chunk_bytes_) visit(within / size);
            }
        }
    }
    /// Visits every allocated block, in address order.
    template <class Visit> void for_each(Visit&& visit) const {
        for (unsigned i = 0; i < extent_count(); ++i)
            for (std::uint64_t c = 0; c < extents_[i].chunks;)
                c += visit_chunk(extents_[i], c, visit);
    }

private:
    /// bytes 0: no such block can start there.
    block allocated_large(block b) const noexcept;
    // Threads change bits of one word. A locked operation keeps them all, and waits for every flush
    // before it. A load and a store do while the process has one thread: no other can set a bit
    // between them. A plain store of a byte is enough where it has no other block's bit: slots of
    // such a size start at least eight granules apart.
    static constexpr bool has_byte(block b) noexcept { return b.bytes >= 8 * granule_bytes; }
    static std::atomic_ref<std::uint8_t> byte_of(const heap_extent& e, std::uint64_t g) noexcept {
        return std::atomic_ref(reinterpret_cast<std::uint8_t*>(e.bits)[g / 8]);
    }
    template <class Visit>
    std::uint64_t visit_chunk(const heap_extent& e, std::uint64_t chunk, Visit&& visit) const {
        const chunk_entry what = entry(e, chunk);
        const std::uint64_t start = e.data_offset + chunk * chunk_bytes_;
        if (what.kind() == chunk_kind::large && bit(start)) {
            // A run that leaves its extent is no block (allocated_at): the entry was damaged.
            const std::uint64_t run = what.run_chunks();
            if (run == 0 || run > e.chunks - chunk) return 1;
            visit(block{start, run * chunk_bytes_});
            return run;
        }
        if (what.kind() != chunk_kind::slab || what.size_class() >= classes_.count()) return 1;
        const std::uint64_t size = classes_.block_bytes(what.size_class());
        for_each_slot(start, size,
                      [&](std::uint64_t slot) { visit(block{start + slot * size, size}); });
        return 1;
    }

    pool_file* file_;
    std::uint64_t chunk_bytes_;
    unsigned chunk_shift_; // its logarithm
    const size_classes& classes_;
    std::array<heap_extent, extents_max> extents_;
    std::atomic<unsigned> count_{0};
    std::atomic<const heap_extent*> newest_{extents_.data()}; // an empty one before there is one
};

} // namespace hf
