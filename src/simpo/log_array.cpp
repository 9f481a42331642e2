// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <pool/believed.hpp>
#include <simpo/log_array.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <sched.h>

namespace hf::simpo {
namespace {

constexpr std::uint64_t line_words = 4; // of arguments in a record of one line

void store(std::uint64_t& to, std::uint64_t word) noexcept {
    std::atomic_ref(to).store(word, std::memory_order_relaxed); // in line, and no call of memcpy
}

} // namespace

log_array::log_array(hf::medium pm, object_head& head, bool closed)
    : pm_(pm), lines_(head.log_lines), salt_(head.salt),
      slots_(closed ? nullptr : new slot[head.log_lines]),
      head_(position_of(head.resilient) | (closed ? closed_bit : 0)),
      tail_(position_of(head.resilient)), done_(tail_.load()), checkpointed_(tail_.load()) {
    HF_ASSERT(std::has_single_bit(lines_) && lines_ >= 2 * record_lines_max);
    lie_with(head);
}

void log_array::lie_with(object_head& head) noexcept {
    object_ = &head;
    at_ = reinterpret_cast<std::byte*>(&head) + layout_of(head).log_offset;
}

log_array::slots log_array::new_slots() const { return slots(new slot[lines_]); }

void log_array::reopen(object_head& head, position start, slots with) noexcept {
    slots_ = std::move(with);
    lie_with(head);
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

/// Makes the record that 'head' begins. It may lie in the log already.
inline void log_array::make_record(record& r, const record_head& head,
                                   const std::uint64_t* arguments, operation which) const noexcept {
    r.head = head;
    const std::uint64_t before = operation_words(head.kind);
    if (before != 0) r.arguments[0] = which.caller, r.arguments[1] = which.number;
    std::uint64_t* const to = r.arguments + before;
    if (head.words <= line_words)
        for (std::uint64_t i = 0; i < head.words; ++i) store(to[i], arguments[i]);
    else std::memcpy(to, arguments, head.words * word_bytes);
    if (!pm_.keeps_order()) store(r.head.check, r.sum(salt_)); // else (7)
}

/// The same of one that goes round the log's end.
void log_array::make_round(const record_head& head, const std::uint64_t* arguments,
                           operation which) noexcept {
    record r; // only its own lines are ever written
    make_record(r, head, arguments, which);
    const auto copy = [&](std::byte* to, std::uint64_t from, std::uint64_t bytes) {
        std::memcpy(to, reinterpret_cast<const std::byte*>(&r) + from, bytes);
    };
    for_each_piece(head.position, head.position + r.lines(), copy);
}

std::optional<position> log_array::append(record_kind kind, const detail::function* what,
                                          const std::uint64_t* arguments, std::uint16_t hint,
                                          operation which) noexcept {
    record_head head{0, 0, 0, 0, 0, 0, std::uint8_t(kind)};
    if (what != nullptr) {
        head.function = what->id;
        head.schema = what->schema;
        head.version = what->version;
        head.words = what->words;
    }
    const std::uint64_t words = operation_words(head.kind) + head.words;
    const std::uint64_t lines = record_lines(words);
    HF_ASSERT(words <= record_words_max);
    const auto at = reserve(lines, ends_group(head.kind) ? 0 : record_lines_max);
    if (!at) [[unlikely]]
        return at; // (5)
    head.position = *at;
    if (goes_round(*at, lines)) [[unlikely]]
        make_round(head, arguments, which);
    else make_record(*line_at(*at), head, arguments, which);
    if (kind != record_kind::instant) { // (2)
        slot& mine = slot_of(*at);
        mine.what = what;
        mine.hint = hint;
        mine.lines = static_cast<std::uint8_t>(lines);
        mine.behind = 0;
        mine.published.store(*at + 1, std::memory_order_release); // upholds (2)
    }
    persist::counters& count = persist::thread_counters();
    ++count.log_entries;
    count.log_bytes += lines * line_bytes;
    count.pm_bytes += lines * line_bytes;
    return at;
}

void log_array::wait_until_published(position below) const noexcept {
    for (position p = done(); p < below;) {
        while (slot_of(p).published.load(std::memory_order_acquire) != p + 1) ::sched_yield();
        p += slot_of(p).lines;
    }
}

void log_array::commit(position mine, position end) const noexcept {
    wait_until_published(mine);
    if (pm_.keeps_order()) {
        pm_.store_word(&object_->logged, end); // upholds (7)
    } else {
        for_each_piece(done(), end, [&](std::byte* lines, std::uint64_t, std::uint64_t bytes) {
            pm_.flush(lines, bytes);
        });
    }
    pm_.fence(); // upholds (3): the group is durable before any of its calls is made
}

log_array::glimpse log_array::glance(position at) const noexcept {
    const slot& its = slot_of(at);
    HF_ASSERT(its.published.load(std::memory_order_acquire) == at + 1);
    return {its.hint, at + its.lines};
}

log_array::logged_call log_array::call_at(position at, record& room) const noexcept {
    const slot& its = slot_of(at);
    HF_ASSERT(its.published.load(std::memory_order_acquire) == at + 1);
    const position next = at + its.lines;
    if (!goes_round(at, its.lines)) [[likely]]
        return {*line_at(at), its.what, next};
    for_each_piece(at, next, [&](const std::byte* from, std::uint64_t to, std::uint64_t bytes) {
        std::memcpy(reinterpret_cast<std::byte*>(&room) + to, from, bytes);
    });
    return {room, its.what, next};
}

void log_array::set_resilient(position below) noexcept {
    HF_ASSERT(checkpointed_ <= below && below <= done());
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

bool log_array::read(const std::byte* lines_at, const object_head& head, position logged,
                     position at, record& out) noexcept {
    const auto take = [&](std::uint64_t line, const trace::event& how) {
        const std::uint64_t place = (at + line) & (head.log_lines - 1);
        const std::byte* const from = lines_at + place * line_bytes;
        trace::announce(how, from, line_bytes); // also below 'logged', where no failure tears
        std::memcpy(reinterpret_cast<std::byte*>(&out) + line * line_bytes, from, line_bytes);
        // Judges the copy: a writer may store to the original meanwhile (view.hpp).
        std::atomic_thread_fence(std::memory_order_acquire);
    };
    take(0, believed::checked);
    if (!out.begins(at)) return false;
    for (std::uint64_t line = 1; line < out.lines(); ++line) take(line, believed::checked_on);
    return out.counts(at, head, logged);
}

} // namespace hf::simpo
