// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/checksum.hpp>
#include <base/line.hpp>
#include <check/guard.hpp>
#include <check/history.hpp>
#include <check/judge.hpp>
#include <check/pool_image.hpp>
#include <check/program.hpp>
#include <check/recorder.hpp>
#include <check/schedule.hpp>
#include <open/pool_impl.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <random>
#include <unordered_set>
#include <utility>

namespace hf::crash {
namespace {

using namespace hf::check;

/// The program's, in the mode that was asked for.
open_options options_of(const program& given, const check_options& asked) {
    open_options o = given.options();
    o.mode = asked.mode.value_or(o.mode);
    return o;
}

domain domain_of(const open_options& o) {
    if (o.mode == mode::process) return domain::process;
    return o.expert.eadr ? domain::eadr : domain::adr;
}

class checking {
public:
    checking(const std::string& name, program& given, const check_options& options)
        : given_(given), options_(options) {
        out_.name = name;
    }

    checked_program run() {
        auto image = pool_image::make(options_of(given_, options_), given_.made_with(),
                                      [&](pool& p) { given_.setup(p); });
        if (!image) {
            out_.trouble.push_back(image.error().what());
            return out_;
        }
        image_ = &*image;
        explore_all();
        given_.teardown();
        return out_;
    }

private:
    void explore_all();
    void explore_depth(const explore_options& options);
    void explore_schedules(explorer& explore);
    void explore_random_schedules(explorer& explore);
    std::size_t explore_schedule(explorer& explore, const schedule& by);
    bool reference_runs();
    bool reference_run(const operation_order& order);
    bool reference_after(pool& p, outcome from);
    event_record recorded_run(const schedule& by, std::vector<legal_set>& legal,
                              std::size_t& points);
    verdict recover();
    verdict go_on(pool& p, const verdict& seen);
    std::string run_after(pool& p, unsigned operation);
    void count_redundant(const event_record& run);
    bool give_up(const explorer& explore) const;
    unsigned close_one_in(unsigned depth) const;
    void find_races();
    bool next_schedule(schedule& by, std::size_t points) const;
    double elapsed() const;
    /// The time limit of one run without a failure.
    double run_seconds() const { return std::clamp(options_.explore.seconds_max, 1.0, 60.0); }

    program& given_;
    const check_options& options_;
    checked_program out_;
    pool_image* image_ = nullptr;
    explorer* explorer_ = nullptr;
    std::unique_ptr<turn_takers> threads_;      // null: one thread, this one
    std::map<operation_order, outcome> states_; // after each order of operations
    std::map<outcome, std::string> known_;      // what they are called
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
    std::vector<std::uint8_t> writers_, racing_; // recorder::note_writers, loads_race
    std::unordered_set<std::uint64_t> runs_;     // explored in this pass: schedules may be one run
    std::optional<used_chunks> used_;            // by the chunks that the explorer has touched
    std::map<outcome, std::vector<legal_set>> after_; // states after each operation that goes on
    outcome shown_ = 0;                               // what the pool showed last
    bool changed_by_looks_ =
        false; // describe() uses the pool: a look behind a close would show another state
};

/// The run's events, wherever they are in the sources.
std::uint64_t digest_of(const event_record& run) {
    std::uint64_t sum = checksum(run.data.data(), run.data.size(), 0);
    for (const trace_event& e : run.events) {
        const std::uint64_t key[] = {static_cast<std::uint64_t>(e.kind), e.thread, e.offset,
                                     e.bytes, e.data};
        sum = checksum(key, sizeof key, sum);
    }
    return sum;
}

std::string order_text(const operation_order& order) {
    if (order.empty()) return "no operation";
    return fmt::format("operation{} of thread{} {}", order.size() == 1 ? "" : "s",
                       order.size() == 1 ? "" : "s", fmt::join(order, ", "));
}

/// Runs operations in one order, without failing; notes the state they leave.
bool checking::reference_run(const operation_order& order) {
    image_->reset();
    auto p = image_->open();
    if (!p) {
        out_.trouble.push_back(p.error().what());
        return false;
    }
    std::vector<unsigned> done(given_.threads());
    for (const unsigned t : order) given_.run(*p, t, done[t]++);
    const verdict v = judge::look(*p, given_, {});
    const bool right = v.recovered && reference_after(*p, v.state);
    if (right && !changed_by_looks_) {
        const verdict first = judge::look(*p, given_, {}), second = judge::look(*p, given_, {});
        // A state that some look calls wrong counts as a change, too: a wrong pool has no known
        // state.
        changed_by_looks_ = !first.recovered || !second.recovered || first.state != second.state;
    }
    pool::impl::abandon(std::move(*p));
    if (!right) {
        out_.trouble.push_back(fmt::format("after {}, no failure: {}", order_text(order), v.text));
        return false;
    }
    states_[order] = v.state;
    known_.emplace(v.state, fmt::format("{}, as after {}", v.text, order_text(order)));
    return true;
}

/// Notes the states that going on from this one leaves.
bool checking::reference_after(pool& p, outcome from) {
    std::vector<legal_set>& steps = after_[from];
    steps.resize(given_.operations_after());
    for (unsigned i = 0; i < steps.size(); ++i) {
        given_.run_after(p, i);
        const verdict v = judge::look(p, given_, {});
        if (!v.recovered) {
            out_.trouble.push_back(fmt::format("operation {} after a recovery: {}", i, v.text));
            return false;
        }
        if (std::ranges::find(steps[i], v.state) == steps[i].end()) steps[i].push_back(v.state);
        known_.emplace(v.state, v.text);
    }
    return true;
}

bool checking::reference_runs() {
    std::vector<unsigned> operations;
    for (unsigned t = 0; t < given_.threads(); ++t) operations.push_back(given_.operations(t));
    return std::ranges::all_of(all_orders(operations),
                               [&](const operation_order& o) { return reference_run(o); });
}

event_record checking::recorded_run(const schedule& by, std::vector<legal_set>& legal,
                                    std::size_t& points) {
    image_->reset();
    recorder record(image_->memory(), domain_of(options_of(given_, options_)));
    const watch watching(image_->memory().data(), image_->memory().size(), record);
    history past(states_);
    legal = {past.legal()};
    const auto from_here = [&] {
        legal.push_back(past.legal());
        record.legal(static_cast<std::uint32_t>(legal.size() - 1));
    };
    auto p = image_->open();
    const auto body = [&](unsigned t) {
        for (unsigned i = 0; i < given_.operations(t); ++i) {
            past.began(t);
            from_here();
            turn_takers::point();
            given_.run(*p, t, i);
            past.acknowledged(t, given_.buffered(t, i));
            from_here();
        }
    };
    if (threads_ == nullptr) body(0);
    else {
        record.at_event = turn_takers::point;
        record.at_wait = turn_takers::wait;
        if (racing_.empty()) record.note_writers(writers_);
        else record.loads_race(racing_);
        points = threads_->run(by, body, [&](unsigned t) { record.set_thread(t); });
        record.at_event = record.at_wait = nullptr;
        record.set_thread(given_.threads());
    }
    { const pool closing = std::move(*p); }
    past.settled();
    from_here();
    if (options_.closes) record.closed();
    if (const std::size_t at = record.unreported(); at != ~std::size_t{0})
        out_.trouble.push_back(fmt::format(
            "a store at offset {:#x} was not reported: build all that stores to the pool in trace "
            "mode (holdfast_trace), and flush and fence by hf::persist",
            at));
    if (!record.shadows().wrong().empty()) out_.trouble.push_back(record.shadows().wrong());
    return record.recorded();
}

verdict checking::recover() {
    const auto in_any_order = [this](std::vector<std::size_t>& turns) {
        for (auto next = turns.begin(); next != turns.end(); ++next) {
            const auto picked = explorer_->pick(static_cast<std::uint32_t>(turns.end() - next));
            std::iter_swap(next, next + picked);
        }
    };
    const bool was_closed = explorer_->found_closed();
    // Before the pool is opened: then the seal is over.
    if (explorer_->found_sealed())
        if (const std::string wrong = judge::broken_seal(image_->memory()); !wrong.empty())
            return {false, 0, wrong};
    const closing how = explorer_->closes();
    auto p = image_->open(in_any_order, !explorer_->killed(), how == closing::sealed);
    if (!p) return {false, 0, "recovery refused: " + p.error().what()};
    if (was_closed && !p->internals().file->was_clean()) {
        pool::impl::abandon(std::move(*p));
        return {false, 0, "it had been closed, and is opened as after a crash"};
    }
    if (!was_closed) given_.recover(*p);
    explorer_->recovered();
    used_->add_changed(*p, explorer_->touched_lines());
    verdict v = judge::look(*p, given_, known_, &*used_);
    shown_ = v.state;
    // Once: what a failure of these operations leaves is recovered, and judged, like anything else.
    if (v.recovered && explorer_->failures_before() == 1 && how != closing::at_once && !was_closed)
        v = go_on(*p, v);
    if (!v.recovered || how == closing::never) {
        pool::impl::abandon(std::move(*p));
        return v;
    }
    explorer_->wants({shown_});
    { const pool closed = std::move(*p); }
    explorer_->closed();
    return v;
}

/// Uses the pool that has shown this state, and judges the result.
verdict checking::go_on(pool& p, const verdict& seen) {
    const auto found = after_.find(seen.state);
    if (found == after_.end() || found->second.empty())
        return seen; // the verdict reports a wrong state
    legal_set now{seen.state};
    explorer_->wants(now);
    for (unsigned i = 0; i < found->second.size(); ++i) {
        const legal_set& then = found->second[i];
        now.insert(now.end(), then.begin(), then.end());
        explorer_->wants(now);
        if (const std::string died = run_after(p, i); !died.empty()) return {false, 0, died};
        explorer_->wants(now = then);
    }
    explorer_->recovered();
    used_->add_changed(p, explorer_->touched_lines());
    const verdict v = judge::look(p, given_, known_, &*used_);
    shown_ = v.state;
    if (v.recovered && std::ranges::find(now, v.state) != now.end()) return seen;
    return {false, 0,
            fmt::format("recovered to {}; operations that went on from there left {}", seen.text,
                        v.text)};
}

/// Runs the operation on its thread; how it died.
std::string checking::run_after(pool& p, unsigned operation) {
    const unsigned wanted = given_.thread_after(operation);
    if (threads_ == nullptr) {
        given_.run_after(p, operation);
        return {};
    }
    std::string died;
    explorer_->set_thread(wanted + 1); // 0 is the thread that has recovered
    threads_->run(
        {wanted, {}},
        [&](unsigned t) {
            if (t != wanted) return;
            died = run_guarded(options_.explore.recovery_seconds_max,
                               [&] { given_.run_after(p, operation); });
        },
        [](unsigned) {});
    explorer_->set_thread(0);
    return died.empty() ? died : fmt::format("an operation that went on from there {}", died);
}

void checking::count_redundant(const event_record& run) {
    persistent_memory memory(domain_of(options_of(given_, options_)), image_->initial());
    std::vector<bool> covered(memory.lines()); // flushed since its last store
    bool waiting = false;                      // something for a fence to wait for
    for (const trace_event& e : run.events) {
        const std::size_t line = e.offset / line_bytes;
        if (e.kind == event_kind::store) covered[line] = false;
        if (e.kind == event_kind::nt_store) waiting = true;
        if (e.kind == event_kind::flush) {
            if (covered[line]) out_.redundant_flushes.push_back(e.place);
            covered[line] = waiting = true;
        }
        if (e.kind == event_kind::fence) {
            if (!waiting) out_.redundant_fences.push_back(e.place);
            waiting = false;
        }
    }
}

bool checking::give_up(const explorer& explore) const {
    return !explore.result().violations.empty() || !explore.result().complete ||
           !out_.trouble.empty() || elapsed() > options_.explore.seconds_max;
}

double checking::elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

/// Points of the schedule at which the turn could have changed.
std::size_t checking::explore_schedule(explorer& explore, const schedule& by) {
    std::vector<legal_set> legal;
    event_record run;
    std::size_t points = 0;
    follow_places(true);
    const std::string died =
        run_guarded(run_seconds(), [&] { run = recorded_run(by, legal, points); });
    follow_places(false);
    if (!died.empty()) {
        out_.trouble.push_back("running it without a failure: it " + died);
        return 0;
    }
    out_.last_schedule = by;
    // If threads wait in a row, the ring chooses each time, and rings are tried as a whole.
    if (threads_ != nullptr && threads_->choices() > 1) out_.choices_left_out = true;
    if (!runs_.insert(digest_of(run)).second && options_.replay.empty()) return points;
    if (++out_.schedules == 1 && out_.depth_complete == 0 &&
        domain_of(options_of(given_, options_)) == domain::adr)
        count_redundant(run);
    if (options_.replay.empty()) explore.explore(image_->initial(), run, legal);
    else
        out_.trouble.push_back("replayed: " +
                               explore.replay(image_->initial(), run, options_.replay).text);
    return points;
}

/// Notes which words several threads use: there the turn may change after a load.
void checking::find_races() {
    writers_.assign(image_->memory().size() / word_bytes, 0);
    for (unsigned first = 0; first < given_.threads(); ++first) {
        std::vector<legal_set> legal;
        std::size_t points = 0;
        const std::string died =
            run_guarded(run_seconds(), [&] { recorded_run({first, {}}, legal, points); });
        if (died.empty()) continue;
        out_.trouble.push_back("running it without a failure: it " + died);
        return;
    }
    racing_ = std::exchange(writers_, {});
}

/// The next one with as many switches, among so many points; false: none.
bool checking::next_schedule(schedule& by, std::size_t points) const {
    // The threads that get the turn.
    for (unsigned& step : by.steps) {
        if (++step < given_.threads()) return true;
        step = 1;
    }
    // The next ascending choice of switches.
    const std::size_t n = by.switches.size();
    std::size_t at = n;
    while (at > 0 && by.switches[at - 1] + (n - at) + 1 >= points) --at;
    if (at == 0) return false;
    ++by.switches[at - 1];
    for (; at < n; ++at) by.switches[at] = by.switches[at - 1] + 1;
    return true;
}

/// Every schedule with at most 'preemptions' switches that no thread asked for.
void checking::explore_schedules(explorer& explore) {
    const unsigned threads = given_.threads(), rings = turn_takers::rings(threads);
    for (unsigned preemptions = 0; preemptions <= options_.preemptions; ++preemptions)
        for (unsigned begin = 0; begin < threads * rings; ++begin) {
            schedule by{begin % threads, {}, {}, begin / threads};
            for (unsigned i = 0; i < preemptions; ++i) by.switches.push_back(i);
            by.steps.assign(preemptions, 1);
            std::size_t points = 0;
            do {
                // For runs that differ only in the next thread, the first one has counted the
                // points.
                points = explore_schedule(explore, by);
                if (give_up(explore)) return;
            } while (next_schedule(by, points));
        }
    explore_random_schedules(explore);
}

/// More switches than those, at points drawn at random.
void checking::explore_random_schedules(explorer& explore) {
    std::mt19937_64 random(options_.seed);
    std::size_t points = explore_schedule(explore, {});
    for (unsigned i = 0; i < options_.schedules_random && points > 0; ++i) {
        schedule by{static_cast<unsigned>(random() % given_.threads()), {}};
        for (unsigned s = 0; s < options_.preemptions + 2; ++s)
            by.switches.push_back(random() % points);
        std::ranges::sort(by.switches);
        by.switches.erase(std::ranges::unique(by.switches).begin(), by.switches.end());
        if (given_.threads() > 2) {
            for (std::size_t s = 0; s < by.switches.size(); ++s)
                by.steps.push_back(1 + static_cast<unsigned>(random() % (given_.threads() - 1)));
            by.ring = static_cast<unsigned>(random() % turn_takers::rings(given_.threads()));
        }
        explore_schedule(explore, by);
        if (give_up(explore)) return;
    }
}

/// One recovery in how many is closed, after so many failures: more of them if they are few beside
/// what follows, else so few that they cost only a part of the rest.
unsigned checking::close_one_in(unsigned depth) const {
    if (!options_.closes || changed_by_looks_) return 0;
    const bool few = depth < options_.explore.depth;
    return few ? std::max(1U, options_.close_one_in / 8) : options_.close_one_in;
}

void checking::explore_all() {
    const std::string died = run_guarded(run_seconds(), [&] { reference_runs(); });
    if (!died.empty()) out_.trouble.push_back("running it without a failure: it " + died);
    if (!out_.trouble.empty()) return;
    if (given_.threads() > 1) {
        threads_ = std::make_unique<turn_takers>(given_.threads());
        find_races();
        if (!out_.trouble.empty()) return;
    }
    // The fewest failures first: a budget that runs out has been spent on all of the run.
    const bool replay = !options_.replay.empty();
    for (unsigned depth = replay ? options_.explore.depth : 1; depth <= options_.explore.depth;
         ++depth) {
        explore_options pass = options_.explore;
        pass.depth = depth;
        pass.failures_min = replay ? 1 : depth;
        pass.states_max -= std::min(pass.states_max, out_.found.states);
        pass.seconds_max -= elapsed();
        pass.goes_on = given_.operations_after() > 0;
        pass.seals = options_of(given_, options_).expert.seal;
        pass.close_one_in = close_one_in(depth);
        pass.kills_every_way = depth < options_.explore.depth;
        explore_depth(pass);
        if ((!out_.found.complete && !out_.found.reduced) || !out_.passed()) return;
        out_.depth_complete = depth;
    }
    if (out_.choices_left_out) out_.found.complete = false;
}

void checking::explore_depth(const explore_options& options) {
    explorer explore(
        image_->memory(), domain_of(options_of(given_, options_)), [&] { return recover(); },
        options);
    explorer_ = &explore;
    image_->reset();
    if (auto p = image_->open()) {
        used_.emplace(*p);
        pool::impl::abandon(std::move(*p));
    }
    out_.schedules = 0;
    runs_.clear();
    if (given_.threads() == 1 || !options_.replay.empty())
        explore_schedule(explore, options_.replay_schedule);
    else explore_schedules(explore);
    out_.found += explore.result();
    if (elapsed() > options_.explore.seconds_max) out_.found.complete = false;
}

} // namespace

checked_program check(const std::string& name, program& given, const check_options& options) {
    return checking(name, given, options).run();
}

std::map<std::string, std::unique_ptr<program>>& programs() {
    static std::map<std::string, std::unique_ptr<program>> all;
    return all;
}

void add(std::string name, std::unique_ptr<program> given) {
    programs().insert_or_assign(std::move(name), std::move(given));
}

} // namespace hf::crash
