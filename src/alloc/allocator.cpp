// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <alloc/allocator.hpp>
#include <base/assert.hpp>
#include <base/line.hpp>
#include <pool/file_checks.hpp>

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

namespace hf {

/// Volatile state of one slab chunk; guarded by its class's lock.
struct slab_state {
    std::uint64_t offset; // of the chunk, from pool start
    unsigned size_class;
    std::uint32_t slots;
    std::uint32_t free;               // clear bits in 'taken'
    std::size_t listed_at;            // place in slab_list::partial; unlisted: not there
    std::vector<std::uint64_t> taken; // one bit a slot

    /// Whether 'free' counts the clear bits, and every set bit belongs to a slot.
    bool valid() const noexcept {
        std::uint64_t used = 0;
        for (const std::uint64_t word : taken) used += static_cast<unsigned>(std::popcount(word));
        const bool whole = slots % 64 == 0 || taken.back() >> slots % 64 == 0;
        return taken.size() == (slots + 63) / 64 && whole && used + free == slots;
    }
    bool is_taken(std::uint64_t slot) const noexcept {
        return slot < slots && (taken[slot / 64] >> slot % 64 & 1) != 0;
    }
};

namespace {

constexpr std::size_t unlisted = ~std::size_t{0};
// A refill takes about this many bytes of blocks, so that a thread keeps little of large classes.
constexpr std::uint64_t refill_bytes = 16 * 1024;
constexpr std::uint64_t refill_blocks_max = 64;
// Slab chunks whose bits one refill may read before it rather takes a fresh chunk (2).
constexpr unsigned examine_budget = 16;

std::uint64_t refill_count(std::uint64_t block_bytes) {
    return std::clamp<std::uint64_t>(refill_bytes / block_bytes, 1, refill_blocks_max);
}

} // namespace

allocator::allocator(pool_file& file)
    : file_(&file), heap_(file),
      log_reserve_(log_reserve_bytes(file.shape().max_bytes, heap_.chunk_bytes())),
      growth_limit_(file.shape().max_bytes), slabs_(heap_.classes().count()),
      unexamined_(heap_.classes().count()) {
    take_in_extents();
    full_ = file_->size_bytes() >= data_bound().bytes;
}

allocator::~allocator() {
    for (unsigned i = 0; i < extents_known_; ++i)
        for (std::uint64_t c = 0; c < heap_.extent_at(i).chunks && extents_[i].slabs; ++c)
            delete extents_[i].slabs[c].load(std::memory_order_relaxed);
}

void allocator::take_in_extents() {
    heap_.refresh();
    for (unsigned i = extents_known_; i < heap_.extent_count(); ++i) {
        extents_[i].slabs.reset(static_cast<std::atomic<slab_state*>*>(
            std::calloc(heap_.extent_at(i).chunks_max + 1, sizeof(std::atomic<slab_state*>))));
        if (extents_[i].slabs == nullptr) throw std::bad_alloc(); // taken in by the next growth
        extents_known_.store(i + 1, std::memory_order_release);
    }
    HF_ASSERT(extents_known_ == heap_.extent_count());
    HF_ASSERT_SLOW(valid());
}

bool allocator::valid() const noexcept {
    return valid(free_runs_) && valid(holes_) &&
           std::ranges::none_of(holes_, [this](const auto& hole) {
               const auto after =
                   free_runs_.lower_bound(hole.first + hole.second * heap_.chunk_bytes());
               return after != free_runs_.begin() &&
                      std::prev(after)->first + std::prev(after)->second * heap_.chunk_bytes() >
                          hole.first;
           });
}

bool allocator::valid(const chunk_runs& runs) const noexcept {
    const std::uint64_t chunk_bytes = heap_.chunk_bytes();
    std::uint64_t end = 0, end_extent = ~std::uint64_t{0}; // of the run before
    for (const auto& [offset, chunks] : runs) {
        const std::uint64_t bytes = chunks * chunk_bytes;
        const unsigned extent = heap_.extent_of(offset);
        if (chunks == 0 || !heap_.covers(offset, bytes)) return false;
        if ((offset - heap_.extent_at(extent).data_offset) % chunk_bytes != 0) return false;
        if (offset < end || (offset == end && extent == end_extent)) return false;
        if (!scanned(offset + bytes - chunk_bytes)) return false;
        if (auto large = large_.lower_bound(offset + bytes); large != large_.begin()) {
            --large; // the last that starts before the run's end
            if (large->first + large->second > offset) return false;
        }
        end = offset + bytes;
        end_extent = extent;
    }
    return true;
}

/// Whether slots of any of these chunks are, or may be, in use. For assertions.
bool allocator::has_slab(std::uint64_t offset, std::uint64_t chunks) const noexcept {
    for (std::uint64_t c = 0; c < chunks; ++c)
        if (slab_place(offset + c * heap_.chunk_bytes()).load() != nullptr) return true;
    return false;
}

/// Where the state of the chunk around 'offset' is kept. Requires: an offset of the heap.
std::atomic<slab_state*>& allocator::slab_place(std::uint64_t offset) const noexcept {
    const unsigned i = heap_.extent_of(offset);
    HF_ASSERT(i < extents_known_.load(std::memory_order_acquire));
    return extents_[i].slabs[heap_.chunk_number(heap_.extent_at(i), offset)];
}

/// True when the cursor has passed the chunk. Requires: chunks_ held, or the constructor.
bool allocator::scanned(std::uint64_t offset) const noexcept {
    const unsigned i = heap_.extent_of(offset);
    HF_ASSERT_SLOW(i < extents_known_.load(std::memory_order_acquire));
    return (offset - heap_.extent_at(i).data_offset) / heap_.chunk_bytes() < extents_[i].scanned;
}

void allocator::list_slab(slab_list& list, slab_state* slab) {
    HF_ASSERT_SLOW(held_here(list.lock));
    HF_ASSERT_SLOW(slab->listed_at == unlisted);
    HF_ASSERT_SLOW(slab->free > 0);
    list.partial.push_back(slab);
    slab->listed_at = list.partial.size() - 1;
}

void allocator::unlist_slab(slab_list& list, slab_state* slab) {
    HF_ASSERT_SLOW(held_here(list.lock));
    HF_ASSERT_SLOW(slab->listed_at < list.partial.size());
    HF_ASSERT_SLOW(list.partial[slab->listed_at] == slab);
    list.partial.back()->listed_at = slab->listed_at;
    list.partial[slab->listed_at] = list.partial.back();
    list.partial.pop_back();
    slab->listed_at = unlisted;
}

block allocator::reserve_otherwise(thread_cache& cache, std::uint64_t bytes, purpose what) {
    const block found = reserve_known(cache, bytes, what);
    if (found.offset != 0) return found;
    // Upholds (6): what was kept before the pool was full is part of what there is.
    release_all(cache);
    return return_kept_chunks() ? reserve_known(cache, bytes, what) : found;
}

block allocator::reserve_known(thread_cache& cache, std::uint64_t bytes, purpose what) {
    const std::uint64_t size = heap_.rounded(std::max<std::uint64_t>(bytes, 1));
    if (size == 0) {
        const std::scoped_lock held{chunks_};
        note_refused(refusal(file_->path(), errc::pool_full,
                             "that is more than the pool may ever hold: open it with a larger "
                             "open_options::max_bytes"));
        return {0, 0};
    }
    if (what == purpose::log) {
        if (const block b = reserve_known(cache, bytes, purpose::data); b.offset != 0) return b;
        const std::uint64_t chunks = (size + heap_.chunk_bytes() - 1) / heap_.chunk_bytes();
        std::scoped_lock held{chunks_};
        const std::uint64_t offset =
            take_chunks(chunks, {file_->shape().max_bytes, growth_bound::max_bytes});
        if (offset != 0) large_[offset] = chunks * heap_.chunk_bytes();
        return {offset, offset == 0 ? 0 : chunks * heap_.chunk_bytes()};
    }
    if (!heap_.is_slab(size)) {
        std::scoped_lock held{chunks_};
        const std::uint64_t offset = take_chunks(size / heap_.chunk_bytes(), data_bound());
        if (offset != 0) large_[offset] = size;
        return {offset, offset == 0 ? 0 : size};
    }
    HF_ASSERT_SLOW(size >= bytes);
    const unsigned size_class = heap_.classes().class_of(size);
    auto& at_hand = cache.blocks[size_class];
    if (at_hand.empty() && !refill(cache, size_class)) return {0, 0};
    const std::uint64_t offset = take_last(at_hand);
    HF_ASSERT_SLOW(heap_.well_formed({offset, size}));
    return {offset, size};
}

void allocator::release_otherwise(thread_cache& cache, block b) noexcept try {
    if (!heap_.is_slab(b.bytes)) {
        std::scoped_lock held{chunks_};
        HF_ASSERT_SLOW(!large_.contains(b.offset) || large_[b.offset] == b.bytes);
        large_.erase(b.offset);
        // Chunks that the cursor has not reached yet are left for it to find.
        if (scanned(b.offset)) add_free_run(b.offset, b.bytes / heap_.chunk_bytes());
        return;
    }
    const unsigned size_class = heap_.classes().class_of(b.bytes);
    auto& at_hand = cache.blocks[size_class];
    const std::uint64_t few = refill_count(b.bytes), most = 2 * few;
    const bool full = is_full(); // (6)
    if (full || at_hand.size() >= most) {
        const std::uint64_t count = full ? at_hand.size() : few; // the oldest
        cache.named_chunk[size_class] = 0;
        if (count != 0) put_back(size_class, at_hand.data(), count);
        at_hand.erase(at_hand.begin(), at_hand.begin() + static_cast<std::ptrdiff_t>(count));
        if (full) return put_back(size_class, &b.offset, 1);
    }
    at_hand.reserve(most);
    at_hand.push_back(b.offset);
} catch (const std::bad_alloc&) { // (4)
}

void allocator::release_all(thread_cache& cache) noexcept {
    for (unsigned c = 0; c < cache.blocks.size(); ++c) {
        if (cache.blocks[c].empty()) continue;
        cache.named_chunk[c] = 0;
        put_back(c, cache.blocks[c].data(), cache.blocks[c].size());
        cache.blocks[c].clear();
    }
}

bool allocator::refill(thread_cache& cache, unsigned size_class) {
    const std::uint64_t size = heap_.classes().block_bytes(size_class);
    auto& at_hand = cache.blocks[size_class];
    HF_ASSERT_SLOW(at_hand.empty());   // all of it is put into order below
    if (is_full()) release_all(cache); // upholds (6)
    cache.named_chunk[size_class] = 0;
    slab_list& list = slabs_[size_class];
    std::scoped_lock held{list.lock};
    slab_state* slab = next_slab(list, size_class); // which learns whether the pool is full
    std::uint64_t wanted = is_full() ? 1 : refill_count(size);
    for (; wanted > 0 && slab != nullptr;
         slab = wanted > 0 ? next_slab(list, size_class) : nullptr) {
        for (std::size_t w = 0; w < slab->taken.size() && wanted > 0 && slab->free > 0; ++w) {
            while (wanted > 0 && slab->taken[w] != ~std::uint64_t{0}) {
                const auto bit = static_cast<unsigned>(std::countr_one(slab->taken[w]));
                if (w * 64 + bit >= slab->slots) break;
                slab->taken[w] |= std::uint64_t{1} << bit;
                --slab->free;
                --wanted;
                at_hand.push_back(slab->offset + (w * 64 + bit) * size);
                HF_ASSERT_SLOW(!heap_.bit(at_hand.back())); // 'taken' covers what is allocated (1)
            }
        }
        HF_ASSERT_SLOW(slab->valid());
    }
    // Used from the back: lowest addresses first, so that neighbours share lines and bitmap words.
    std::reverse(at_hand.begin(), at_hand.end());
    return !at_hand.empty();
}

/// A chunk of this class with a free slot. Requires: list.lock held.
slab_state* allocator::next_slab(slab_list& list, unsigned size_class) {
    HF_ASSERT_SLOW(held_here(list.lock));
    HF_ASSERT_SLOW(&list == &slabs_[size_class]);
    unsigned examined = 0;
    for (bool last_resort = false;;) {
        while (!list.partial.empty()) {
            slab_state* slab = list.partial.back();
            HF_ASSERT_SLOW(slab->size_class == size_class);
            HF_ASSERT_SLOW(slab->valid());
            if (slab->free > 0) return slab;
            unlist_slab(list, slab);
        }
        if (last_resort || examined++ < examine_budget) {
            if (const std::uint64_t chunk = next_unexamined(size_class)) {
                examine(chunk, size_class);
                continue;
            }
            if (last_resort) return nullptr;
        }
        std::uint64_t fresh = 0;
        {
            std::scoped_lock held{chunks_};
            fresh = take_chunks(1, data_bound());
        }
        if (fresh != 0) take_fresh(fresh, size_class);
        else last_resort = true; // nothing left but the chunks not looked into yet
    }
}

/// Makes a free chunk one of this class. Where order is kept its entry says so from here on, and no
/// section has to: without set bits it says nothing (heap.hpp, 3). Requires: class lock held.
void allocator::take_fresh(std::uint64_t chunk_offset, unsigned size_class) {
    examine(chunk_offset, size_class);
    const hf::medium pm = file_->medium();
    if (pm.keeps_order())
        heap_.name_chunk({chunk_offset, heap_.classes().block_bytes(size_class)},
                         [pm](const void* word) { pm.flush(word, sizeof(chunk_entry)); });
}

/// A slab chunk of this class whose bits were not read yet, or 0. A chunk that has become free in
/// the meantime, and so may serve another class or a large block, is passed over. Its bits are
/// looked at before its entry: a thread that takes the chunk for something else stores the entry
/// first, so a bit of theirs is never taken for one of this class.
std::uint64_t allocator::next_unexamined(unsigned size_class) {
    std::scoped_lock held{chunks_};
    auto& waiting = unexamined_[size_class];
    while (!waiting.empty()) {
        const std::uint64_t offset = waiting.back();
        waiting.pop_back();
        const heap_extent& e = heap_.extent_at(heap_.extent_of(offset));
        const std::uint64_t chunk = (offset - e.data_offset) / heap_.chunk_bytes();
        if (!heap_.chunk_empty(e, chunk) &&
            heap_.entry(e, chunk).word == chunk_entry::slab(size_class).word)
            return offset;
    }
    return 0;
}

/// Makes the volatile state of a slab chunk from its durable bits (1). Requires: class lock held.
slab_state* allocator::examine(std::uint64_t chunk_offset, unsigned size_class) {
    HF_ASSERT_SLOW(held_here(slabs_[size_class].lock));
    HF_ASSERT_SLOW(heap_.covers(chunk_offset, heap_.chunk_bytes()));
    auto& place = slab_place(chunk_offset);
    if (slab_state* known = place.load(std::memory_order_acquire)) return known;
    const std::uint64_t size = heap_.classes().block_bytes(size_class);
    const std::uint32_t slots = heap_.classes().slots(size_class);
    auto slab = std::make_unique<slab_state>(
        slab_state{chunk_offset, size_class, slots, slots, unlisted, {}});
    slab->taken.assign((slots + 63) / 64, 0);
    heap_.for_each_slot(chunk_offset, size, [&](std::uint64_t s) {
        slab->taken[s / 64] |= std::uint64_t{1} << s % 64;
        --slab->free;
    });
    HF_ASSERT_SLOW(slab->valid());
    if (slab->free > 0) list_slab(slabs_[size_class], slab.get());
    place.store(slab.get(), std::memory_order_release);
    return slab.release();
}

/// Never in part: a slot that stayed with its giver as well would be handed out twice (4).
void allocator::put_back(unsigned size_class, const std::uint64_t* offsets,
                         std::size_t count) noexcept {
    const std::uint64_t size = heap_.classes().block_bytes(size_class);
    slab_list& list = slabs_[size_class];
    std::scoped_lock held{list.lock};
    for (std::size_t i = 0; i < count; ++i) {
        slab_state* slab = slab_place(offsets[i]).load(std::memory_order_acquire);
        HF_ASSERT(slab != nullptr);
        HF_ASSERT(slab->size_class == size_class);
        const std::uint64_t slot = (offsets[i] - slab->offset) / size;
        HF_ASSERT_SLOW((offsets[i] - slab->offset) % size == 0);
        HF_ASSERT_SLOW(slab->is_taken(slot)); // given back once
        slab->taken[slot / 64] &= ~(std::uint64_t{1} << slot % 64);
        ++slab->free;
        HF_ASSERT_SLOW(slab->valid());
        try {
            if (slab->listed_at == unlisted) list_slab(list, slab);
            if (slab->free < slab->slots) continue;
            if (list.partial.size() > 1 || is_full()) return_chunk(list, slab);
            else chunks_kept_ = true;
        } catch (const std::bad_alloc&) { // tried again when the chunk's next slot comes back
        }
    }
}

/// Makes a wholly free chunk of a class that has other room one that any class, or a large block,
/// may take. Requires: list.lock held.
void allocator::return_chunk(slab_list& list, slab_state* slab) {
    HF_ASSERT_SLOW(held_here(list.lock));
    HF_ASSERT_SLOW(slab->free == slab->slots);
    HF_ASSERT_SLOW(slab->listed_at != unlisted);
    std::scoped_lock held{chunks_};
    // A chunk that the cursor has not reached yet is left for it to find, as one that is free.
    if (scanned(slab->offset)) add_free_run(slab->offset, 1);
    unlist_slab(list, slab);
    slab_place(slab->offset).store(nullptr, std::memory_order_release);
    delete slab;
}

/// Returns the wholly free chunks that classes have kept; true when there was one. Requires: no
/// class's lock held.
bool allocator::return_kept_chunks() noexcept {
    bool any = false;
    if (!chunks_kept_.exchange(false)) return any;
    for (slab_list& list : slabs_) {
        std::scoped_lock held{list.lock};
        for (std::size_t i = list.partial.size(); i-- > 0;) {
            if (list.partial[i]->free < list.partial[i]->slots) continue;
            try {
                return_chunk(list, list.partial[i]); // one that was looked at takes its place
                any = true;
            } catch (const std::bad_alloc&) { // tried again when the chunk's next slot comes back
            }
        }
    }
    return any;
}

/// Whether a run ends where 'next' begins, in the same extent.
bool allocator::touch(std::uint64_t offset, std::uint64_t chunks,
                      std::uint64_t next) const noexcept {
    return offset + chunks * heap_.chunk_bytes() == next &&
           heap_.extent_of(offset) == heap_.extent_of(next);
}

/// Requires: chunks_ held.
void allocator::add_run(chunk_runs& to, std::uint64_t offset, std::uint64_t chunks) {
    HF_ASSERT_SLOW(chunks > 0);
    HF_ASSERT_SLOW(heap_.covers(offset, chunks * heap_.chunk_bytes()));
    [[maybe_unused]] const std::uint64_t chunk_bytes = heap_.chunk_bytes();
    auto run = to.emplace(offset, chunks).first; // all that can fail comes first
    HF_ASSERT_SLOW(run->second == chunks);       // not free already
    HF_ASSERT_SLOW(std::next(run) == to.end() ||
                   offset + chunks * chunk_bytes <= std::next(run)->first);
    if (auto next = std::next(run);
        next != to.end() && touch(run->first, run->second, next->first)) {
        run->second += next->second;
        to.erase(next);
    }
    if (run == to.begin()) return;
    HF_ASSERT_SLOW(std::prev(run)->first + std::prev(run)->second * chunk_bytes <= offset);
    if (auto before = std::prev(run); touch(before->first, before->second, run->first)) {
        before->second += run->second;
        to.erase(run);
    }
}

/// Takes exactly these chunks out of the runs, if they are there. Requires: chunks_ held.
bool allocator::carve(chunk_runs& from, std::uint64_t offset, std::uint64_t chunks) {
    HF_ASSERT_SLOW(held_here(chunks_));
    auto after = from.upper_bound(offset);
    if (after == from.begin()) return false;
    auto run = std::prev(after);
    const std::uint64_t chunk_bytes = heap_.chunk_bytes(), start = run->first, length = run->second;
    const std::uint64_t skip = (offset - start) / chunk_bytes;
    HF_ASSERT_SLOW(chunks > 0);
    HF_ASSERT_SLOW((offset - start) % chunk_bytes == 0);
    if (skip + chunks > length) return false;
    const std::uint64_t rest = length - skip - chunks;
    if (rest > 0) from[offset + chunks * chunk_bytes] = rest; // may fail, so it comes first
    if (skip > 0) run->second = skip;
    else from.erase(run);
    return true;
}

/// Offset of 'chunks' free neighbours before 'end', or 0. Requires: chunks_ held.
std::uint64_t allocator::take_free(std::uint64_t chunks, std::uint64_t end) {
    for (auto& [offset, length] : free_runs_) {
        if (length < chunks || offset + chunks * heap_.chunk_bytes() > end) continue;
        const std::uint64_t found = offset;
        [[maybe_unused]] const bool carved = carve(free_runs_, found, chunks);
        HF_ASSERT_SLOW(carved);
        HF_ASSERT_SLOW(!has_slab(found, chunks));
        free_known_ -= chunks;
        return found;
    }
    return 0;
}

/// Walks chunk entries until free chunks turn up; true when some did.
/// Requires: chunks_ held.
bool allocator::scan_more() {
    HF_ASSERT_SLOW(held_here(chunks_));
    std::uint64_t found = 0;
    for (unsigned i = 0; i < extents_known_; ++i)
        while (extents_[i].scanned < heap_.extent_at(i).chunks && found == 0) found += scan_one(i);
    return found > 0;
}

/// Classifies the next unknown chunk; returns how many free chunks that gave.
std::uint64_t allocator::scan_one(unsigned extent) {
    extent_state& state = extents_[extent];
    const heap_extent& e = heap_.extent_at(extent);
    const std::uint64_t chunk = state.scanned;
    const std::uint64_t offset = e.data_offset + chunk * heap_.chunk_bytes();
    const chunk_entry what = heap_.entry(e, chunk);
    HF_ASSERT_SLOW(chunk < e.chunks);
    state.scanned = chunk + 1;
    if (auto claimed = large_.find(offset); claimed != large_.end()) {
        state.scanned = chunk + claimed->second / heap_.chunk_bytes();
        return 0;
    }
    if (state.slabs[chunk].load(std::memory_order_acquire) != nullptr) return 0; // examined already
    if (what.kind() == chunk_kind::large && heap_.bit(offset)) {
        state.scanned = chunk + std::clamp<std::uint64_t>(what.run_chunks(), 1, e.chunks - chunk);
        return 0;
    }
    if (what.kind() == chunk_kind::slab && what.size_class() < heap_.classes().count() &&
        !heap_.chunk_empty(e, chunk)) {
        unexamined_[what.size_class()].push_back(offset);
        return 0;
    }
    if (!file_->sparse()) add_free_run(offset, 1);
    else add_run(holes_, offset, 1), ++holes_known_;
    return 1;
}

/// Loads the volatile state of the chunk that it is in.
void allocator::take_in(block allocated) {
    if (heap_.is_slab(allocated.bytes)) {
        const unsigned size_class = heap_.classes().class_of(allocated.bytes);
        std::scoped_lock held{slabs_[size_class].lock};
        examine(heap_.chunk_of(allocated), size_class);
    } else {
        std::scoped_lock held{chunks_};
        // The cursor must not meet its cleared bit before it is released.
        large_[allocated.offset] = allocated.bytes;
    }
}

/// Fills allocated_large_: about a nanosecond a chunk, once. Requires: chunks_ held.
void allocator::look_for_large() {
    HF_ASSERT_SLOW(held_here(chunks_));
    if (std::exchange(looked_for_large_, true)) return;
    for (unsigned i = 0; i < heap_.extent_count(); ++i) {
        const heap_extent& e = heap_.extent_at(i);
        for (std::uint64_t c = 0; c < e.chunks;) {
            const chunk_entry what = heap_.entry(e, c);
            const block b{e.data_offset + c * heap_.chunk_bytes(),
                          what.run_chunks() * heap_.chunk_bytes()};
            const bool large = what.kind() == chunk_kind::large && heap_.bit(b.offset) &&
                               what.run_chunks() != 0 && what.run_chunks() <= e.chunks - c;
            if (large) allocated_large_.push_back(b);
            c += large ? what.run_chunks() : 1;
        }
    }
    HF_ASSERT_SLOW(std::ranges::is_sorted(allocated_large_, {}, &block::offset));
}

/// True when a large block that is allocated, or out of circulation, has bytes of
/// [offset, offset + bytes). Requires: chunks_ held, look_for_large().
bool allocator::overlaps_large(std::uint64_t offset, std::uint64_t bytes) const noexcept {
    HF_ASSERT_SLOW(held_here(chunks_));
    HF_ASSERT_SLOW(looked_for_large_);
    const auto after =
        std::ranges::lower_bound(allocated_large_, offset + bytes, {}, &block::offset);
    if (after != allocated_large_.begin() && (after - 1)->offset + (after - 1)->bytes > offset)
        return true;
    auto next = large_.lower_bound(offset + bytes);
    if (next == large_.begin()) return false;
    --next; // the last that starts before the end; those before it are disjoint from it
    return next->first + next->second > offset;
}

bool allocator::claim(block b) {
    if (!heap_.well_formed(b)) return false;
    const heap_extent& e = heap_.extent_at(heap_.extent_of(b.offset));
    const std::uint64_t chunk = (b.offset - e.data_offset) / heap_.chunk_bytes();
    if (heap_.is_slab(b.bytes)) return claim_slot(b, e, chunk);
    std::scoped_lock held{chunks_};
    HF_ASSERT_SLOW(!scanned(b.offset)); // before the cursor: it passes what is claimed
    look_for_large();
    if (overlaps_large(b.offset, b.bytes)) return false;
    for (std::uint64_t c = chunk; c < chunk + b.bytes / heap_.chunk_bytes(); ++c) {
        const std::uint64_t offset = e.data_offset + c * heap_.chunk_bytes();
        if (slab_place(offset).load(std::memory_order_acquire) != nullptr ||
            !heap_.chunk_empty(e, c))
            return false;
    }
    large_[b.offset] = b.bytes;
    return true;
}

bool allocator::claim_slot(block b, const heap_extent& e, std::uint64_t chunk) {
    const std::uint64_t chunk_offset = e.data_offset + chunk * heap_.chunk_bytes();
    const unsigned size_class = heap_.classes().class_of(b.bytes);
    slab_list& list = slabs_[size_class];
    std::scoped_lock held{list.lock};
    {
        std::scoped_lock chunks_held{chunks_};
        HF_ASSERT_SLOW(!scanned(b.offset));
        look_for_large();
        if (overlaps_large(chunk_offset, heap_.chunk_bytes())) return false;
    }
    const slab_state* known = slab_place(chunk_offset).load(std::memory_order_acquire);
    if (known != nullptr && known->size_class != size_class) return false;
    if (heap_.entry(e, chunk).word != chunk_entry::slab(size_class).word) {
        if (!heap_.chunk_empty(e, chunk)) return false;
        std::atomic_ref(e.entries[chunk])
            .store(chunk_entry::slab(size_class).word, std::memory_order_release);
        file_->medium().flush(&e.entries[chunk], sizeof(chunk_entry));
    }
    slab_state* slab = examine(chunk_offset, size_class);
    HF_ASSERT_SLOW(slab->size_class == size_class);
    const std::uint64_t slot = (b.offset - chunk_offset) / b.bytes;
    HF_ASSERT_SLOW(slot < slab->slots);
    const std::uint64_t mask = std::uint64_t{1} << slot % 64;
    if ((slab->taken[slot / 64] & mask) != 0) return false;
    slab->taken[slot / 64] |= mask;
    --slab->free;
    HF_ASSERT_SLOW(slab->valid());
    return true;
}

} // namespace hf
