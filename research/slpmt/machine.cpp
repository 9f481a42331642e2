// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads and stores. Commits, aborts and what leaves the caches: commit.cpp.
#include <base/assert.hpp>
#include <slpmt/machine.hpp>
#include <slpmt/marks.hpp>

#include <algorithm>
#include <cstring>

namespace hf::slpmt {

machine::machine(const technique& how, const sim::parameters& parts, const layout& where,
                 std::span<const std::byte> image)
    : how_(how), where_(where), acknowledge_(parts.l3.cycles * sim::ticks_per_cycle),
      memory_(parts.memory, where.bytes), contents_(where.bytes),
      cores_(parts.cores, core{parts.core}), at_(cores_.data()), caches_(parts, *this),
      caches_persist_(parts.memory.caches_persist) {
    HF_ASSERT(!(caches_persist_ && how.redo)); // (5) is said of undo
    HF_ASSERT(where.cores == parts.cores && where.heap() < where.bytes);
    if (!image.empty()) {
        memory_.preset(image);
        std::ranges::copy(image, contents_.begin());
    }
    for (unsigned i = 0; i < cores_.size(); ++i) {
        core& c = cores_[i];
        const resolution last = newest(contents_, where_.log_of(i));
        c.number = i;
        c.tag = last.tag + 1;
        c.place = c.start = last.next;
        c.replayed_from = last.next; // recovery leaves nothing to replay
    }
}

std::uint64_t machine::word_at(std::uint64_t offset) const {
    HF_ASSERT(offset % word_bytes == 0 && offset >= where_.heap() &&
              offset + word_bytes <= contents_.size());
    std::uint64_t value = 0;
    std::memcpy(&value, contents_.data() + offset, sizeof value);
    return value;
}

machine::loaded machine::load(std::uint64_t offset, sim::ticks ready) {
    core& c = *at_;
    const std::uint64_t value = word_at(offset), line = offset / line_bytes;
    const sim::ticks start = c.clock.start_load(ready);
    const auto got = caches_.reach(c.number, line, false);
    sim::held& in = *got.line;
    if (got.missed) in.filled = start + got.latency;
    const sim::ticks done = std::max(start + got.latency, in.filled);
    c.clock.end_load(done);
    // upholds (3): a lazy line of an earlier transaction is touched
    if ((in.marks & mark::owned) != 0 &&
        !(c.active && mark::identifier(in.marks) == c.identifier)) {
        ++counts_.touched_lazy;
        settle_lazy(c, mark::identifier(in.marks));
    }
    if (c.active) c.sets[c.identifier].working.add(line);
    return {value, done};
}

void machine::store(std::uint64_t offset, std::uint64_t value, operands how) {
    core& c = *at_;
    const std::uint64_t old = word_at(offset), line = offset / line_bytes;
    const sim::hierarchy::access got = caches_.reach(c.number, line, true);
    sim::held& in = *got.line;
    const sim::ticks start = c.clock.start_store(got.missed);
    if (got.missed) in.filled = start + got.latency;
    sim::ticks done = std::max(start + got.latency, in.filled);
    check_working_sets(c, got);
    if (!c.active && is_replayed(c) && c.replayed.may_hold(line)) retire_log(c);
    in.state = sim::mesi::modified; // again, if what it held before has just been written
    if (c.active) {
        how = effective(how);
        const bool first = take_line(c, in);
        done = std::max(done, log_store(c, in, offset / word_bytes, value, how, first));
        if (sets_persist_bit(how)) in.marks |= mark::persist;
        c.old.emplace_back(offset, old);
    }
    std::memcpy(contents_.data() + offset, &value, sizeof value);
    c.clock.end_store(done, got.missed);
    if (observer_) observer_();
}

/// Before something of an earlier working set changes, what depends on it has to be durable:
/// upholds (3). A line that the transaction has stored to already was looked up then.
void machine::check_working_sets(core& c, const sim::hierarchy::access& got) {
    const std::uint16_t marks = got.line->marks;
    if ((marks & mark::owned) != 0) {
        if (c.active && mark::identifier(marks) == c.identifier) return;
        ++counts_.touched_lazy;
        settle_lazy(c, mark::identifier(marks));
    }
    // A line that is here to be written asks nobody: the text's check misses it.
    if (!how_.checks_hits && !got.asked) return;
    for (unsigned i = 0; i < identifiers; ++i) {
        if (c.sets[i].age == 0 || !c.sets[i].working.may_hold(got.line->line)) continue;
        ++counts_.signature_hits;
        settle_lazy(c, i);
    }
}

/// The transaction's first store to a line makes it the transaction's; returns whether it was that.
bool machine::take_line(core& c, sim::held& line) {
    if ((line.marks & mark::owned) != 0) return false;
    c.sets[c.identifier].working.add(line.line);
    c.lines.push_back(line.line);
    line.marks = static_cast<std::uint16_t>(mark::owned | mark::of(c.identifier));
    if (how_.redo && c.overflowed.may_hold(line.line)) line.marks |= mark::all_words;
    return true;
}

/// Makes the record that a store needs; returns when the store may become visible.
sim::ticks machine::log_store(core& c, sim::held& line, std::uint64_t word, std::uint64_t value,
                              operands how, bool first) {
    if (how_.redo) return log_new_value(c, line, word, value, how, first);
    const auto bit = static_cast<std::uint16_t>(1U << word % line_words);
    if (how_.log == logging::stores) c.clock.compute(how_.instructions_per_record);
    if (!sets_log_bit(how) || ((line.marks & bit) != 0 && how_.log != logging::stores)) return 0;
    line.marks |= how_.log == logging::lines ? mark::all_words : bit;
    if (how_.log == logging::touched) c.clock.compute(how_.instructions_per_record);
    return add_record(c, word, word_at(word * word_bytes));
}

/// Redo: a word that has a record needs its newest value there, log-free store or not. A line with
/// logged words is written after the mark, so that what it has of log-free words needs records,
/// too.
sim::ticks machine::log_new_value(core& c, sim::held& line, std::uint64_t word, std::uint64_t value,
                                  operands how, bool first) {
    const bool logged_line = (line.marks & mark::all_words) != 0;
    const auto bit = static_cast<std::uint16_t>(1U << word % line_words);
    const bool needs = how_.logs_mixed_lines ? logged_line : (line.marks & bit) != 0;
    if (!sets_log_bit(how) && !needs) return 0;
    sim::ticks in = 0;
    if (how_.logs_mixed_lines && !logged_line && !first && how_.log == logging::words) {
        line.marks |= mark::all_words;
        for (std::uint64_t other = round_down(word, line_words), end = other + line_words;
             other < end; ++other)
            if (other != word) in = std::max(in, add_record(c, other, word_at(other * word_bytes)));
    }
    line.marks |= how_.log == logging::lines ? mark::all_words : bit;
    if (record* const buffered = c.buffer.covering(word); buffered != nullptr) {
        buffered->values[word - buffered->word] = value;
        return in;
    }
    return std::max(in, add_record(c, word, value));
}

record machine::whole_line(std::uint64_t word, std::uint64_t value) {
    record whole{round_down(word, line_words), tiers - 1, {}};
    for (unsigned i = 0; i < line_words; ++i)
        whole.values[i] = word_at((whole.word + i) * word_bytes);
    whole.values[word % line_words] = value;
    return whole;
}

/// Puts a record into the buffer; returns when it is there. Waits for a tier that is being drained.
sim::ticks machine::add_record(core& c, std::uint64_t word, std::uint64_t value) {
    ++counts_.records;
    sim::ticks in = how_.posted ? 0 : c.drained[0];
    const auto drain = [&](unsigned tier, std::span<const record> records) {
        const sim::ticks begins = std::max(c.clock.now(), c.drained[tier]);
        if (c.drained[tier] > c.clock.now()) in = std::max(in, c.drained[tier]);
        c.drained[tier] = write_batch(c, records, begins);
    };
    record one = how_.log == logging::lines ? whole_line(word, value) : record{word, 0, {value}};
    one.order = ++order_;
    if (how_.log == logging::stores || how_.log == logging::touched) c.buffer.append(one, drain);
    else c.buffer.add(one, drain);
    return in;
}

std::vector<std::byte> machine::after_power_failure() const {
    std::vector<std::byte> left{memory_.durable().begin(), memory_.durable().end()};
    if (!caches_persist_) return left;
    std::copy(contents_.begin() + static_cast<std::ptrdiff_t>(where_.heap()), contents_.end(),
              left.begin() + static_cast<std::ptrdiff_t>(where_.heap()));
    const auto write = [&](std::uint64_t line, const line_image& image) {
        std::ranges::copy(image, left.begin() + static_cast<std::ptrdiff_t>(line * line_bytes));
    };
    for (const core& c : cores_) { // upholds (5)
        const log_layout log = where_.log_of(c.number);
        const std::uint64_t next = c.active ? c.start : c.place;
        if (c.tag > 1) write(log.slot_line(c.tag - 1), resolution{c.tag - 1, next, next}.image());
        const auto lines = pack(c.buffer.all(), c.tag, false);
        for (std::size_t i = 0; c.active && i < lines.size(); ++i)
            write(log.line_at(c.place + i), lines[i]);
    }
    return left;
}

std::uint64_t machine::lazy_at_risk() const {
    std::uint64_t lines = 0;
    for (const core& c : cores_)
        for (const transaction& one : c.sets) lines += one.age != 0 ? one.lazy.size() : 0;
    return lines;
}

std::pair<bool, machine::bits> machine::bits_of(std::uint64_t line) {
    const sim::held* const at = caches_.held_by(at_->number, line);
    if (at == nullptr) return {false, {}};
    return {true,
            {(at->marks & mark::persist) != 0, static_cast<unsigned>(at->marks & mark::all_words),
             mark::identifier(at->marks), (at->marks & mark::owned) != 0}};
}

} // namespace hf::slpmt
