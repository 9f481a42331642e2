// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Explores what a failure at any moment of a run may leave, and what recovery makes of it.
//
// A run is a list of events (trace). It is replayed on a model of memory (persistent_memory). At
// each event that makes new contents possible, recovery runs on every memory that contains one of
// them. Recovery is ordinary code that reads ordinary memory:
//
// (1) A line with several possible contents is undecided until recovery reads bytes of it that it
//     has not stored itself. Then the line is decided, and recovery is run again for every other
//     choice. Lines that recovery never reads make no choices: one run represents all their
//     contents.
// (2) Recovery's own events are a run in turn: failures in it are explored the same way, to 'depth'
//     failures in a row. A line decided later than such a failure is undecided again in it.
// (3) A state that has been explored already, with the same choices and the same verdicts wanted,
//     is not explored again.
// (4) For a range that recovery reads under a checksum (hf::believed::checked), and for what it
//     reads only as long as that holds (checked_on), not every combination is tried. It is tried
//     whole, as it was, and with each of its lines in each older content alone: the checksum
//     distinguishes all of those from the whole one. Option 'every_combination' turns this off.
//
// (5) Memory holds the oldest content of undecided lines. Code that is not watched reads that
//     content, which is only one of the possible ones. With the newest contents instead the outcome
//     must be the same, or something is read unseen. This is tried once for each failure of the
//     run.
//
// (6) The first failure may also be a kill: recovery then finds all that had been stored. What had
//     not been flushed has not persisted, and a following power failure may still lose it. Only
//     domain ADR distinguishes the two, and only if another failure follows.
//
// (7) The cost of a state does not grow with memory: lines that nobody has stored to do not count.
//     Below, a line is its number among those touched.
//
// (8) A recovered pool may also be closed before the power fails: what the close has vouched for
//     must then be there. For that, recovery is run once more, with the choices that it had, and
//     with the first of the close's choices. This is the last failure of a chain, and comes after
//     as many as 'depth' allows. The run itself may end with a close, too.
//
// Recovery may die: signals, broken contracts and runs without end are verdicts; exploration goes
// on.
#pragma once

#include <check/persistent_memory.hpp>
#include <check/watch.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace hf::check {

enum class event_kind : std::uint8_t {
    store,
    nt_store,
    flush,
    flush_now,
    fence,
    decided,
    legal,
    closed // an open pool is closed, and vouched for (8)
};

/// How recovery ends (8): with nothing; with a close of what it has recovered, without a seal, at
/// once or after operations that went on from there; with a close that seals, after such operations
/// if there are any.
enum class closing : std::uint8_t { never, at_once, after_more, sealed };

struct trace_event {
    event_kind kind;
    std::uint8_t thread;
    std::uint32_t offset; // of memory; 'legal': index of the set that counts from here on
    std::uint32_t bytes;
    std::uint32_t data; // the start of its bytes in event_record::data
    code_place place;
};

struct event_record {
    std::vector<trace_event> events;
    std::vector<std::byte> data; // stored bytes
    void clear() {
        events.clear();
        data.clear();
    }
};

/// A digest of what recovery arrived at; two that are equal count as the same state.
using outcome = std::uint64_t;
/// States that recovery may arrive at.
using legal_set = std::vector<outcome>;

struct verdict {
    bool recovered = false; // else 'text' says what went wrong
    outcome state = 0;
    std::string text;
};

/// One failure of a chain: the event it came after, and the choices made in the run that followed.
struct failure_point {
    std::size_t event;
    std::vector<std::uint32_t> choices;
    unsigned part = 0;   // of a store that fails in parts: how many of its words came before
    bool killed = false; // the process only (6)
    closing close = closing::never; // of what recovery had recovered; the failure came after it (8)
    static constexpr unsigned before_it = 8; // 'part' of a failure before the event
};

struct missing_line { // a line whose newest content a failure lost
    std::size_t line;
    unsigned level;  // 0: failure of the run explored, 1: of its recovery …
    code_place lost; // the oldest store to it that is missing
    std::size_t lost_offset, lost_bytes;
    bool flushed; // after that store, before the failure
};

struct violation {
    std::string what;
    std::vector<failure_point> at; // replays it
    std::vector<missing_line> missing;
    code_place last; // of the event the first failure came after
    std::size_t last_event;
    std::size_t last_change = ~std::size_t{0}; // the last store until then that changed something
};

struct exploration {
    std::uint64_t states = 0;   // runs of recovery judged
    double images = 0;          // contents of memory that they represent (1)
    std::uint64_t merged = 0;   // runs that met nothing new, and failures explored before (3)
    std::uint64_t failures = 0; // events at which failures were explored, all depths
    std::uint64_t events = 0;   // of the runs explored
    std::uint64_t closes = 0; // recoveries that ended with a close (8); what follows is not counted
    double seconds = 0;       // of one core, spent on it
    bool complete = true;     // false: a budget ran out, or 'reduced'
    bool reduced = false;     // unordered words left out (persistent_memory::reduced)
    std::vector<violation> violations;
    exploration& operator+=(const exploration& more);
};

struct explore_options {
    unsigned depth = 2; // failures in a row
    std::uint64_t states_max = ~std::uint64_t{0};
    double seconds_max = 1e9;
    bool every_combination = false; // (4)
    enum class failure : std::uint8_t { any, power, kill };
    failure first = failure::any; // of two and more in a row: power: nor is one alone a kill (6)
    // (8): of the recoveries after 'depth' failures one in so many is closed, and every one of a
    // kill; 0: none. 'goes_on': operations may come before the close. 'seals': it may leave a seal.
    unsigned close_one_in = 0;
    bool goes_on = false, seals = false;
    bool kills_every_way = false; // else in the ways that there are in turn
    // Chains of fewer failures than this were judged by another explorer: they are not counted.
    unsigned failures_min = 1;
    double recovery_seconds_max = 5;
};

class explorer final : private observer {
public:
    /// 'memory': recovery's memory. 'recover' runs recovery, judges the result and lets go of it.
    explorer(std::span<std::byte> memory, domain d, std::function<verdict()> recover,
             const explore_options& options);
    ~explorer();

    /// Explores failures in 'run', which started from 'before' (everything durable), recovering to
    /// one of legal[0] until the run says otherwise. Adds to result(). Stops at the first
    /// violation.
    void explore(std::span<const std::byte> before, const event_record& run,
                 const std::vector<legal_set>& legal);
    /// 'recover' calls this when recovery is over. The rest only looks: the state has been seen,
    /// and no further failure may change it. Stores by these looks count only if a program goes on
    /// from there.
    void recovered() noexcept;
    /// 'recover' goes on with the pool that it has recovered and looked at: failures of that are
    /// explored as recovery's own are. From here on only these states are right after one.
    void wants(const legal_set& states);
    /// Failures so far in the chain that 'recover' runs after.
    unsigned failures_before() const noexcept;
    /// The last of them was one of the process alone (6).
    bool killed() const noexcept;
    /// How 'recover' must end this time (8). Before 'recover' closes anything, it passes the states
    /// that it has shown to wants(); afterwards it calls closed().
    closing closes() const noexcept { return closing_; }
    void closed();
    /// Whether 'recover' finds a closed pool, so that there is nothing to recover.
    bool found_closed() const noexcept;
    bool found_sealed() const noexcept;
    /// Sets the thread of the next reports.
    void set_thread(unsigned thread) noexcept { thread_ = static_cast<std::uint8_t>(thread); }
    /// For actions of 'recover' that may be done in several ways, such as the order in which it
    /// takes logs: returns one of 0 … options - 1, and every other one in another run.
    std::uint32_t pick(std::uint32_t options);
    /// Runs recovery once more on the memory of a violation; its verdict.
    verdict replay(std::span<const std::byte> before, const event_record& run,
                   const std::vector<failure_point>& at);

    const exploration& result() const noexcept { return result_; }
    /// Lines of memory that may not be as they were before the run. It grows.
    const std::vector<std::size_t>& touched_lines() const noexcept { return touched_; }

private:
    struct frame;

    void explore_run(frame& f, const event_record& run, const std::vector<legal_set>& legal);
    bool explore_store(frame& f, const trace_event& e, const std::byte* data,
                       const legal_set& legal);
    bool fail_here(frame& f, const legal_set& legal);
    bool kill_here(frame& f, const legal_set& legal);
    bool lose_power_here(frame& f, const legal_set& legal);
    static std::uint64_t killed_digest(const frame& f, const legal_set& legal);
    bool leaf(frame& f, const legal_set& legal);
    bool close_some(frame& f, const legal_set& legal, outcome state);
    bool close(frame& f, const legal_set& legal, outcome state, closing how);
    void run_recovery(frame& f, bool recorded);
    bool run_with_newest(frame& f);
    bool descends(const frame& f) const noexcept;
    bool descend_once(frame& f, const legal_set& legal, outcome state);
    bool descend(frame& f, const legal_set& legal, outcome state);
    void report(frame& f, const std::string& what);
    missing_line lost_of(const frame& f, std::size_t line, const line_content& kept) const;
    std::size_t last_change() const;
    bool out_of_budget();

    std::size_t touched(std::size_t line_of_memory);
    std::byte* place_of(std::size_t line) noexcept {
        return memory_.data() + touched_[line] * line_bytes;
    }
    void stored(frame& f, const trace_event& e, std::size_t at, const std::byte* data,
                std::size_t n);
    void flushed(frame& f, unsigned thread, std::size_t line);
    void flushed_now(frame& f, std::size_t line);
    void fenced(frame& f, unsigned thread);
    void decided(frame& f, std::size_t line, const std::byte* data);
    static std::vector<line_content> possible(const frame& f, std::size_t line);
    std::vector<line_content> refresh_line(frame& f, std::size_t line);
    void set_memory(std::size_t line, const line_content& content);
    std::uint32_t choose(frame& f, std::uint32_t options);
    static bool next_choices(frame& f);
    void decide(std::size_t line, const line_content& content);
    void decide_by_choice(std::size_t line);
    bool undecided(std::size_t line) const noexcept;
    double images_stood_for(const frame& f) const;
    std::uint64_t bytes_in_line(std::size_t line, std::size_t offset, std::size_t bytes) const;
    bool stored_over(std::size_t line, std::size_t offset, std::size_t bytes) const;
    void written(std::size_t offset, std::size_t bytes, event_kind kind);
    void record(event_kind kind, std::size_t offset, std::size_t bytes, const void* data);

    void load(std::size_t offset, std::size_t bytes) override;
    void store(std::size_t offset, std::size_t bytes) override;
    void nt_store(std::size_t offset, std::size_t bytes) override;
    void flush(std::size_t offset, std::size_t bytes) override;
    void flush_now(std::size_t offset, std::size_t bytes) override;
    void fence() override;
    void checked(std::size_t offset, std::size_t bytes, bool goes_on) override;

    std::span<std::byte> memory_;
    domain domain_;
    std::function<verdict()> recover_;
    explore_options options_;
    std::span<const std::byte> before_;    // the run explored
    std::vector<std::uint32_t> number_of_; // by line of memory: its number plus 1; 0: untouched (7)
    std::vector<std::size_t> touched_;     // and back
    std::vector<std::uint64_t> digests_before_;
    exploration result_;
    std::vector<std::unique_ptr<frame>> frames_; // one per depth, reused
    std::unordered_set<std::uint64_t> explored_; // (3)
    std::unordered_map<std::uint64_t, std::vector<bool>> looked_at_;
    std::uint64_t explored_runs_ = 0;
    const std::vector<failure_point>* replaying_ = nullptr; // only these failures, these choices
    verdict replayed_;
    std::chrono::steady_clock::time_point start_;

    std::uint64_t closable_ = 0; // recoveries that could have ended with a close
    std::uint64_t kills_closed_ = 0;

    // The run of recovery under way.
    frame* current_ = nullptr;
    bool recording_ = false;
    closing closing_ = closing::never;
    verdict ended_; // what it came to
    static constexpr std::size_t no_look = ~std::size_t{0};
    std::size_t looked_from_ = no_look; // in the recovery's events (recovered())
    std::uint8_t thread_ = 0;           // whose events these are
    std::uint64_t picked_ = 0;          // digest of what pick() gave
    enum class chain : std::uint8_t { unmet, newest, one_older, oldest };
    chain chain_ = chain::unmet;         // lines under the checksum being read (4)
    std::uint32_t run_ = 0;              // its number, for the stamps below
    std::vector<std::uint32_t> decided_; // by line: the run that decided it
    std::vector<std::uint32_t> dirtied_; // by line: the run that changed it
    std::vector<std::size_t> dirty_lines_;
    std::vector<std::pair<std::size_t, line_content>> decisions_;
    std::vector<std::uint32_t> overlaid_; // by line: the run that stored to it while undecided
    std::vector<std::uint64_t> overlay_;  // and the bytes that it stored, a bit each
    std::vector<std::size_t> unmet_;      // lines with new contents that it has not looked at
};

} // namespace hf::check
