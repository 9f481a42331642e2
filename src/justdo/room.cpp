// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// When a thread's own block has no room, the thread makes another one, and uses that. A section
// with few locks and few frames never needs it.
#include <base/assert.hpp>
#include <base/names.hpp>
#include <justdo/inspect.hpp>
#include <justdo/room.hpp>
#include <justdo/step.hpp>
#include <pool/fault_guard.hpp>

#include <algorithm>
#include <string>

namespace hf::justdo {

void more_places::hold(unsigned place, std::uint64_t word) {
    HF_ASSERT_SLOW(place == free());
    held_.emplace(word, place);
    free_.pop_back();
}

void more_places::let_go(unsigned place, std::uint64_t word) noexcept {
    auto it = held_.find(word);
    while (it->second != place) ++it; // those that hold the same are side by side
    held_.erase(it);
    free_.push_back(place); // has room: add() has made it
}

lock_place& more_places::at(unsigned place) noexcept {
    HF_ASSERT_SLOW(place >= lock_places && place < end());
    const auto in = std::ranges::upper_bound(parts_, place, {}, &part::end);
    return in->places[place - in->first];
}

void more_places::add(more_head& block) {
    const part made{reinterpret_cast<lock_place*>(&block + 1), end(),
                    static_cast<unsigned>(places_in(block.bytes))};
    free_.reserve(made.end());
    parts_.push_back(made);
    for (unsigned i = made.count; i-- > 0;) // the lowest one is used first
        if (const std::uint64_t word = made.places[i].owned; word != 0)
            held_.emplace(word, made.first + i);
        else if (i < places_in_use.more) free_.push_back(made.first + i);
}

void thread::load_chains() {
    for_each_more(*pool_, block_->more_locks, [&](more_head& head) { locks_.push_back(&head); });
    for_each_more(*pool_, block_->more_frames, [&](more_head& head) { stack_.push_back(&head); });
    load_more_places();
}
void thread::load_more_places() {
    more_ = {};
    for (more_head* const head : locks_) more_.add(*head);
}

/// Makes another block of the chain, 'bytes' long or a little longer. False: the pool is full.
bool thread::grow(std::vector<more_head*>& chain, std::uint64_t& first, std::uint64_t magic,
                  std::uint64_t bytes) {
    chain.reserve(chain.size() + 1); // what can fail comes first
    void* const made = make_own_block(
        *pool_, bytes, purpose::log, chain.empty() ? first : chain.back()->next,
        [&](void* at, block b) {
            *static_cast<more_head*>(at) = {magic, 0, offset(), chain.size() + 1, b.bytes, {}};
        });
    if (made == nullptr) return false;
    chain.push_back(static_cast<more_head*>(made));
    return true;
}

/// A place behind those of the thread's own block; no_place: the pool is full.
unsigned thread::free_far_place() {
    if (more_.free() != no_place) return more_.free();
    // If there is room, each block is as large as all before it: many locks take few blocks.
    std::uint64_t bytes = more_bytes_min << std::min<std::size_t>(locks_.size(), 8);
    while (!grow(locks_, block_->more_locks, more_locks_magic, bytes)) {
        if (bytes == more_bytes_min) return no_place;
        bytes /= 2;
    }
    more_.add(*locks_.back());
    return more_.free();
}

/// The place of a frame that has no room behind the one below: first in the next block that is long
/// enough. The frame below records this.
thread::frame thread::frame_in_more(const hf_justdo_function& function, std::uint64_t bytes) {
    if (frames_.empty()) no_room_for_frame(function, bytes);
    const frame& below = frames_.back();
    std::uint64_t next = below.block + 1;
    const auto is_short = [&](std::uint64_t block) {
        return stack_[block - 1]->bytes - sizeof(more_head) < bytes;
    };
    while (next <= stack_.size() && is_short(next)) ++next;
    const auto made = [&](std::uint64_t of_bytes) {
        return grow(stack_, block_->more_frames, more_frames_magic,
                    std::max(of_bytes, sizeof(more_head) + bytes));
    };
    // As large as the thread's own block, or as little as will do.
    if (next > stack_.size() && !made(first_.end - offset()) && !made(more_bytes_min))
        no_room_for_frame(function, bytes);
    frame_head& caller = head_of(below);
    put(caller.call_place, next << 24 | caller.place());
    dirty(&caller.call_place, word_bytes);
    return first_in(next);
}

/// The place of the first frame in a block of frames.
thread::frame thread::first_in(std::uint64_t block) const noexcept {
    const more_head& in = *stack_[block - 1];
    const std::uint64_t at = pool_->offset_of(&in);
    return {nullptr, at + sizeof in, at + in.bytes, block};
}

/// The frame above this one. Requires: there is one.
thread::frame thread::above(const frame& below) const noexcept {
    const frame_head& head = head_of(below);
    if (head.block_above() != 0) return first_in(head.block_above());
    return {nullptr, below.offset + head.bytes, below.end, below.block};
}

/// The fate of a section that finds no room. The refusal of an open that resumes it says the rest.
std::string thread::where_it_stays() const {
    if (!open_) return "";
    return "; the section stays open, and goes on when the pool is opened and has room" +
           (party_ == nullptr ? last_way_out(*pool_->file) : "");
}

void thread::no_room_for_lock(const void* lock) const {
    fault_guard::fatal_means(errc::pool_full);
    fatal("%s: %s (%s) takes lock %p, number %u of its section%s",
          pool_->blocks.full("more of a thread's lock log").what().c_str(),
          readable_name(function()->name), function()->where, lock, held_count_ + 1,
          where_it_stays().c_str());
}

void thread::no_room_for_frame(const hf_justdo_function& function, std::uint64_t bytes) const {
    const auto wanted = static_cast<unsigned long long>(bytes);
    if (frames_.empty())
        fatal("%s (%s): its frame takes %llu bytes, of a thread's %llu: keep large variables in "
              "blocks of the pool, or make the pool with max_bytes of 16 MiB or more, whose "
              "threads have 62 KiB",
              readable_name(function.name), function.where, wanted,
              static_cast<unsigned long long>(first_.end - first_.offset));
    fault_guard::fatal_means(errc::pool_full);
    fatal("%s: %s (%s) is the %zu. call that is nested, and takes %llu bytes%s",
          pool_->blocks.full("more of a thread's frames").what().c_str(),
          readable_name(function.name), function.where, frames_.size() + 1, wanted,
          where_it_stays().c_str());
}

} // namespace hf::justdo
