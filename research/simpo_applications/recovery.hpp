// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a kill costs a program: its threads call allInc on one object, and are killed when most of
// the calls are made.  SIMPO §4.1.2, Fig. 16
//
// rerun         without persistence: all calls up to there again
// opening       the object is there again (the paper's 'data')
// application   and the program, begun anew, is where it was killed (the paper's 'app'): calls that
//               survived are skipped (simpo/caller.hpp, 'retraced')
// Afterwards the program goes on to its end, and the object is what it is without a kill.
#pragma once

#include "driver.hpp"

#include <holdfast/simpo/caller.hpp>

#include <bench/simpo/two_rows.hpp>

#include <array>
#include <atomic>
#include <thread>

namespace hf::bench {

struct recovery_counts {
    static constexpr unsigned threads_max = 64;
    struct alignas(64) count {
        std::atomic<std::uint64_t> calls{0};
    };
    std::array<count, threads_max> of;
    std::uint64_t all() const {
        std::uint64_t sum = 0;
        for (const count& c : of) sum += c.calls.load(std::memory_order_relaxed);
        return sum;
    }
};

template <class Rows> class recovery_run {
public:
    recovery_run(const app_settings& how, unsigned threads, std::uint64_t calls)
        : how_(how), threads_(threads), calls_(calls - calls % threads),
          shared_(sizeof(recovery_counts)) {}

    nlohmann::ordered_json measure() {
        std::vector<double> native, rerun, opening, application;
        std::uint64_t made = 0;
        for (unsigned round = 0; round < how_.rounds; ++round) {
            native.push_back(native_seconds(calls_));
            const temporary_file file(how_.directory, "simpo-recovery");
            const std::uint64_t killed_at = kill_at(file.path(), calls_ / 10 * 9);
            rerun.push_back(native_seconds(killed_at));
            pool in = pool_of(file.path(), opening);
            made = go_on(in, application);
            application.back() += opening.back();
        }
        return {{"threads", threads_},
                {"calls", calls_},
                {"object_bytes", sizeof(Rows)},
                {"kept_calls", made},
                {"native_seconds", median(native)},
                {"rerun_seconds", median(rerun)},
                {"opening_seconds", median(opening)},
                {"application_seconds", median(application)}};
    }

private:
    static constexpr std::uint64_t calls_a_sync = 1000;

    template <class Each> void in_threads(Each&& each) const {
        std::vector<std::thread> all;
        for (unsigned t = 0; t < threads_; ++t) all.emplace_back([&, t] { each(t); });
        for (std::thread& t : all) t.join();
    }
    double native_seconds(std::uint64_t calls) const {
        native_object<Rows> rows(std::make_unique<Rows>());
        return time_of([&] {
                   in_threads([&, rows](unsigned) mutable {
                       for (std::uint64_t i = 0; i < calls / threads_; ++i)
                           rows.template defer<&Rows::all_inc>(1);
                   });
               })
            .seconds;
    }
    /// The program, from its beginning. 'caught_up' is called by each thread where the last run
    /// ended.
    template <class CaughtUp>
    void run(simpo::object<Rows> rows, recovery_counts& made, CaughtUp&& caught_up) const {
        in_threads([&](unsigned thread) {
            auto mine = simpo::retraced<Rows>::of(rows, thread + 1);
            if (!mine) give_up(mine.error().what());
            bool waiting = true;
            simpo::object<Rows> object = rows;
            for (std::uint64_t i = 0; i < calls_ / threads_; ++i) {
                if (waiting && mine->caught_up()) {
                    caught_up(i);
                    waiting = false;
                }
                mine->template defer<&Rows::all_inc>(1);
                made.of[thread].calls.store(i + 1, std::memory_order_relaxed);
                if (!waiting && (i + 1) % calls_a_sync == 0) object.sync();
            }
            if (waiting) caught_up(calls_ / threads_);
        });
        rows.sync();
    }
    std::uint64_t kill_at(const std::string& path, std::uint64_t calls) {
        auto& made = shared_.template as<recovery_counts>();
        killed_child child([&] {
            pool in = must(pool::open(path, app_pool(how_)));
            run(must(simpo::object<Rows>::create(
                    in, "it",
                    simpo::object_options{.log_bytes = how_.log_bytes, .callers = threads_})),
                made, [](std::uint64_t) {});
        });
        while (made.all() < calls && child.runs()) ::usleep(20);
        child.kill();
        return made.all();
    }
    pool pool_of(const std::string& path, std::vector<double>& seconds) const {
        std::optional<pool> in;
        seconds.push_back(
            time_of([&] { in.emplace(must(pool::open(path, app_pool(how_)))); }).seconds);
        return std::move(*in);
    }
    /// How many calls survived.
    std::uint64_t go_on(pool& in, std::vector<double>& seconds) const {
        const auto rows = must(simpo::object<Rows>::find(in, "it"));
        auto counts = std::make_unique<recovery_counts>();
        std::atomic<std::uint64_t> kept{0};
        std::atomic<double> last{0};
        const auto start = std::chrono::steady_clock::now();
        run(rows, *counts, [&](std::uint64_t calls) {
            const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
            kept += calls;
            double was = last.load();
            while (took.count() > was && !last.compare_exchange_weak(was, took.count())) {}
        });
        seconds.push_back(last.load());
        auto object = rows;
        const auto expected = static_cast<std::int64_t>(calls_ * Rows::row_count * Rows::row_cells);
        if (object.template call<&Rows::sum>() != expected)
            give_up("recovery: the calls before the kill and behind it do not add up");
        return kept.load();
    }

    app_settings how_;
    unsigned threads_;
    std::uint64_t calls_;
    shared_memory shared_;
};

/// Calls of 25 ns, and of 2 us as the paper's take.
inline nlohmann::ordered_json run_recovery(const app_settings& how) {
    const std::uint64_t calls = how.size == 0 ? 640'000 : how.size;
    nlohmann::ordered_json out{{"name", "recovery"},
                               {"mode", how.mode},
                               {"emulated", how.mode == "pmem"},
                               {"rounds", how.rounds}};
    for (const unsigned threads : {1U, 2U}) {
        out["short"].push_back(recovery_run<two_rows>(how, threads, calls).measure());
        out["long"].push_back(recovery_run<long_rows>(how, threads, calls).measure());
    }
    return out;
}

} // namespace hf::bench
