// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <base/names.hpp>
#include <justdo/step.hpp>
#include <section/section.hpp>

#include <holdfast/lock.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <dlfcn.h>
#include <sched.h>
#include <utility>

namespace hf::justdo {
constinit thread_local thread* current = nullptr;
static_assert(sizeof(thread_log::entries[0]) == HF_JUSTDO_ENTRY_WORDS * word_bytes &&
              offsetof(thread_log, entries) == word_bytes &&
              offsetof(log_entry, value) == word_bytes &&
              static_cast<unsigned>(action::store) == HF_JUSTDO_STORES);

thread::thread(pool::impl& in, std::uint64_t offset, std::uint64_t bytes)
    : pool_(&in), pm_(in.file->medium()), block_(static_cast<thread_block*>(in.at(offset))),
      base_(in.file->base()), pool_bytes_(in.file->shape().max_bytes),
      first_{nullptr, offset + sizeof(thread_block), offset + bytes, 0} {
    HF_ASSERT_SLOW(block_->magic == thread_magic);
    load_chains();
}

void thread::outside(const void* address, const char* call) const noexcept {
    fatal("%s: %p is not in pool %s: a section of engine justdo works on one pool, and on nothing "
          "that dies with the process; in %s (%s)",
          call, address, pool_->file->path().c_str(),
          function() != nullptr ? readable_name(function()->name) : "no function",
          function() != nullptr ? function()->where : "no place");
}

/// Checks a step of a thread that is being resumed: it must be what the thread's frames say.
void thread::goes_on(std::uint64_t offset, std::uint64_t bytes) noexcept {
    if (resuming_ != 0)
        fatal("%s (%s) diverged when it was resumed: it does not call %s",
              readable_name(function()->name), function()->where,
              readable_name(again_[frames_.size()].function->name));
    party_->progressed(offset, bytes);
}

/// Requires: the entry that freed the block is not active any more, durably (5).
void thread::release_freed() noexcept {
    pool_->blocks.release(cache_, freed_);
    freed_ = {0, 0};
    show_steps();
}

void* thread::enter_again(const hf_justdo_function& function, std::uint32_t& resumed) {
    const frame& f = again_[frames_.size()];
    // Each source that calls a function with a frame has one of its own.
    if (f.function->id != function.id || f.function->version != function.version)
        fatal("%s (%s) diverged when it was resumed: it called %s, now it calls %s",
              frames_.empty() ? readable_name(f.function->name)
                              : readable_name(frames_.back().function->name),
              f.function->where, readable_name(f.function->name), readable_name(function.name));
    frames_.push_back(f);
    --resuming_;
    frame_head& head = head_of(f);
    if (resuming_ == 0) {
        // Right before a call, perhaps, that is made again from there. Upholds (1), too: two stores
        // that were made again are waited for with it.
        put(head.call_place, program_counter{block_->log.counter}.place());
        dirty(&head.call_place, word_bytes);
    }
    resumed = head.place();
    return &head + 1;
}

/// Any but the outermost one, or that where it has no room, or is there.
void* thread::enter_inside(const hf_justdo_function& function, std::uint64_t bytes,
                           std::uint32_t& resumed) {
    if (resuming_ != 0) return enter_again(function, resumed);
    if (open_ && logged_depth() > frames_.size()) // its bytes still count
        fatal("%s (%s) is called in a section without hf_justdo_call", readable_name(function.name),
              function.where);
    frame mine = frames_.empty() ? first_ : frames_.back();
    if (!frames_.empty()) mine.offset += head_of(mine).bytes;
    if (bytes > mine.end - mine.offset) [[unlikely]]
        mine = frame_in_more(function, bytes);
    mine.function = &function;
    frames_.push_back(mine);
    return begin_frame(head_of(mine), function, bytes, resumed);
}

void thread::leads_elsewhere(const void* pointer, std::uint32_t number) const noexcept {
    fatal("%s (%s): argument %u (%p) does not lead into pool %s: memory that dies with the "
          "process is not there when the section is resumed: read it through hf::vlog_preserve "
          "only",
          readable_name(function()->name), function()->where, number, pointer,
          pool_->file->path().c_str());
}

void thread::leaves_open() const noexcept {
    fatal("%s (%s) returns with a section open, which nothing could resume: a lock is still held",
          readable_name(function()->name), function()->where);
}

void thread::call(std::uint32_t place) {
    HF_ASSERT(!frames_.empty());
    if (resuming_ != 0) return; // the call is under way
    // The frame above counts until the program counter has left it, and of this frame what was
    // saved for the step before: a callee may come back without a step, and the next point of this
    // frame saves over that.
    const bool is_there =
        logged_depth() == frames_.size() && program_counter{block_->log.counter}.place() == place;
    if (open_ && logged_depth() >= frames_.size() && !is_there) move_to(place);
    frame_head& head = head_of(frames_.back());
    put(head.call_place, place);
    dirty(&head.call_place, word_bytes);
}

/// Whether it lies in the loaded memory of the program and its libraries, as constants do.
static bool is_of_program(const void* address) noexcept {
    dl_find_object found;
    return _dl_find_object(const_cast<void*>(address), &found) == 0;
}

/// Whether the active entry has nothing that recovery would do again.
bool thread::at_point() const noexcept {
    return block_->log.entries[active()].what() == action::none;
}

void thread::copy(void* to, const void* from, std::uint64_t bytes, std::uint32_t place) {
    if (bytes == 0 || to == from) return move_to(place);
    if (!open_) {
        std::memmove(to, from, bytes);
        if (pool_->contains(to)) note(to, bytes);
        return;
    }
    const std::uint64_t at = in_pool(to, bytes, "hf_justdo_copy");
    if (!pool_->contains(from) && at_point() && is_of_program(from)) {
        std::memmove(to, from, bytes); // after a crash in it, again from that point
        note(to, bytes);
        return move_to(place);
    }
    const std::uint64_t source = in_pool(from, bytes, "hf_justdo_copy");
    persist::thread_counters().pm_bytes += bytes;
    if (at < source + bytes && source < at + bytes) {
        const bool backwards = at > source;
        const std::uint64_t end = backwards ? bytes : 0;
        move(at + end, {source + end, bytes | (backwards ? move_rest::from_end : 0)}, place);
        return;
    }
    const log_entry entry{log_entry::where_of(action::copy, 0, at), source, bytes};
    step(entry, place);
    redo(entry, false);
}

/// Goes on with a copy that overlaps, piece by piece: a piece is staged before its entry is active,
/// so that doing it again finds it. 'to' and the piece of 'rest' are those that come before, of any
/// size.
void thread::move(std::uint64_t to, move_rest rest, std::uint32_t place) {
    while (rest.left_bytes() != 0) {
        const std::uint64_t n = std::min(stage_bytes, rest.left_bytes());
        const std::uint64_t before = rest.piece_bytes();
        const std::uint64_t from = rest.backwards() ? rest.from() - n : rest.from() + before;
        to = rest.backwards() ? to - n : to + before;
        rest = {n << 48 | from, (rest.extra & move_rest::from_end) | (rest.left_bytes() - n)};
        const unsigned stage = active() ^ 1; // the other one is the active entry's, perhaps
        // A damaged log may lead into the stages themselves.
        std::memmove(block_->stages[stage], pool_->at(from), n);
        dirty(block_->stages[stage], n);
        const log_entry entry{log_entry::where_of(action::move, stage, to), rest.value, rest.extra};
        step(entry, place);
        redo(entry, false);
    }
}

void thread::fill(void* to, int byte, std::uint64_t bytes, std::uint32_t place) {
    if (bytes == 0) return move_to(place);
    if (!open_) {
        std::memset(to, byte, bytes);
        if (pool_->contains(to)) note(to, bytes);
        return;
    }
    const std::uint64_t at = in_pool(to, bytes, "hf_justdo_fill");
    persist::thread_counters().pm_bytes += bytes;
    const log_entry entry{log_entry::where_of(action::fill, 0, at),
                          static_cast<unsigned char>(byte), bytes};
    step(entry, place);
    redo(entry, false);
}

void* thread::alloc(std::uint64_t bytes, void** slot, std::uint32_t place) {
    if (!open_) {
        *slot = hf_alloc(bytes);
        if (pool_->contains(slot)) note(slot, word_bytes);
        return *slot;
    }
    const std::uint64_t at = in_pool(slot, word_bytes, "hf_justdo_alloc");
    const block b = pool_->blocks.reserve(cache_, std::max<std::uint64_t>(bytes, 1));
    if (b.offset == 0) {
        store(slot, 0, word_bytes, place);
        return nullptr;
    }
    const log_entry entry{log_entry::where_of(action::alloc, word_bytes, at), b.offset, b.bytes};
    step(entry, place);
    do_alloc(entry);
    return *slot;
}

void thread::do_alloc(const log_entry& entry) {
    pool_->blocks.durable().publish({entry.value, entry.extra},
                                    [&](const void* word) { dirty(word, word_bytes); });
    void* const slot = pool_->at(entry.offset());
    detail::store_bytes(slot, reinterpret_cast<std::uint64_t>(pool_->at(entry.value)), word_bytes);
    dirty(slot, word_bytes);
}

void thread::free(void* given, std::uint32_t place) {
    if (given == nullptr) return move_to(place);
    if (!open_) return hf_free(given);
    const std::uint64_t at = in_pool(given, 1, "hf_justdo_free");
    const block b = pool_->blocks.find(at);
    if (b.bytes == 0) fatal("hf_justdo_free(%p): no allocated block of an open pool", given);
    step({log_entry::where_of(action::free, 0, 0), b.offset, b.bytes}, place);
    pool_->blocks.durable().retract(b, [&](const void* word) { dirty(word, word_bytes); });
    freed_ = b;                    // upholds (5)
    hf_justdo_steps.words_end = 0; // the next step releases it
}

/// The first place of the lock log that holds this; no_place: none does.
unsigned thread::place_of(std::uint64_t word) const noexcept {
    unsigned at = 0;
    while (at < held_end_ && held_[at] != word) ++at;
    return at < held_end_ ? at : more_.find(word);
}

/// no_place: the pool is full.
unsigned thread::free_place() {
    unsigned at = 0;
    while (at < held_end_ && held_[at] != 0) ++at;
    return at < places_in_use.own ? at : free_far_place();
}

void thread::hold(unsigned at, std::uint64_t word) {
    if (at < lock_places) [[likely]] {
        held_[at] = word;
        held_end_ = std::max(held_end_, at + 1);
    } else more_.hold(at, word);
    ++held_count_;
}

void thread::let_go(unsigned at, std::uint64_t word) noexcept {
    if (at < lock_places) [[likely]] {
        held_[at] = 0;
        while (held_end_ > 0 && held_[held_end_ - 1] == 0) --held_end_;
    } else more_.let_go(at, word);
    --held_count_;
}

/// A section of another engine under this lock may be re-executed, or replayed, until its mark is
/// durable.
void thread::settle_others() {
    pool_->lanes.store_due_marks();
    if (pm_.loses_caches()) unfenced_ = unfenced::more;
}

bool thread::acquire(const hf_justdo_lock_calls& calls, void* lock, bool wait) {
    // A log of another engine may have the sum of memory around the lock (commit_marks.hpp, 5).
    // Ours look themselves.
    const bool looks = calls.kind < HF_JUSTDO_KINDS;
    for (unsigned rounds = 0;; ++rounds) {
        if (!looks) pool_->lanes.settle_sums_of(lock, true);
        if (calls.try_lock(lock) != 0) return true;
        if (!wait) return false;
        if (party_ != nullptr) party_->wait();
        else if (calls.lock != nullptr) return calls.lock(lock), true;
        else if (rounds > 16) ::sched_yield();
    }
}

bool thread::lock(void* lock, std::uint32_t kind, std::uint32_t place, bool wait) {
    const hf_justdo_lock_calls* const calls = find_lock(kind);
    if (calls == nullptr) fatal("hf_justdo_lock: kind %u is not registered", kind);
    if (frames_.empty()) fatal("hf_justdo_lock(%p) outside of a function that enters", lock);
    if (!open_ && current_section != nullptr) // whose re-execution would make this one again
        fatal("%s (%s) begins a section of engine justdo in a section of engine %s, %s (%s): call "
              "it behind that one",
              readable_name(function()->name), function()->where, current_section->engine().name,
              readable_name(current_section->function()->name), current_section->function()->where);
    const bool real = kind != HF_JUSTDO_NO_LOCK;
    const std::uint64_t word =
        lock_word(kind, real ? in_pool(lock, calls->bytes, "hf_justdo_lock") : 0);
    if (party_ != nullptr && real) [[unlikely]] { // by arguments that may be damaged
        if (kind < HF_JUSTDO_KINDS && lock_offset(word) % alignof(shared_mutex) != 0)
            fatal("hf_justdo_lock(%p): no mutex can stand there", lock);
        goes_on(lock_offset(word), calls->bytes);
    }
    if (real && open_ && place_of(word) != no_place)
        fatal("hf_justdo_lock(%p): the section holds this lock already", lock);
    const unsigned at = open_ ? free_place() : last_place_;
    if (at == no_place) [[unlikely]] {
        if (!wait) return false;
        no_room_for_lock(lock);
    }
    lock_place& log = place_at(at);
    if (calls->reset != nullptr) {
        put(log.intended, word);
        dirty(&log.intended, word_bytes);
        settle(); // upholds (4)
    }
    if (!acquire(*calls, lock, wait)) {
        if (calls->reset != nullptr) put(log.intended, 0), dirty(&log.intended, word_bytes);
        return false;
    }
    if (others_are_due()) settle_others();
    hold(at, word);
    if (!open_ && pm_.keeps_order()) {
        begin_in_order(log, word, place);
        return true;
    }
    open_ = true;
    step({log_entry::where_of(action::lock, 0, 0), word, at}, place);
    put(log.owned, word); // upholds (4)
    pm_.flush(&log.owned, word_bytes);
    if (pm_.loses_caches()) unfenced_ = unfenced::last_step;
    return true;
}

void thread::unlock(void* lock, std::uint32_t kind, std::uint32_t place) {
    const hf_justdo_lock_calls* const calls = find_lock(kind);
    const bool real = kind != HF_JUSTDO_NO_LOCK;
    const std::uint64_t word =
        calls == nullptr ? 0 : lock_word(kind, real ? in_pool(lock, 0, "hf_justdo_unlock") : 0);
    const unsigned at = place_of(word);
    if (word == 0 || at == no_place)
        fatal("hf_justdo_unlock(%p): the section does not hold it", lock);
    lock_place& log = place_at(at);
    if (party_ != nullptr) [[unlikely]]
        goes_on(0, 0);
    settle(); // upholds (3)
    if (held_count_ == 1) {
        last_place_ = at;
        pm_.store_word(&block_->log.counter, 0);
        pm_.fence(); // upholds (3)
        end();
        if (at >= lock_places) [[unlikely]]
            leave_far_place(log);
    } else {
        step({log_entry::where_of(action::unlock, 0, 0), 0, at}, place);
        pm_.promise(); // who takes the lock sees what was stored under it
        put(log.owned, 0);
        pm_.flush(&log.owned, word_bytes);
        if (pm_.loses_caches()) unfenced_ = unfenced::last_step;
    }
    let_go(at, word); // a resumed section may stop for good in the step: free_locks()
    // As in acquire(): of a block that was staged with the lock held, a log may have the sum with
    // it.
    if (kind >= HF_JUSTDO_KINDS) pool_->lanes.settle_sums_of(lock, false);
    calls->unlock(lock);
    forget_intention(*calls, lock, log);
    if (party_ == nullptr) [[likely]]
        return;
    party_->progressed(0, 0);
    if (!open_) party_->finished();
}

/// The next section, which holds few locks perhaps, begins in the thread's own block. Requires: no
/// section is open, durably.
void thread::leave_far_place(lock_place& last) noexcept {
    put(last.owned, 0);
    dirty(&last.owned, word_bytes);
    last_place_ = 0;
}

/// Requires: the lock is free.
void thread::forget_intention(const hf_justdo_lock_calls& calls, void* lock,
                              lock_place& at) noexcept {
    if (calls.reset == nullptr) return;
    pm_.persist(lock, calls.bytes); // upholds (4)
    put(at.intended, 0);
    dirty(&at.intended, word_bytes);
}

} // namespace hf::justdo

constinit __thread hf_justdo_plain_steps hf_justdo_steps{};
