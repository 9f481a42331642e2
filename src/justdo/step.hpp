// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A step of a thread (thread.hpp): the path of every store of a section, inline in the call that
// compiled code makes. The order of its stores is the engine: thread.hpp (1), (2), format.hpp (2),
// (3).
#pragma once

#include <base/assert.hpp>
#include <justdo/thread.hpp>

#include <atomic>
#include <cstring>

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

/// Writes the entry, makes it active, and moves the program counter. The caller then does what the
/// entry says.
inline void thread::step(log_entry entry, std::uint32_t place) {
    HF_ASSERT_SLOW(open_);
    HF_ASSERT_SLOW(!frames_.empty() && place != 0);
    HF_ASSERT_SLOW(entry.what() <= action::unlock && !entry.repeats_before());
    if (unfenced_ == unfenced::more) settle(); // upholds (thread.hpp, 1)
    if (unfenced_ == unfenced::last_step) entry.where |= log_entry::before_too;
    thread_log& log = block_->log;
    const std::uint64_t active_where = log.entries[active_].where;
    if ((active_where & log_entry::before_too) != 0)
        put(log.entries[active_].where, active_where & ~log_entry::before_too);
    active_ ^= 1;
    log_entry& to = log.entries[active_];
    put(to.value, entry.value);
    put(to.extra, entry.extra);
    put(to.where, entry.where);
    logged_depth_ = frames_.size();
    pm_.store_word(&log.counter, program_counter::at(active_, logged_depth_, place).word);
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
    if (open_ && bytes != 0) (void)in_pool(address, bytes, "hf_justdo_note");
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

} // namespace hf::justdo
