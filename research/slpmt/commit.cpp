// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What reaches persistent memory, and in which order: commits, aborts, lazy lines, lines that leave
// the caches.
#include <base/assert.hpp>
#include <slpmt/machine.hpp>
#include <slpmt/marks.hpp>

#include <algorithm>
#include <cstring>

namespace hf::slpmt {

void machine::begin() {
    core& c = *at_;
    HF_ASSERT(!c.active);
    c.active = true;
    c.identifier = (c.identifier + 1) % identifiers;
    transaction& own = c.sets[c.identifier];
    if (own.age != 0) { // the circle is closed: (slpmt/machine.hpp, 3)
        ++counts_.circled;
        settle_lazy(c, c.identifier);
    }
    own.working.clear();
    c.start = c.place;
    c.lines.clear();
    c.old.clear();
    c.overflowed.clear();
}

void machine::commit() {
    core& c = *at_;
    HF_ASSERT(c.active);
    sim::ticks at = c.clock.settled();
    if (caches_persist_ && !c.lines.empty()) return commit_in_caches(c, at);
    if (!c.lines.empty()) {
        // Records of lines that stay behind are for nothing once the transaction has committed.
        const auto stays = [&](const record& one) {
            const sim::held* const line = caches_.held_by(c.number, one.line());
            return line != nullptr && (line->marks & mark::persist) == 0;
        };
        counts_.discarded += c.buffer.take(stays).size();
        const auto records = c.buffer.take([](const record&) { return true; });
        sim::ticks accepted = write_batch(c, records, at);
        if (!how_.posted && !records.empty())
            at = accepted + acknowledge_; // (slpmt/machine.hpp, 1)
        accepted = std::max(accepted, persist_lines(c, at, !how_.redo, true));
        at = std::max(at, accepted + acknowledge_);
        at = write_mark(c, at) + acknowledge_; // (slpmt/machine.hpp, 2)
        if (how_.redo) {
            persist_lines(c, at, true, false);
            c.replayed.clear();
            for (const std::uint64_t line : c.lines) c.replayed.add(line);
            c.replayed_from = c.start;
        }
        keep_lazy(c);
        c.clock.wait_until(at);
        end(c, c.tag);
        return;
    }
    c.clock.wait_until(at); // nothing was stored: the tag is not used up
    c.active = false;
}

/// upholds (slpmt/machine.hpp, 5)
void machine::commit_in_caches(core& c, sim::ticks at) {
    counts_.discarded += c.buffer.take([](const record&) { return true; }).size();
    if (c.place != c.start) at = write_mark(c, at) + acknowledge_;
    for (const std::uint64_t number : c.lines)
        if (sim::held* const line = caches_.held_by(c.number, number); line != nullptr)
            line->marks = 0; // dirty as it is
    c.sets[c.identifier].age = 0;
    c.clock.wait_until(at);
    end(c, c.tag);
}

/// Writes the transaction's eager lines, those with log bits or those without.
sim::ticks machine::persist_lines(core& c, sim::ticks at, bool logged, bool log_free) {
    sim::ticks accepted = at;
    for (const std::uint64_t number : c.lines) {
        sim::held* const line = caches_.held_by(c.number, number);
        if (line == nullptr || (line->marks & mark::owned) == 0)
            continue; // has left, and is durable
        if ((line->marks & mark::persist) == 0) continue;
        if (!((line->marks & mark::all_words) != 0 ? logged : log_free)) continue;
        ++counts_.data_lines;
        accepted = write_line(number, at);
        clean(*line);
    }
    return accepted;
}

/// The rest of the transaction's lines waits under its identifier.
void machine::keep_lazy(core& c) {
    transaction& own = c.sets[c.identifier];
    own.lazy.clear();
    for (const std::uint64_t number : c.lines) {
        sim::held* const line = caches_.held_by(c.number, number);
        if (line == nullptr || (line->marks & mark::owned) == 0) continue;
        line->marks = mark::without_log(line->marks);
        own.lazy.push_back(number);
    }
    own.age = own.lazy.empty() ? 0 : ++age_;
}

void machine::end(core& c, std::uint64_t resolved_tag) {
    c.tag = resolved_tag + 1;
    c.active = false;
    c.lines.clear();
    c.old.clear();
}

/// The steps of §V-B; only the current signature is cleared, since the others guard lazy lines of
/// transactions that have committed.
void machine::abort() {
    core& c = *at_;
    HF_ASSERT(c.active);
    c.buffer.take([](const record&) { return true; });
    c.sets[c.identifier].working.clear();
    for (const std::uint64_t line : c.lines) caches_.drop(c.number, line);
    for (; !c.old.empty(); c.old.pop_back())
        std::memcpy(contents_.data() + c.old.back().first, &c.old.back().second, word_bytes);
    // The kernel applies the log: memory returns to its state before.
    sim::ticks at = c.clock.settled();
    for (const std::uint64_t line : c.lines)
        if (std::memcmp(contents_.data() + line * line_bytes, &memory_.durable()[line * line_bytes],
                        line_bytes) != 0) {
            ++counts_.data_lines;
            at = write_line(line, at);
        }
    if (!c.lines.empty()) {
        c.start = c.replayed_from = c.place; // there is nothing to replay
        c.clock.wait_until(write_mark(c, at) + acknowledge_);
        end(c, c.tag);
    }
    c.active = false;
}

void machine::switch_context() {
    core& c = *at_;
    const auto records = c.buffer.take([](const record&) { return true; });
    c.clock.wait_until(write_batch(c, records, c.clock.settled()) + acknowledge_);
}

/// Writes the lazy lines of an identifier, and of all transactions before its.
void machine::settle_lazy(core& c, unsigned identifier) {
    if (c.sets[identifier].age != 0) settle_all_before(c, c.sets[identifier].age);
}

void machine::settle_all_before(core& c, std::uint64_t age) {
    for (;;) {
        transaction* oldest = nullptr;
        for (transaction& one : c.sets)
            if (one.age != 0 && one.age <= age && (oldest == nullptr || one.age < oldest->age))
                oldest = &one;
        if (oldest == nullptr) return;
        for (const std::uint64_t number : oldest->lazy) {
            sim::held* const line = caches_.held_by(c.number, number);
            if (line == nullptr || (line->marks & mark::owned) == 0) continue;
            ++counts_.lazy_lines;
            if (how_.writes_lazy) write_line(number, c.clock.now());
            clean(*line);
        }
        oldest->age = 0;
        oldest->lazy.clear();
        oldest->working.clear();
    }
}

void machine::clean(sim::held& line) {
    line.state = sim::mesi::exclusive;
    line.marks = 0;
}

sim::ticks machine::write_line(std::uint64_t line, sim::ticks at) {
    return memory_.write(line, contents_.data() + line * line_bytes, at);
}

/// Writes records as a batch; returns when the last is accepted.
sim::ticks machine::write_batch(core& c, std::span<const record> records, sim::ticks at, bool old) {
    if (records.empty()) return at;
    const auto lines = pack(records, c.tag, old);
    const log_layout log = where_.log_of(c.number);
    if (c.place + lines.size() - c.start > log.lines)
        fatal("slpmt: a transaction needs more than the %llu lines of its log",
              static_cast<unsigned long long>(log.lines));
    if (is_replayed(c) && c.place + lines.size() - c.replayed_from > log.lines) retire_log(c);
    for (std::size_t i = lines.size(); i-- > 0;) { // the first line last (slpmt/log_area.hpp, 1)
        ++counts_.log_lines;
        at = memory_.write(log.line_at(c.place + i), lines[i].data(), at);
    }
    c.place += lines.size();
    return at;
}

/// upholds (slpmt/machine.hpp, 4): what the last transaction stored is in place.
void machine::retire_log(core& c) {
    ++counts_.marks;
    c.replayed_from = end_of_last(c);
    const auto image = resolution{c.tag - 1, c.replayed_from, c.replayed_from}.image();
    memory_.write(where_.log_of(c.number).slot_line(c.tag - 1), image.data(), c.clock.now());
}

sim::ticks machine::write_mark(core& c, sim::ticks at) {
    ++counts_.marks;
    const auto image = resolution{c.tag, c.start, c.place}.image();
    return memory_.write(where_.log_of(c.number).slot_line(c.tag), image.data(), at);
}

/// A half of the line keeps its log bit if all of its words have theirs; so that those that have
/// are not logged again, with a later value, the others are logged now.
std::uint16_t machine::to_second(unsigned number, std::uint64_t line, std::uint16_t marks) {
    core& c = cores_[number];
    auto logged = static_cast<std::uint16_t>(marks & mark::all_words);
    for (unsigned first = 0; first < line_words; first += mark::words_per_half) {
        const unsigned of_half = logged >> first & mark::half;
        if (!how_.speculates || of_half == 0 || of_half == mark::half || !c.active) continue;
        for (unsigned i = first; i < first + mark::words_per_half; ++i) {
            if ((logged >> i & 1) != 0) continue;
            const std::uint64_t word = line * line_words + i;
            if (!how_.redo || c.buffer.covering(word) == nullptr)
                add_record(c, word, word_at(word * word_bytes));
            logged = static_cast<std::uint16_t>(logged | 1U << i);
        }
    }
    const bool low = (logged & mark::half) == mark::half, high = logged >> 4 == mark::half;
    return static_cast<std::uint16_t>(mark::without_log(marks) | (low ? 1 : 0) | (high ? 2 : 0));
}

std::uint16_t machine::to_first(std::uint16_t marks) {
    const unsigned halves = marks & mark::all_words;
    return static_cast<std::uint16_t>(mark::without_log(marks) |
                                      ((halves & 1) != 0 ? mark::half : 0) |
                                      ((halves & 2) != 0 ? mark::half << 4 : 0));
}

bool machine::leaves(unsigned number, std::uint64_t line, std::uint16_t marks, bool dirty) {
    core& c = cores_[number];
    if ((marks & mark::owned) == 0) return dirty;
    const bool current = c.active && mark::identifier(marks) == c.identifier;
    // The text lets go of a line whose persist bit is not set.
    if (!how_.persists_leaving && (marks & mark::persist) == 0) return dirty;
    if (current) {
        const auto records = c.buffer.take([&](const record& one) { return one.line() == line; });
        write_batch(c, records, c.clock.now()); // (slpmt/machine.hpp, 1)
        if (how_.redo && (marks & mark::all_words) != 0) overflow_logged(c, line);
    }
    ++counts_.overflow_lines;
    write_line(line, c.clock.now());
    return false;
}

/// The redo log has the new values only; memory is about to lose the old ones: (slpmt/machine.hpp,
/// 4).
void machine::overflow_logged(core& c, std::uint64_t line) {
    if (!how_.guards_overflow) return;
    record before{line * line_words, tiers - 1, {}};
    std::memcpy(before.values.data(), &memory_.durable()[line * line_bytes], line_bytes);
    write_batch(c, {&before, 1}, c.clock.now(), true);
    c.overflowed.add(line);
}

/// Another core's request: a transaction there is about to depend on, or to change, what ours has
/// left.
void machine::asked_for(unsigned number, std::uint64_t line, bool to_write) {
    core& c = cores_[number];
    if (const sim::held* const own = caches_.held_by(number, line);
        own != nullptr && (own->marks & mark::owned) != 0) {
        HF_ASSERT(
            !(c.active && mark::identifier(own->marks) == c.identifier)); // locks keep them apart
        ++counts_.touched_lazy;
        settle_lazy(c, mark::identifier(own->marks));
    }
    if (is_replayed(c) && c.replayed.may_hold(line)) retire_log(c);
    if (!to_write) return;
    for (unsigned i = 0; i < identifiers; ++i)
        if (c.sets[i].age != 0 && c.sets[i].working.may_hold(line)) {
            ++counts_.signature_hits;
            settle_lazy(c, i);
        }
}

void machine::write_back(std::uint64_t line) {
    ++counts_.overflow_lines;
    write_line(line, at_->clock.now());
}

} // namespace hf::slpmt
