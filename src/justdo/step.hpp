// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A step of a thread (thread.hpp): the path of every store of a section, inline in the call that
// compiled code makes. The order of its stores is the engine: thread.hpp (1), (2), format.hpp (2),
// (3).
#pragma once

#include <base/assert.hpp>
#include <justdo/thread.hpp>
#include <section/section.hpp>

#include <atomic>
#include <cstring>
#include <utility>

namespace hf::justdo {

namespace detail {
/// One store instruction if the address allows it: others may read the word meanwhile.
template <class Word> inline void store_as(void* to, std::uint64_t value) noexcept {
    const auto word = static_cast<Word>(value);
    if (reinterpret_cast<std::uintptr_t>(to) % sizeof word == 0)
        std::atomic_ref(*static_cast<Word*>(to)).store(word, std::memory_order_release);
    else std::memcpy(to, &word, sizeof word);
    std::atomic_signal_fence(std::memory_order_seq_cst);
}
inline void store_bytes(void* to, std::uint64_t value, std::uint64_t bytes) noexcept {
    switch (bytes) {
    case 1: return store_as<std::uint8_t>(to, value);
    case 2: return store_as<std::uint16_t>(to, value);
    case 4: return store_as<std::uint32_t>(to, value);
    default: return store_as<std::uint64_t>(to, value);
    }
}
} // namespace detail

inline void* thread::begin_frame(frame_head& head, const hf_justdo_function& function,
                                 std::uint64_t bytes, std::uint32_t& resumed) noexcept {
    put(head.function_id, function.id);
    put(head.function_version, function.version);
    put(head.bytes, bytes);
    put(head.call_place, 0);
    put(head.constants, layout_of(function));
    dirty(&head, sizeof head);
    hf_justdo_steps.counter = program_counter::at(0, frames_.size(), 0).word;
    resumed = 0;
    return &head + 1;
}

inline void* thread::enter(const hf_justdo_function& function, std::uint32_t& resumed) {
    const std::uint64_t bytes = sizeof(frame_head) + round_up(function.frame_bytes, line_bytes);
    if (!frames_.empty() || resuming_ != 0 || bytes > first_.end - first_.offset) [[unlikely]]
        return enter_inside(function, bytes, resumed);
    frames_.push_back({&function, first_.offset, first_.end, first_.block});
    return begin_frame(head_of(first_), function, bytes, resumed);
}

inline void thread::leave() noexcept {
    HF_ASSERT(!frames_.empty());
    if (open_ && frames_.size() == 1) [[unlikely]]
        leaves_open();
    frames_.pop_back();
    hf_justdo_steps.counter = program_counter::at(0, frames_.size(), 0).word;
    if (frames_.empty()) current = nullptr;
}

inline std::uint64_t thread::in_pool(const void* address, std::uint64_t bytes,
                                     const char* call) const noexcept {
    const std::uint64_t offset =
        reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(base_);
    if (offset < pool_bytes_ && bytes <= pool_bytes_ - offset) [[likely]]
        return offset;
    outside(address, call);
}

/// Notes a store: it becomes durable before the next step.
inline void thread::dirty(const void* address, std::uint64_t bytes) noexcept {
    pm_.flush(address, bytes);
    if (pm_.loses_caches()) unfenced_ = unfenced::more;
}

/// Everything so far is durable.
inline void thread::settle() noexcept {
    if (unfenced_ == unfenced::nothing) return;
    pm_.order();
    unfenced_ = unfenced::nothing;
}

inline void thread::put(std::uint64_t& word, std::uint64_t value) noexcept {
    std::atomic_ref(word).store(value, std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst);
}

/// The same as step(), by stores alone. Requires: hf_justdo_steps is this thread's.
inline void thread::step_in_order(const log_entry& entry, std::uint32_t place) noexcept {
    HF_ASSERT_SLOW(open_ && pm_.keeps_order() && hf_justdo_steps.log == &block_->log.counter);
    thread_log& log = block_->log;
    const unsigned next = active() ^ 1;
    log_entry& to = log.entries[next];
    put(to.where, entry.where);
    if (entry.what() >= action::store) put(to.value, entry.value);
    if (entry.what() > action::store) put(to.extra, entry.extra);
    put(log.counter, program_counter::at(next, frames_.size(), place).word); // upholds (6)
    ++hf_justdo_steps.entries;
}

/// Writes the entry, makes it active, and moves the program counter. The caller then does what the
/// entry says.
inline void thread::step(log_entry entry, std::uint32_t place) {
    HF_ASSERT_SLOW(open_);
    HF_ASSERT_SLOW(!frames_.empty() && place != 0);
    HF_ASSERT_SLOW(entry.what() <= action::unlock && !entry.repeats_before());
    if (hf_justdo_steps.words_end != 0) return step_in_order(entry, place);
    if (unfenced_ == unfenced::more) settle(); // upholds (thread.hpp, 1)
    if (unfenced_ == unfenced::last_step) entry.where |= log_entry::before_too;
    thread_log& log = block_->log;
    log_entry& last = log.entries[active()];
    if (last.repeats_before()) put(last.where, last.where & ~log_entry::before_too);
    const unsigned next = active() ^ 1;
    log_entry& to = log.entries[next];
    put(to.value, entry.value);
    put(to.extra, entry.extra);
    put(to.where, entry.where);
    pm_.store_word(&log.counter, program_counter::at(next, frames_.size(), place).word);
    pm_.order(); // upholds (thread.hpp, 2)
    unfenced_ = unfenced::nothing;
    if (freed_.bytes != 0) [[unlikely]]
        release_freed();
    persist::counters& count = persist::thread_counters();
    ++count.log_entries;
    count.log_bytes += sizeof entry + word_bytes;
    count.pm_bytes += sizeof entry + word_bytes;
    if (party_ != nullptr) [[unlikely]]
        goes_on(entry.offset(), stored_bytes(entry));
}

inline void thread::note(const void* address, std::uint64_t bytes) {
    if (bytes == 0) {
        const bool stored = block_->log.entries[active()].what() == action::store;
        if (unfenced_ == unfenced::last_step && stored) unfenced_ = unfenced::more;
        return;
    }
    if (open_) (void)in_pool(address, bytes, "hf_justdo_note");
    if (party_ != nullptr && open_) [[unlikely]]
        goes_on(in_pool(address, bytes, "hf_justdo_note"), bytes);
    persist::thread_counters().pm_bytes += bytes;
    dirty(address, bytes);
}

inline void thread::move_to(std::uint32_t place) {
    if (open_) step({log_entry::where_of(action::none, 0, 0), 0, 0}, place);
}

inline void thread::store(void* address, std::uint64_t value, std::uint32_t bytes,
                          std::uint32_t place) {
    HF_ASSERT_SLOW(bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8);
    if (!open_) {
        detail::store_bytes(address, value, bytes);
        if (pool_->contains(address)) note(address, bytes);
        return;
    }
    const std::uint64_t offset = in_pool(address, bytes, "hf_justdo_store");
    const log_entry entry{log_entry::where_of(action::store, bytes, offset), value, 0};
    step(entry, place);
    persist::thread_counters().pm_bytes += bytes;
    do_store(entry);
}

inline void thread::do_store(const log_entry& entry) noexcept {
    void* const to = base_ + entry.offset();
    detail::store_bytes(to, entry.value, entry.size());
    pm_.flush(to, entry.size());
    if (pm_.loses_caches() && unfenced_ == unfenced::nothing) unfenced_ = unfenced::last_step;
}

inline bool thread::others_are_due() const noexcept {
    return pool_->lanes.leaves_out.load(std::memory_order_acquire) != lane_set::no_lane ||
           pool_->lanes.deferring() != 0;
}

/// Steps are plain from here on, if no step does more.
inline void thread::show_steps() noexcept {
    if (!pm_.keeps_order() || party_ != nullptr) return;
    hf_justdo_steps.log = &block_->log.counter;
    hf_justdo_steps.base = reinterpret_cast<char*>(base_);
    hf_justdo_steps.words_end = pool_bytes_ - (word_bytes - 1);
}

/// Requires: the lock is held.
inline void thread::begin_in_order(lock_place& log, std::uint64_t word,
                                   std::uint32_t place) noexcept {
    put(log.owned, word); // upholds (7)
    open_ = true;
    show_steps();
    step_in_order({log_entry::where_of(action::none, 0, 0), 0, 0}, place);
}

inline bool thread::begin_without_lock(std::uint32_t kind, std::uint32_t place) noexcept {
    if (kind != HF_JUSTDO_NO_LOCK || open_ || !pm_.keeps_order() || others_are_due() ||
        current_section != nullptr || frames_.empty())
        return false;
    constexpr std::uint64_t word = lock_word(HF_JUSTDO_NO_LOCK, 0);
    held_[last_place_] = word;
    held_end_ = last_place_ + 1;
    held_count_ = 1;
    begin_in_order(block_->locks[last_place_], word, place);
    return true;
}

inline bool thread::end_without_lock(std::uint32_t kind) noexcept {
    if (kind != HF_JUSTDO_NO_LOCK || !pm_.keeps_order() || party_ != nullptr || held_count_ != 1 ||
        held_end_ == 0)
        return false;
    const unsigned at = held_end_ - 1;
    if (held_[at] != lock_word(HF_JUSTDO_NO_LOCK, 0)) return false;
    held_[at] = 0;
    held_count_ = held_end_ = 0;
    last_place_ = at;
    put(block_->log.counter, 0);
    end();
    return true;
}

/// Requires: the program counter says that no section is open, durably.
inline void thread::end() noexcept {
    HF_ASSERT_SLOW(unfenced_ == unfenced::nothing && !pending());
    if (freed_.bytes != 0) release_freed();
    open_ = false;
    hf_justdo_steps.words_end = 0;
    const std::uint64_t entries = std::exchange(hf_justdo_steps.entries, 0);
    const std::uint64_t log_bytes = entries * sizeof(log_entry) + word_bytes;
    persist::counters& count = persist::thread_counters();
    ++count.sections;
    count.log_entries += entries;
    count.log_bytes += log_bytes;
    // Or the compiler loads two counters as one: such a load waits for the stores to each.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    count.pm_bytes += log_bytes + std::exchange(hf_justdo_steps.bytes, 0);
}

} // namespace hf::justdo
