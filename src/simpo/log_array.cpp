// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <pool/believed.hpp>
#include <simpo/log_array.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <sched.h>

namespace hf::simpo {

log_array::log_array(hf::medium pm, std::byte* at, std::uint64_t lines, std::uint64_t salt,
                     position start, bool closed)
    : pm_(pm), at_(at), lines_(lines), salt_(salt), slots_(closed ? nullptr : new slot[lines]),
      head_(start | (closed ? closed_bit : 0)), tail_(start), done_(start), checkpointed_(start) {
    HF_ASSERT(std::has_single_bit(lines) && lines >= 2 * record_lines_max);
}

log_array::slots log_array::new_slots() const { return slots(new slot[lines_]); }

void log_array::reopen(std::byte* lines, position start, slots with) noexcept {
    slots_ = std::move(with);
    at_ = lines;
    tail_ = done_ = checkpointed_ = start;
    head_.store(start, std::memory_order_release);
}

/// 'left_free': lines that stay free behind the reserved ones.
std::optional<position> log_array::reserve(std::uint64_t count, std::uint64_t left_free) noexcept {
    position at = head_.load(std::memory_order_relaxed);
    do {
        if ((at & closed_bit) != 0) return std::nullopt; // upholds (6)
        if (at + count + left_free > tail_.load(std::memory_order_acquire) + lines_)
            return std::nullopt; // upholds (1)
    } while (!head_.compare_exchange_weak(at, at + count, std::memory_order_acq_rel));
    return at;
}

template <class Visit>
void log_array::for_each_piece(position from, position to, Visit&& visit) const {
    HF_ASSERT_SLOW(from <= to && to - from <= lines_);
    for (position p = from; p < to;) {
        const std::uint64_t place = p & (lines_ - 1);
        const std::uint64_t count = std::min(to - p, lines_ - place);
        visit(at_ + place * line_bytes, (p - from) * line_bytes, count * line_bytes);
        p += count;
    }
}

std::optional<position> log_array::append(record_kind kind, const detail::function* what,
                                          const std::uint64_t* arguments, std::uint16_t hint,
                                          operation which) noexcept {
    record r; // only its own lines are ever written
    r.head = {};
    r.head.kind = static_cast<std::uint8_t>(kind);
    const std::uint64_t before = operation_words(r.head.kind);
    if (before != 0) r.arguments[0] = which.caller, r.arguments[1] = which.number;
    if (what != nullptr) {
        r.head.function = what->id;
        r.head.schema = what->schema;
        r.head.version = what->version;
        r.head.words = what->words;
        std::memcpy(r.arguments + before, arguments, what->words * word_bytes);
    }
    HF_ASSERT(r.words() <= record_words_max);
    const std::uint64_t used = sizeof r.head + r.words() * word_bytes;
    std::memset(reinterpret_cast<std::byte*>(&r) + used, 0, r.lines() * line_bytes - used);
    const auto at = reserve(r.lines(), ends_group(r.head.kind) ? 0 : record_lines_max);
    if (!at) return at; // (5)
    r.head.position = *at;
    r.head.check = r.sum(salt_);
    for_each_piece(*at, *at + r.lines(),
                   [&](std::byte* to, std::uint64_t from, std::uint64_t bytes) {
                       std::memcpy(to, reinterpret_cast<const std::byte*>(&r) + from, bytes);
                   });
    slot& mine = slot_of(*at);
    mine.what = what;
    mine.hint = hint;
    mine.lines = static_cast<std::uint8_t>(r.lines());
    mine.behind = 0;
    mine.published.store(*at + 1, std::memory_order_release); // upholds (2)
    persist::counters& count = persist::thread_counters();
    ++count.log_entries;
    count.log_bytes += r.lines() * line_bytes;
    count.pm_bytes += r.lines() * line_bytes;
    return at;
}

void log_array::wait_until_published(position below) const noexcept {
    for (position p = done_; p < below;) {
        while (slot_of(p).published.load(std::memory_order_acquire) != p + 1) ::sched_yield();
        p += slot_of(p).lines;
    }
}

void log_array::commit(position end) const noexcept {
    wait_until_published(end);
    for_each_piece(done_, end, [&](std::byte* lines, std::uint64_t, std::uint64_t bytes) {
        pm_.flush(lines, bytes);
    });
    pm_.fence(); // upholds (3): the group is durable before any of its calls is made
}

log_array::glimpse log_array::glance(position at) const noexcept {
    const slot& its = slot_of(at);
    HF_ASSERT(its.published.load(std::memory_order_acquire) == at + 1);
    return {its.hint, at + its.lines};
}

const detail::function* log_array::call_at(position at, record& out,
                                           position& next) const noexcept {
    const slot& its = slot_of(at);
    HF_ASSERT(its.published.load(std::memory_order_acquire) == at + 1);
    next = at + its.lines;
    for_each_piece(at, next, [&](const std::byte* from, std::uint64_t to, std::uint64_t bytes) {
        std::memcpy(reinterpret_cast<std::byte*>(&out) + to, from, bytes);
    });
    return its.what;
}

void log_array::set_done(position below) noexcept {
    HF_ASSERT(done_ <= below && below <= head());
    done_ = below;
}

void log_array::set_resilient(position below) noexcept {
    HF_ASSERT(checkpointed_ <= below && below <= done_);
    checkpointed_ = below;
    tail_.store(below, std::memory_order_release); // upholds (1)
    HF_ASSERT_SLOW(valid());
}

void log_array::erase() noexcept {
    pm_.fence(); // behind the index
    std::memset(at_, 0, lines_ * line_bytes);
    pm_.flush(at_, lines_ * line_bytes);
    pm_.fence();
}

bool log_array::read(const std::byte* lines_at, std::uint64_t lines, std::uint64_t salt,
                     position at, record& out) noexcept {
    const auto take = [&](std::uint64_t line, const trace::event& how) {
        const std::byte* const from = lines_at + ((at + line) & (lines - 1)) * line_bytes;
        trace::announce(how, from, line_bytes);
        std::memcpy(reinterpret_cast<std::byte*>(&out) + line * line_bytes, from, line_bytes);
        // Judges the copy: a writer may store to the original meanwhile (view.hpp).
        std::atomic_thread_fence(std::memory_order_acquire);
    };
    take(0, believed::checked);
    if (out.head.position != at || out.words() > record_words_max) return false;
    for (std::uint64_t line = 1; line < out.lines(); ++line) take(line, believed::checked_on);
    return out.head.check == out.sum(salt);
}

} // namespace hf::simpo
