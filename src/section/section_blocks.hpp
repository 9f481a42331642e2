// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The blocks of a section: what its commit makes of each.
//
// (1) Until the commit the heap's durable state knows of none: a block that the section took or
//     adopted is reserved, one that it frees is allocated. The commit publishes the former and
//     retracts the latter.
// (2) A block that the section gives up or frees goes to others only after its commit mark.
#pragma once

#include <alloc/allocator.hpp>
#include <base/assert.hpp>
#include <section/block_set.hpp>

#include <holdfast/abi/holdfast_abi.h>

#include <algorithm>
#include <span>
#include <vector>

namespace hf {

class section_blocks {
public:
    /// Reserved by this section: fresh memory.
    const block_set& taken() const noexcept { return taken_; }
    /// Requires: it took one, and has freed none since.
    block newest() const noexcept { return *(taken_.end() - 1); }
    /// Staged before.
    const std::vector<block>& adopted() const noexcept { return adopted_; }
    const block_set& freed() const noexcept { return freed_; }
    /// Where the log continued.
    const std::vector<block>& segments() const noexcept { return segments_; }
    /// Whether the commit changes the heap's durable state.
    bool change_heap() const noexcept {
        return touched_ && (!taken_.empty() || !freed_.empty() || !adopted_.empty());
    }
    /// Whether no block belongs to a section, as between sections.
    bool empty() const noexcept {
        return !change_heap() && !gives_up() && unadopted_.empty() && segments_.empty();
    }
    /// Whether the section has had to do with any block.
    bool touched() const noexcept { return touched_; }
    /// Whether it took blocks that it has freed again.
    bool gives_up() const noexcept { return !unused_.empty(); }

    /// What can fail of the next take(). Throws std::bad_alloc.
    void make_room() { taken_.make_room(); }
    void take(block b) {
        touched_ = true;
        taken_.add(b);
    }
    void adopt(block b) {
        touched_ = did_more_ = true;
        adopted_.push_back(b);
    }
    /// Takes effect at the commit. Requires: the section has not taken it.
    void free(block b) {
        touched_ = true;
        freed_.add(b);
    }
    /// Frees a block of the section's own, which never becomes allocated. False: it has none there.
    bool free_own(std::uint64_t offset) { return touched_ && free_one_of_own(offset); }
    bool free_one_of_own(std::uint64_t offset) {
        if (const block own = taken_.remove(offset); own.bytes != 0) {
            did_more_ = true;
            return unused_.push_back(own), true;
        }
        if (!did_more_) return false;
        const auto own = std::ranges::find(adopted_, offset, &block::offset);
        if (own == adopted_.end()) return false;
        unadopted_.push_back(*own);
        adopted_.erase(own);
        return true;
    }
    /// What can fail of the next add_segment(). Throws std::bad_alloc.
    void make_room_for_segment() {
        if (segments_.size() == segments_.capacity()) segments_.reserve(2 * segments_.size() + 4);
    }
    void add_segment(block b) {
        touched_ = did_more_ = true;
        segments_.push_back(b);
    }

    /// Stores the owner of each block; calls 'dirty' with each word. Requires: the records that
    /// name the blocks are durable.
    template <bool InOrder, class Dirty>
    void publish(heap& durable, const thread_cache& cache, Dirty&& dirty) {
        const auto publish = [&](block b) {
            HF_ASSERT_SLOW(!durable.bit(b.offset)); // reserved until now
            if (InOrder) return durable.publish_in_order(b, dirty);
            if (!cache.named(durable, b)) durable.name_chunk(b, dirty);
            durable.set_bit(b, dirty);
        };
        for (block b : taken_) publish(b);
        for (block b : adopted_) publish(b);
        for (block b : freed_) durable.retract(b, dirty);
    }
    // The same in two steps, for readers of the log that want a block's chunk named before its bit
    // is set (heap.hpp, publish): the caller orders them.
    template <class Dirty>
    void name_chunks(heap& durable, const thread_cache& cache, Dirty&& dirty) const {
        const auto name = [&](block b) {
            if (!cache.named(durable, b)) durable.name_chunk(b, dirty);
        };
        for (block b : taken_) name(b);
        for (block b : adopted_) name(b);
    }
    template <class Dirty> void change_bits(heap& durable, Dirty&& dirty) const {
        for (block b : taken_) durable.set_bit(b, dirty);
        for (block b : adopted_) durable.set_bit(b, dirty);
        for (block b : freed_) durable.clear_bit(b, dirty);
    }
    /// The section's blocks have changed hands, durably: those that it no longer needs go to
    /// 'waiting' (2).
    template <bool InOrder>
    void settle(const heap& durable, thread_cache& cache, std::vector<block>& waiting) {
        if (!touched_) return;
        if (!InOrder) {
            const auto note_named = [&](block b) { cache.note_named(durable, b); };
            std::ranges::for_each(taken_, note_named);
            std::ranges::for_each(adopted_, note_named);
        }
        release([&](block b) { waiting.push_back(b); });
    }

    /// The section's blocks have changed hands: calls 'release' with each that it no longer needs.
    template <class Release> [[gnu::always_inline]] void release(Release&& release) {
        forget_fresh();
        for (block b : freed_) release(b);
        freed_.clear();
        taken_.clear();
        touched_ = false;
        if (!did_more_) [[likely]]
            return;
        for (std::vector<block>* blocks : {&unused_, &unadopted_, &segments_}) {
            std::ranges::for_each(*blocks, release);
            blocks->clear();
        }
        adopted_.clear();
        did_more_ = false;
    }

    /// Those that it adopted, and freed again, go to 'waiting'.
    void leave_unadopted(std::vector<block>& waiting) {
        waiting.insert(waiting.end(), unadopted_.begin(), unadopted_.end());
        unadopted_.clear();
    }

    /// The section ends as if it had never begun: it frees nothing, and has no use for what it
    /// took.
    void take_back() {
        touched_ = did_more_ = true;
        forget_fresh();
        freed_.clear();
        unused_.insert(unused_.end(), taken_.begin(), taken_.end());
        taken_.clear();
    }
    /// The same of blocks that were staged: calls 'staged' with each, which is staged again.
    template <class Staged> void give_back_staged(Staged&& staged) {
        for (std::vector<block>* blocks : {&adopted_, &unadopted_}) {
            std::ranges::for_each(*blocks, staged);
            blocks->clear();
        }
    }
    /// What it takes back, and was staged, is of no use to anybody; nor is 'more'.
    void give_up_staged(std::span<const block> more) {
        touched_ = did_more_ = true;
        unused_.insert(unused_.end(), adopted_.begin(), adopted_.end());
        adopted_.clear();
        unused_.insert(unused_.end(), more.begin(), more.end());
    }
    /// It will free nothing.
    void keep_freed() noexcept { freed_.clear(); }
    std::vector<block>& segments() noexcept { return segments_; }

private:
    /// What it took is not fresh any more. (What it freed again goes to nobody until then.)
    static void forget_fresh() noexcept { hf_words.fresh[0].bytes = hf_words.fresh[1].bytes = 0; }

    bool touched_ = false;
    bool did_more_ = false;        // than take blocks and free those of others
    block_set taken_;              // allocated at commit
    block_set freed_;              // retracted at commit
    std::vector<block> adopted_;   // allocated at commit; this and what follows: if did_more_
    std::vector<block> unused_;    // taken, and freed again
    std::vector<block> unadopted_; // adopted, and freed again
    std::vector<block> segments_;
};

} // namespace hf
