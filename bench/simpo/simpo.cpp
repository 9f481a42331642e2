// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simpo.hpp"

#include "../measured.hpp"
#include "../temporary_file.hpp"
#include <base/line.hpp>

#include <holdfast/pool.hpp>
#include <holdfast/simpo.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <memory>
#include <mutex>
#include <string>

namespace hf::bench {
namespace {

constexpr std::uint32_t row_count = 2, row_cells = 250; // 500 elements in all, as in the paper

class two_rows {
public:
    static constexpr simpo::class_name simpo_class{"two_rows", 1};
    void all_inc(std::int32_t by) noexcept {
        for (std::uint32_t row = 0; row < row_count; ++row) row_inc(by, row);
    }
    void row_inc(std::int32_t by, std::uint32_t row) noexcept {
        for (std::int32_t& cell : cells_[row % row_count]) cell += by;
    }
    std::int64_t sum() const {
        std::int64_t all = 0;
        for (const auto& row : cells_)
            for (const std::int32_t cell : row) all += cell;
        return all;
    }

private:
    std::array<std::array<std::int32_t, row_cells>, row_count> cells_{};
};

struct settings {
    std::string name, engine = "simpo", mode = "process", directory = "/dev/shm";
    unsigned threads = 1;
    std::uint64_t ops = 1'000'000, log_bytes = 64_KiB, calls_a_sync = 0;
    bool all() const { return name == "allinc"; }
    /// What the sum is when all is done.
    std::int64_t expected() const {
        return static_cast<std::int64_t>(ops) * row_cells * (all() ? row_count : 1);
    }
    std::uint64_t part(unsigned thread) const { return ops / threads + (thread < ops % threads); }
};

/// Calls each(row) for every operation, end() after every so many of a thread and at its end. Each thread has
/// its own copies.
template <class Each, class End>
measured run_threads(const settings& how, const Each& each, const End& end) {
    return measure_threads(how.threads, [&](unsigned thread) {
        Each call = each;
        End commit = end;
        const std::uint64_t count = how.part(thread);
        for (std::uint64_t i = 0; i < count; ++i) {
            call(static_cast<std::uint32_t>((i + thread) % row_count));
            if (how.calls_a_sync != 0 && (i + 1) % how.calls_a_sync == 0) commit();
        }
        commit();
        return true;
    });
}

measured run_native(const settings& how, std::int64_t& sum) {
    struct alignas(line_bytes) row_lock {
        std::mutex lock;
    };
    std::array<row_lock, row_count> locks;
    const auto rows = std::make_unique<two_rows>();
    const auto each = [&](std::uint32_t row) {
        const std::scoped_lock held{locks[how.all() ? 0 : row].lock};
        if (how.all()) rows->all_inc(1);
        else rows->row_inc(1, row);
    };
    const measured found = run_threads(how, each, [] {});
    sum = rows->sum();
    return found;
}

measured run_simpo(const settings& how, std::int64_t& sum, bool& emulated) {
    const temporary_file file(how.directory, "simpo");
    open_options options;
    options.layout = "bench/simpo/1";
    options.create_bytes = 8_MiB + 4 * how.log_bytes;
    options.mode = how.mode == "process" ? mode::process
                   : how.mode == "pmem"  ? mode::pmem
                                         : mode::power;
    options.engines = {simpo::engine()};
    options.seal = false; // nobody opens it again
    auto pool = hf::pool::open(file.path(), options);
    if (!pool) give_up(pool.error().what());
    emulated = pool->emulated();
    auto made =
        simpo::object<two_rows>::create(*pool, "rows", simpo::object_options{how.log_bytes});
    if (!made) give_up(made.error().what());
    const auto each = [all = how.all(), rows = *made](std::uint32_t row) mutable {
        if (all) rows.defer<&two_rows::all_inc>(1);
        else rows.defer<&two_rows::row_inc>(1, row);
    };
    const measured found = run_threads(how, each, [rows = *made]() mutable { rows.sync(); });
    sum = made->call<&two_rows::sum>();
    return found;
}

nlohmann::ordered_json run(const settings& how) {
    std::int64_t sum = 0;
    bool emulated = false;
    const bool native = how.engine == "none";
    const measured found = native ? run_native(how, sum) : run_simpo(how, sum, emulated);
    if (sum != how.expected())
        give_up(fmt::format("{}: the sum is {}, expected {}", how.name, sum, how.expected()));
    nlohmann::ordered_json out;
    out["name"] = how.name;
    out["engine"] = how.engine;
    out["mode"] = native ? "volatile" : how.mode;
    out["threads"] = how.threads;
    out["ops"] = how.ops;
    out["seconds"] = found.seconds;
    out["ops_per_second"] = static_cast<double>(how.ops) / found.seconds;
    add_counts(out, found, how.ops, {emulated, true, true, ""});
    out["emulated"] = emulated;
    out["calls_a_sync"] = how.calls_a_sync;
    out["log_bytes"] = how.log_bytes;
    return out;
}

void add(CLI::App& to, const char* name, const char* what) {
    auto how = std::make_shared<settings>();
    auto json = std::make_shared<bool>(false);
    how->name = name;
    CLI::App* command = to.add_subcommand(name, what);
    command->add_option("--engine", how->engine, "none: volatile, under locks; or simpo")
        ->check(CLI::IsMember({"none", "simpo"}))
        ->capture_default_str();
    command->add_option("--mode", how->mode, "durability: process, pmem or power")
        ->check(CLI::IsMember({"process", "pmem", "power"}))
        ->capture_default_str();
    command->add_option("--threads", how->threads)->check(CLI::Range(1, 64))->capture_default_str();
    command->add_option("--ops", how->ops, "calls in all")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    command
        ->add_option("--calls-a-sync", how->calls_a_sync,
                     "each thread commits after so many calls; 0: at its end")
        ->capture_default_str();
    command->add_option("--log-bytes", how->log_bytes)
        ->check(CLI::Range(std::uint64_t{1_KiB}, std::uint64_t{1_GiB}))
        ->capture_default_str();
    command->add_option("--dir", how->directory, "where the pool goes")->capture_default_str();
    command->add_flag("--json", *json, "print one JSON object");
    command->callback([=] { fmt::print("{}\n", run(*how).dump(*json ? -1 : 2)); });
}

} // namespace

void add_persistent_objects(CLI::App& bench) {
    add(bench, "allinc", "threads add to every element of a persistent object");
    add(bench, "rowinc", "threads add to one row, or the other, of a persistent object");
}

} // namespace hf::bench
