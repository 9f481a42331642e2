// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Durable transactions in hardware: log bits and persist bits of cache lines, the log buffer,
// transaction identifiers and signatures, on the caches and the memory of research/sim. Source:
// SLPMT §II, §III, §V-B. The simulation is exact about which line becomes durable when; the time
// that it takes is a model (sim/core_clock.hpp, sim/persistent_memory.hpp).
//
// (1) Undo: a line that a transaction stored to, with a log, is written to memory after its
//     records.
// (2) A transaction is committed when its mark is accepted; all its records and eager lines were
//     accepted before. Redo: the lines in place follow the mark.
// (3) Lazy lines of a committed transaction stay in its core's private caches, under its
//     identifier, until one of these events: a store to its working set; a touch of one of the
//     lines; one of them leaves the private caches; the identifier is used again. Then its lines,
//     and those of all earlier transactions, are written.
// (4) Redo: no logged line reaches memory before the mark, unless a record of the old memory
//     contents is in the log before it.
//     Recovery replays the log of the last transaction that is resolved. The log becomes void, by
//     its mark written again, before another core comes to what that transaction stored, or before
//     the circle comes round to it.
// (5) eADR: when the power fails, a battery writes to memory the contents of caches and log
//     buffers, and which transaction was resolved last. So a commit persists nothing, and records
//     that have not been drained have no use. A mark is written if some have been drained.
#pragma once

#include <sim/core_clock.hpp>
#include <sim/hierarchy.hpp>
#include <sim/persistent_memory.hpp>
#include <slpmt/log_area.hpp>
#include <slpmt/log_buffer.hpp>
#include <slpmt/signature.hpp>
#include <slpmt/technique.hpp>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace hf::slpmt {

/// The parts of persistent memory: the cores' logs, then the programs' part.
struct layout {
    std::uint64_t bytes = 16 << 20;
    std::uint64_t log_lines = 16 << 10;
    std::uint32_t cores = 1;
    std::uint64_t root_at =
        0; // of a structure, behind the heap's beginning: each core may have its own

    log_layout log_of(unsigned core) const {
        log_layout one{0, log_lines};
        one.at = core * one.bytes();
        return one;
    }
    std::uint64_t heap() const { return log_of(cores).at; }
};

class machine final : private sim::line_client {
public:
    /// Starts with what `image` holds, if anything: what a recovery left.
    machine(const technique& how, const sim::parameters& parts, const layout& where,
            std::span<const std::byte> image = {});

    /// Which core acts from here on.
    void run_on(unsigned core) { at_ = &cores_[core]; }

    void begin();
    void commit();
    /// Takes the transaction back. Its log-free stores leave garbage, as before its first store.
    void abort();
    /// The operating system takes the thread off the core: its records go to memory.
    void switch_context();

    struct loaded {
        std::uint64_t value;
        sim::ticks ready;
    };
    /// A word, of an address that is known at `ready`.
    loaded load(std::uint64_t offset, sim::ticks ready = 0);
    void store(std::uint64_t offset, std::uint64_t value, operands how = {});
    void compute(std::uint64_t instructions) { at_->clock.compute(instructions); }

    struct counts {
        std::uint64_t log_lines = 0, data_lines = 0, lazy_lines = 0, overflow_lines = 0, marks = 0;
        std::uint64_t records = 0, discarded = 0;
        std::uint64_t signature_hits = 0, touched_lazy = 0, circled = 0;
    };
    const counts& counted() const { return counts_; }
    const sim::hierarchy& caches() const { return caches_; }
    sim::persistent_memory& memory() { return memory_; }
    const layout& where() const { return where_; }
    const technique& how() const { return how_; }
    /// The memory contents that a power failure would leave now.
    std::vector<std::byte> after_power_failure() const;
    /// Is called after each store: with eADR a crash may come there, and finds something new.
    void on_store(std::function<void()> observer) { observer_ = std::move(observer); }
    sim::ticks now_of(unsigned core) const { return cores_[core].clock.settled(); }
    /// The contents that programs see.
    std::span<const std::byte> contents() const { return contents_; }
    sim::ticks now() const { return at_->clock.settled(); }
    bool in_transaction() const { return at_->active; }
    /// The tag of the last transaction that is resolved.
    std::uint64_t resolved() const { return at_->tag - 1; }
    /// Committed lazy lines that a crash now would lose.
    std::uint64_t lazy_at_risk() const;

    /// Table I's bits of a line, as the core's private caches hold it: for tests.
    struct bits {
        bool persist;
        unsigned log; // of the first level's eight words, or the second level's two halves
        unsigned identifier;
        bool owned;
    };
    std::pair<bool, bits> bits_of(std::uint64_t line);
    /// The signature of an identifier holds a line: for tests.
    bool working_set_holds(unsigned identifier, std::uint64_t line) const {
        return at_->sets[identifier].working.may_hold(line);
    }
    const log_buffer& buffer() const { return at_->buffer; }

private:
    static constexpr unsigned identifiers = 4;
    /// The transaction of an identifier, until its lazy lines are durable.
    struct transaction {
        signature working;
        std::uint64_t age = 0; // 0: nothing lazy is left
        std::vector<std::uint64_t> lazy;
    };
    struct core {
        explicit core(const sim::core_parameters& how) : clock(how) {}
        unsigned number = 0;
        sim::core_clock clock;
        log_buffer buffer;
        std::array<transaction, identifiers> sets;
        unsigned identifier = 0;
        bool active = false;
        std::uint64_t tag = 1;
        std::uint64_t place = 0, start = 0; // of the log, and where this transaction's begins
        std::vector<std::uint64_t> lines;   // that this transaction stored to
        std::vector<std::pair<std::uint64_t, std::uint64_t>>
            old;                                 // words that it stored to, and their old contents
        std::array<sim::ticks, tiers> drained{}; // when each tier is free again
        signature overflowed; // redo: logged lines that left the private caches in mid-transaction
        signature replayed;   // redo: lines of the last transaction that is resolved
        std::uint64_t replayed_from = 0; // where its log begins
        std::uint64_t stores = 0;
    };

    std::uint16_t to_second(unsigned core, std::uint64_t line, std::uint16_t marks) override;
    std::uint16_t to_first(std::uint16_t marks) override;
    bool leaves(unsigned core, std::uint64_t line, std::uint16_t marks, bool dirty) override;
    void asked_for(unsigned core, std::uint64_t line, bool to_write) override;
    void write_back(std::uint64_t line) override;

    operands effective(operands how) const {
        return {how.lazy && how_.honours_lazy, how.log_free && how_.honours_log_free};
    }
    std::uint64_t word_at(std::uint64_t offset) const;
    void check_working_sets(core& c, const sim::hierarchy::access& got);
    bool take_line(core& c, sim::held& line);
    sim::ticks log_store(core& c, sim::held& line, std::uint64_t word, std::uint64_t value,
                         operands how, bool first);
    sim::ticks log_new_value(core& c, sim::held& line, std::uint64_t word, std::uint64_t value,
                             operands how, bool first);
    sim::ticks add_record(core& c, std::uint64_t word, std::uint64_t value);
    record whole_line(std::uint64_t word, std::uint64_t value);
    sim::ticks write_batch(core& c, std::span<const record> records, sim::ticks at,
                           bool old = false);
    sim::ticks write_line(std::uint64_t line, sim::ticks at);
    sim::ticks write_mark(core& c, sim::ticks at);
    bool is_replayed(const core& c) const { return how_.redo && c.replayed_from != end_of_last(c); }
    static std::uint64_t end_of_last(const core& c) { return c.active ? c.start : c.place; }
    void retire_log(core& c);
    void clean(sim::held& line);
    void settle_lazy(core& c, unsigned identifier);
    void settle_all_before(core& c, std::uint64_t age);
    void overflow_logged(core& c, std::uint64_t line);
    sim::ticks persist_lines(core& c, sim::ticks at, bool logged, bool log_free);
    void keep_lazy(core& c);
    void end(core& c, std::uint64_t resolved_tag);
    void commit_in_caches(core& c, sim::ticks at);

    const technique how_;
    const layout where_;
    const sim::ticks acknowledge_; // from the memory controller back to the core
    sim::persistent_memory memory_;
    std::vector<std::byte> contents_;
    std::vector<core> cores_;
    core* at_;
    sim::hierarchy caches_;
    std::uint64_t order_ = 0, age_ = 0;
    counts counts_;
    const bool caches_persist_;
    std::function<void()> observer_;
};

} // namespace hf::slpmt
