// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The recovery of one thread: the steps of resume.hpp that are its own.
#include <base/assert.hpp>
#include <base/names.hpp>
#include <justdo/step.hpp>
#include <pool/file_checks.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace hf::justdo {

/// Does an entry again: of the thread's own log, or of the pool's bytes.
void thread::redo(const log_entry& entry, bool own_log) {
    const auto at = [&](std::uint64_t offset) {
        return static_cast<std::byte*>(pool_->at(offset));
    };
    switch (entry.what()) {
    case action::lock:
    case action::unlock: {
        if (!own_log) return;
        std::uint64_t& owned = place_at(static_cast<unsigned>(entry.extra)).owned;
        put(owned, entry.what() == action::lock ? entry.value : 0);
        return dirty(&owned, word_bytes);
    }
    case action::alloc: return own_log ? void() : do_alloc(entry);
    case action::store: return own_log ? void() : do_store(entry);
    case action::copy:
        if (own_log) return;
        std::memcpy(at(entry.offset()), at(entry.value), entry.extra);
        return dirty(at(entry.offset()), entry.extra);
    case action::fill:
        if (own_log) return;
        std::memset(at(entry.offset()), static_cast<int>(entry.value & 0xff), entry.extra);
        return dirty(at(entry.offset()), entry.extra);
    case action::move: {
        if (own_log) return;
        const std::uint64_t n = move_rest{entry.value, entry.extra}.piece_bytes();
        std::memcpy(at(entry.offset()), block_->stages[entry.size()], n);
        return dirty(at(entry.offset()), n);
    }
    case action::none:
    case action::free: return; // take_up() has done it
    }
}

void thread::believe(bool frames) {
    const program_counter pc{block_->log.counter};
    pm_.flush(block_, offsetof(thread_block, stages));
    for (const more_head* in : locks_) pm_.flush(in, in->bytes);
    for (const more_head* in : stack_) pm_.flush(in, sizeof *in);
    if (!frames || !pc.open()) return;
    frame f = first_;
    for (std::uint64_t d = 0; d < pc.depth(); ++d) {
        if (d != 0) f = above(f);
        pm_.flush(&head_of(f), head_of(f).bytes);
    }
}

block thread::held() const noexcept {
    const program_counter pc{block_->log.counter};
    const log_entry& entry = block_->log.entries[pc.active()];
    const block b{entry.value, entry.extra};
    const bool names = entry.what() == action::alloc || entry.what() == action::free;
    const bool good = pc.open() && names && b.offset < pool_->file->shape().max_bytes &&
                      pool_->blocks.durable().well_formed(b);
    return good ? b : block{0, 0};
}

status thread::settle_held() {
    const block b = held();
    if (b.bytes == 0) return {};
    const program_counter pc{block_->log.counter};
    heap& blocks = pool_->blocks.durable();
    const auto flushed = [&](const void* word) { pm_.flush(word, word_bytes); };
    if (block_->log.entries[pc.active()].what() == action::alloc) {
        status s =
            settle_anchor(*pool_, "engine justdo: a block being allocated", b.offset, b.bytes);
        if (s.ok()) blocks.publish(b, flushed); // it may only be stored
        return s;
    }
    // Its chunk may have been looked at when it was allocated yet, for a claim of another's: then
    // it is taken already.
    const bool taken = pool_->blocks.find(b.offset).bytes == b.bytes;
    blocks.retract(b, flushed);
    if (taken || pool_->blocks.claim(b)) return {};
    return refusal(
        pool_->file->path(), errc::corrupt,
        fmt::format("engine justdo: a section frees a block: expected its own, found {:#x}",
                    b.offset));
}

status thread::take_up() {
    const program_counter pc{block_->log.counter};
    if (!pc.open()) {
        for_each_place([&](lock_place& place) {
            if (place.owned != 0) put(place.owned, 0), dirty(&place.owned, word_bytes);
        });
        load_more_places();
        return {};
    }
    frame f = first_;
    for (std::uint64_t d = 0; d < pc.depth(); ++d) {
        if (d != 0) f = above(f);
        const frame_head& head = head_of(f);
        f.function = find_function(head.function_id, head.function_version, head.constants);
        again_.push_back(f);
    }
    frames_ = again_;
    open_ = true;
    const log_entry& entry = block_->log.entries[pc.active()];
    const log_entry& before = block_->log.entries[pc.active() ^ 1];
    if (entry.repeats_before()) {
        // Before any lock is taken: the store may have made one that the section took next.
        redo(before, true);
        redo(before, false);
    }
    redo(entry, true);
    for (unsigned i = 0; i < lock_places; ++i) {
        held_[i] = block_->locks[i].owned;
        if (held_[i] == 0) continue;
        ++held_count_;
        held_end_ = i + 1;
    }
    load_more_places();
    held_count_ += more_.held_count();
    if (held_count_ == 0)
        return refusal(
            pool_->file->path(), errc::corrupt,
            fmt::format(
                "engine justdo: the thread at {:#x} has a section open: expected a lock that it "
                "owns, found none",
                offset()));
    if (entry.what() == action::free)
        freed_ = {entry.value, entry.extra}; // upholds (thread.hpp, 5)
    return {};
}

void thread::reset_locks() {
    for_each_place([&](const lock_place& place) {
        const hf_justdo_lock_calls* const calls = find_lock(lock_kind(place.intended));
        if (place.intended == 0 || calls == nullptr) return;
        void* const lock = pool_->at(lock_offset(place.intended));
        calls->reset(lock);
        pm_.flush(lock, calls->bytes);
    });
}

void thread::forget_intentions() {
    for_each_place(
        [&](lock_place& place) { // owned: by a section that is open, take_up() has seen to that
            if (place.intended != 0 && place.intended != place.owned &&
                find_lock(lock_kind(place.intended)) != nullptr)
                put(place.intended, 0), dirty(&place.intended, word_bytes);
        });
}

void thread::own_again(party& with) {
    party_ = &with;
    for_each_place([&](const lock_place& place) {
        const std::uint64_t word = place.owned;
        if (word == 0) return;
        acquire(*find_lock(lock_kind(word)), pool_->at(lock_offset(word)), true);
        with.progressed(lock_offset(word), 1);
    });
}

/// One that is intended is reset in any case.
void thread::free_locks() noexcept {
    const auto free = [&](std::uint64_t word) {
        const std::uint32_t kind = lock_kind(word);
        if (kind == HF_JUSTDO_EXCLUSIVE || kind == HF_JUSTDO_SHARED)
            pm_.store_word(static_cast<std::uint64_t*>(pool_->at(lock_offset(word))), 0);
    };
    std::ranges::for_each(held_, free);
    more_.for_each_held(free);
}

void thread::resume() {
    const thread_log& log = block_->log;
    const program_counter pc{log.counter};
    const log_entry entry = log.entries[pc.active()];
    redo(entry, false);
    if (entry.what() == action::move) move(entry.offset(), {entry.value, entry.extra}, pc.place());
    frames_.clear();
    resuming_ = again_.size();
    again_.front().function->resume();
    fatal("%s (%s) returned with a section open", readable_name(again_.front().function->name),
          again_.front().function->where);
}

void thread::resumed() noexcept {
    HF_ASSERT_SLOW(!open_ && resuming_ == 0);
    frames_.clear();
    again_.clear();
    party_ = nullptr;
    pool_->blocks.release_all(cache_);
}

void thread::give_up() noexcept {
    pm_.store_word(&block_->log.counter, 0);
    pm_.fence();
}

void thread::give_up_growth() noexcept {
    give_up();
    pm_.store_word(&block_->more_locks, 0);
    pm_.store_word(&block_->more_frames, 0);
    pm_.fence();
    locks_.clear();
    stack_.clear();
}

} // namespace hf::justdo
