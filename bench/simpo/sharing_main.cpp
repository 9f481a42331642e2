// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// bench_sharing: what a call costs on an object that several processes write (SIMPO §3.4.1).
//
//   alone     threads of the one process that has the pool
//   served    processes, by simpo::remote: a process beside them has the pool, and serves it
//   lock      the floor of the paper's way, written by hand: object, log and a process-shared lock
//             that survives its owner in memory that all processes map. A call takes the lock, logs,
//             waits for the log's line, runs. No checkpoint, no recovery, and a process that
//             stores where it should not breaks the object of all.
//
// Each call that waits has an answer; before it the process defers as many as --deferred says. A
// call of another process cannot be faster than a word that goes there and back: that is measured,
// too. Rounds of all ways take turns; medians of the wall clock, by the calls of all processes.
#include "../latency.hpp"
#include "../median.hpp"

#include <holdfast/author/persist.hpp>
#include <holdfast/simpo.hpp>
#include <holdfast/simpo/share.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <pthread.h>
#include <sched.h>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace hf::bench {
namespace {

using u64 = std::uint64_t;

class counters {
public:
    static constexpr simpo::class_name simpo_class{"counters", 1};
    void add(u64 which, u64 by) noexcept { cells_[which % cells_.size()] += by, ++count_; }
    u64 add_and_count(u64 which, u64 by) noexcept { return add(which, by), count_; }

private:
    std::array<u64, 64> cells_{};
    u64 count_ = 0;
};

struct settings {
    std::string mode = "process", latency, directory = "/dev/shm";
    u64 calls = 20'000, deferred = 0;
    int rounds = 5;
};

/// What all processes of one run share.
struct meeting {
    std::atomic<unsigned> ready;
    std::atomic<bool> go;
    pthread_mutex_t lock;
    counters object;
    u64 logged;
    alignas(64) std::atomic<u64> there;
    alignas(64) std::atomic<u64> back;
    alignas(64) std::array<std::array<u64, 8>, 1024> log;
};

[[noreturn]] void stop(const status& s) {
    fmt::print(stderr, "{}\n", s.what());
    std::_Exit(1);
}

void wait_for_start(meeting& m) {
    ++m.ready;
    while (!m.go) ::sched_yield();
}

/// Calls 'work(which)' in 'count' processes, or threads, at once; returns ns.
template <class Work> double run_all(meeting& m, unsigned count, bool processes, Work&& work) {
    m.ready = 0;
    m.go = false;
    std::vector<pid_t> children;
    std::vector<std::thread> threads;
    for (unsigned which = 0; which < count; ++which) {
        if (!processes) {
            threads.emplace_back([&work, which] { work(which); });
            continue;
        }
        const pid_t child = ::fork();
        if (child == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            work(which);
            std::_Exit(0);
        }
        children.push_back(child);
    }
    while (m.ready != count) ::sched_yield();
    const auto begun = std::chrono::steady_clock::now();
    m.go = true;
    for (const pid_t each : children) {
        int how = 0;
        if (::waitpid(each, &how, 0) != each || how != 0) std::_Exit(1);
    }
    for (auto& each : threads) each.join();
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begun)
        .count();
}

template <class Defer, class Call> void make_calls(const settings& how, Defer&& defer,
                                                   Call&& call) {
    u64 number = 0;
    for (u64 made = 0; made < how.calls; made += how.deferred + 1) {
        for (u64 i = 0; i < how.deferred; ++i) defer(++number);
        call(++number);
    }
}

open_options pool_options(const settings& how) {
    open_options options;
    options.layout = "sharing/1";
    options.create_bytes = 4 << 20;
    options.mode = how.mode == "pmem" ? mode::pmem : mode::process;
    options.engines = {simpo::engine()};
    options.expert.seal = false;
    return options;
}

using object = simpo::object<counters>;

double in_pool(const settings& how, meeting& m, unsigned count, bool served) {
    const std::string path =
        how.directory + "/holdfast-bench-sharing." + std::to_string(::getpid());
    double ns = 0;
    {
        auto pool = hf::pool::open(path, pool_options(how));
        if (!pool) stop(pool.error());
        auto made = object::create(*pool, "it", simpo::object_options{.callers = 64});
        if (!made) stop(made.error());
        if (served)
            if (status s = simpo::serve(*pool); !s.ok()) stop(s);
        ns = run_all(m, count, served, [&](unsigned which) {
            if (!served) {
                object on = *made;
                wait_for_start(m);
                make_calls(
                    how, [&](u64 n) { on.defer<&counters::add>(which, n); },
                    [&](u64 n) { (void)on.call<&counters::add_and_count>(which, n); });
                return;
            }
            auto over = simpo::client::connect(path);
            if (!over) stop(over.error());
            auto on = simpo::remote<counters>::of(*over, "it", which + 1);
            if (!on) stop(on.error());
            wait_for_start(m);
            make_calls(
                how,
                [&](u64 n) {
                    if (status s = on->defer<&counters::add>(n, which, n); !s.ok()) stop(s);
                },
                [&](u64 n) {
                    if (auto c = on->call<&counters::add_and_count>(n, which, n); !c)
                        stop(c.error());
                });
        });
    }
    std::filesystem::remove(path);
    return ns;
}

double by_lock(const settings& how, meeting& m, unsigned count) {
    const domain where = how.mode == "pmem" ? domain::adr : domain::process;
    return run_all(m, count, true, [&](unsigned which) {
        wait_for_start(m);
        const auto log_and_run = [&](u64 n, bool waits) {
            if (::pthread_mutex_lock(&m.lock) != 0) std::_Exit(1);
            auto& line = m.log[m.logged % m.log.size()];
            line = {m.logged, which, n, 0, 0, 0, 0, m.logged ^ which ^ n};
            persist::flush(where, &line, sizeof line);
            ++m.logged;
            if (waits) persist::fence(where);
            m.object.add(which, n);
            ::pthread_mutex_unlock(&m.lock);
        };
        make_calls(
            how, [&](u64 n) { log_and_run(n, false); }, [&](u64 n) { log_and_run(n, true); });
    });
}

/// A word to another process, and back.
double round_trip(const settings& how, meeting& m) {
    m.there = m.back = 0;
    const auto at = [](const std::atomic<u64>& word, u64 n) {
        for (u64 looks = 1; word.load(std::memory_order_acquire) != n; ++looks)
            if (looks % 4096 == 0) ::sched_yield();
    };
    return run_all(m, 2, true, [&](unsigned which) {
        wait_for_start(m);
        for (u64 n = 1; n <= how.calls; ++n) {
            if (which == 1) at(m.there, n);
            (which == 0 ? m.there : m.back).store(n, std::memory_order_release);
            if (which == 0) at(m.back, n);
        }
    });
}

int run(int argc, char** argv) {
    settings how;
    CLI::App app("What a call costs on an object that several processes write");
    app.add_option("--mode", how.mode)->check(CLI::IsMember({"process", "pmem"}));
    app.add_option("--latency", how.latency, "emulated memory: optane, pcm, cxl …");
    app.add_option("--calls", how.calls, "of each process")->check(CLI::PositiveNumber);
    app.add_option("--deferred", how.deferred, "calls deferred before each that waits");
    app.add_option("--rounds", how.rounds)->check(CLI::Range(1, 101));
    app.add_option("--dir", how.directory);
    CLI11_PARSE(app, argc, argv);
    if (const auto model = latency_model_of(how.latency)) persist::set_latency_model(*model);

    void* const memory = ::mmap(nullptr, sizeof(meeting), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) return 1;
    auto& m = *::new (memory) meeting{};
    pthread_mutexattr_t shared;
    ::pthread_mutexattr_init(&shared);
    ::pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    ::pthread_mutexattr_setrobust(&shared, PTHREAD_MUTEX_ROBUST);
    ::pthread_mutex_init(&m.lock, &shared);

    constexpr std::array<unsigned, 3> counts{1, 2, 4};
    constexpr std::array<const char*, 3> ways{"alone", "lock", "served"};
    std::array<std::array<std::vector<double>, 3>, 3> all;
    std::vector<double> trips;
    for (int round = 0; round < how.rounds; ++round) {
        trips.push_back(round_trip(how, m) / static_cast<double>(how.calls));
        for (std::size_t c = 0; c < counts.size(); ++c)
            for (std::size_t w = 0; w < ways.size(); ++w) {
                const double ns =
                    w == 1 ? by_lock(how, m, counts[c]) : in_pool(how, m, counts[c], w == 2);
                all[c][w].push_back(ns / static_cast<double>(how.calls * counts[c]));
            }
    }
    double load = 0;
    (void)::getloadavg(&load, 1);
    fmt::print("mode {}{}, {} deferred before each call that waits, {} rounds, load {:.1f}\n",
               how.mode, how.latency.empty() ? "" : " " + how.latency, how.deferred, how.rounds,
               load);
    fmt::print("a word to another process and back: {:.0f} ns\n", median(trips));
    fmt::print("processes {:>12} {:>12} {:>12}   ns a call\n", ways[0], ways[1], ways[2]);
    for (std::size_t c = 0; c < counts.size(); ++c)
        fmt::print("{:>9} {:>12.0f} {:>12.0f} {:>12.0f}\n", counts[c], median(all[c][0]),
                   median(all[c][1]), median(all[c][2]));
    return 0;
}

} // namespace
} // namespace hf::bench

int main(int argc, char** argv) { return hf::bench::run(argc, argv); }
