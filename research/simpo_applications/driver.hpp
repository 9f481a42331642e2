// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs an application on an ordinary object under a lock, and on a persistent one, in turns.  SIMPO §4.2, §4.3
//
// An application is a class with
//   type                        the class of its object; its fingerprint() says what the calls have left, and
//                               steps_done(), if there is one, where to go on after a crash
//   make_native(), create(pool, options)     the object before step 0
//   run(object, from, to)       calls on it; the same text for both
#pragma once

#include "hybrid.hpp"
#include "killing.hpp"

#include <holdfast/pool.hpp>
#include <holdfast/simpo.hpp>

#include <bench/temporary_file.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hf::bench {

/// A program without persistence: the object, and a lock that each call takes.
template <class T> class native_object {
public:
    explicit native_object(std::unique_ptr<T> of) : all_(std::make_shared<guarded>()) {
        all_->object = std::move(of);
    }
    template <auto F, class... Args> void defer(Args&&... args) {
        (void)call<F>(std::forward<Args>(args)...);
    }
    template <auto F, class... Args> auto call(Args&&... args) {
        const std::scoped_lock held{all_->lock};
        return (all_->object.get()->*F)(std::forward<Args>(args)...);
    }
    void sync() {}
    void checkpoint() {}

private:
    struct guarded {
        std::mutex lock;
        std::unique_ptr<T> object;
    };
    std::shared_ptr<guarded> all_;
};

struct app_settings {
    std::string mode = "pmem", directory = "/dev/shm", data;
    unsigned rounds = 5;
    std::uint64_t log_bytes = 64_KiB; // half of it is the most that an open has to do again
    std::uint64_t size = 0;           // of the application's own; 0: its default
    double crash_at = 0.5;            // of the steps
};

struct spent {
    double seconds = 0, cpu_seconds = 0;
};
inline double cpu_now() {
    timespec now{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}
template <class Work> spent time_of(Work&& work) {
    const auto start = std::chrono::steady_clock::now();
    const double cpu = cpu_now();
    work();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    return {took.count(), cpu_now() - cpu};
}

inline open_options app_pool(const app_settings& how) {
    open_options options;
    options.layout = "bench/simpo/applications/1";
    options.create_bytes = 64_MiB;
    options.mode = how.mode == "process" ? mode::process
                   : how.mode == "pmem"  ? mode::pmem
                                         : mode::power;
    options.engines = {simpo::engine()};
    options.expert.seal = false; // nobody keeps it
    return options;
}

template <class T> simpo::object<T> must(result<simpo::object<T>> made) {
    if (!made) give_up(made.error().what());
    return *made;
}
inline pool must(result<pool> opened) {
    if (!opened) give_up(opened.error().what());
    return std::move(*opened);
}

template <class App> spent run_native(App& app, std::uint64_t& fingerprint) {
    native_object<typename App::type> object(app.make_native());
    const spent took = time_of([&] { app.run(object, 0, app.steps()); });
    fingerprint = object.template call<&App::type::fingerprint>();
    return took;
}

/// The object's last checkpoint is part of the run.
template <class App>
spent run_persistent(App& app, const app_settings& how, std::uint64_t expected) {
    const temporary_file file(how.directory, "simpo-app");
    pool in = must(pool::open(file.path(), app_pool(how)));
    auto object = must<typename App::type>(app.create(in, simpo::object_options{how.log_bytes}));
    const spent took = time_of([&] {
        app.run(object, 0, app.steps());
        object.checkpoint();
    });
    if (object.template call<&App::type::fingerprint>() != expected)
        give_up("the persistent object differs from the native one");
    return took;
}

/// With checkpoints of the whole object every 1000 calls, and no deferred ones.
template <class App> spent run_hybrid(App& app, const app_settings& how, std::uint64_t expected) {
    using type = typename App::type;
    hybrid_object<type> object(
        app.make_native(), how.mode == "process" ? domain::process : domain::adr, how.directory);
    const spent took = time_of([&] {
        app.run(object, 0, app.steps());
        object.checkpoint();
    });
    if (object.template call<&type::fingerprint>() != expected ||
        object.durable().fingerprint() != expected)
        give_up("the object with hybrid checkpoints differs from the native one");
    return took;
}

/// Killed behind a part of its steps, opened, gone on with. Seconds: before it, opening, behind it.
/// An object that knows how far it has come is killed somewhere within the other steps.
template <class App>
nlohmann::ordered_json run_crashed(App& app, const app_settings& how, std::uint64_t expected) {
    const temporary_file file(how.directory, "simpo-app");
    const open_options options = app_pool(how);
    const auto crash_at =
        static_cast<std::uint64_t>(static_cast<double>(app.steps()) * how.crash_at);
    struct progress {
        std::atomic<double> before_seconds{-1};
    };
    shared_memory shared(sizeof(progress));
    auto& is = shared.as<progress>();
    killed_child child([&] {
        pool in = must(pool::open(file.path(), options));
        auto object =
            must<typename App::type>(app.create(in, simpo::object_options{how.log_bytes}));
        is.before_seconds = time_of([&] { app.run(object, 0, crash_at); }).seconds;
        if constexpr (requires(const typename App::type t) { t.steps_done(); })
            app.run(object, crash_at, app.steps());
        for (;;) ::pause(); // the pool stays open
    });
    while (is.before_seconds < 0 && child.runs()) ::usleep(20);
    child.kill();
    const double before_seconds = is.before_seconds;
    std::optional<pool> in;
    const spent opening = time_of([&] { in.emplace(must(pool::open(file.path(), options))); });
    auto object = must(simpo::object<typename App::type>::find(*in, "it"));
    std::uint64_t done = crash_at; // a run ends with a commit
    if constexpr (requires(const typename App::type t) { t.steps_done(); })
        done = object.template call<&App::type::steps_done>();
    const spent behind = time_of([&] { app.run(object, done, app.steps()); });
    if (object.template call<&App::type::fingerprint>() != expected)
        give_up("what went on behind the crash differs from what was never cut short");
    return {{"at_step", crash_at},
            {"kept_steps", done},
            {"before_seconds", before_seconds},
            {"opening_seconds", opening.seconds},
            {"behind_seconds", behind.seconds}};
}

inline double median(std::vector<double> of) {
    std::sort(of.begin(), of.end());
    return (of[(of.size() - 1) / 2] + of[of.size() / 2]) / 2;
}

/// Overheads are medians of ratios of neighbouring runs: the machine's moods meet both alike.
template <class App>
nlohmann::ordered_json measure(const char* name, App& app, const app_settings& how) {
    std::uint64_t fingerprint = 0;
    (void)run_native(app, fingerprint); // warms up
    std::vector<double> native, persistent, ratio, cpu_ratio, hybrid, hybrid_cpu, opening;
    nlohmann::ordered_json crashed;
    for (unsigned round = 0; round < how.rounds; ++round) {
        std::uint64_t again = 0;
        spent plain{}, ours{};
        if (round % 2 == 0) plain = run_native(app, again);
        ours = run_persistent(app, how, fingerprint);
        if (round % 2 != 0) plain = run_native(app, again);
        if (again != fingerprint) give_up("two native runs differ");
        native.push_back(plain.seconds);
        persistent.push_back(ours.seconds);
        ratio.push_back(ours.seconds / plain.seconds);
        cpu_ratio.push_back(ours.cpu_seconds / plain.cpu_seconds);
        const spent whole = run_hybrid(app, how, fingerprint);
        hybrid.push_back(whole.seconds / plain.seconds);
        hybrid_cpu.push_back(whole.cpu_seconds / plain.cpu_seconds);
        crashed = run_crashed(app, how, fingerprint);
        opening.push_back(crashed["opening_seconds"]);
    }
    nlohmann::ordered_json out;
    out["name"] = name;
    out["mode"] = how.mode;
    out["emulated"] = how.mode == "pmem";
    out["rounds"] = how.rounds;
    out["steps"] = app.steps();
    out["log_bytes"] = how.log_bytes;
    out["object_bytes"] = sizeof(typename App::type);
    out["native_seconds"] = median(native);
    out["persistent_seconds"] = median(persistent);
    out["overhead_percent"] = 100 * (median(ratio) - 1);
    out["cpu_overhead_percent"] = 100 * (median(cpu_ratio) - 1);
    out["overhead_percent_least"] = 100 * (*std::min_element(ratio.begin(), ratio.end()) - 1);
    out["overhead_percent_most"] = 100 * (*std::max_element(ratio.begin(), ratio.end()) - 1);
    out["hybrid_over_native"] = median(hybrid);
    out["hybrid_cpu_over_native"] = median(hybrid_cpu);
    out["opening_seconds"] = median(opening);
    out["opening_percent_of_native"] = 100 * median(opening) / median(native);
    out["last_crash"] = crashed;
    return out;
}

/// Hash of an object's numbers.
inline std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) noexcept {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
    return hash ^ hash >> 29;
}

} // namespace hf::bench
