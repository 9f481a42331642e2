// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simpo.hpp"

#include "../latency.hpp"
#include "../measured.hpp"
#include "../temporary_file.hpp"
#include "object_bench.hpp"
#include "two_rows.hpp"
#include "variants.hpp"
#include <base/line.hpp>
#include <open/pool_impl.hpp>
#include <simpo/objects.hpp>

#include <holdfast/pool.hpp>
#include <holdfast/simpo.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace hf::bench {
namespace {

constexpr std::uint32_t row_count = two_rows::row_count;

struct settings : object_settings {
    std::string latency;
    std::uint64_t log_bytes = 64_KiB, calls_a_sync = 0, calls_a_checkpoint = 1000;
    bool crash = false, long_calls = false;
    bool all() const { return name == "allinc"; }
    /// The sum when all is done.
    std::int64_t expected() const {
        const std::uint32_t row_cells = long_calls ? long_rows::row_cells : two_rows::row_cells;
        return static_cast<std::int64_t>(ops) * row_cells * (all() ? row_count : 1);
    }
    std::uint64_t part(unsigned thread) const { return ops / threads + (thread < ops % threads); }
};

/// Calls each(row) for every operation, end() after every so many of a thread and at its end. Each
/// thread has its own copies.
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

template <class Rows> measured run_native(const settings& how, std::int64_t& sum) {
    struct alignas(line_bytes) row_lock {
        std::mutex lock;
    };
    std::array<row_lock, row_count> locks;
    const auto rows = std::make_unique<Rows>();
    const auto each = [&](std::uint32_t row) {
        const std::scoped_lock held{locks[how.all() ? 0 : row].lock};
        if (how.all()) rows->all_inc(1);
        else rows->row_inc(1, row);
    };
    const measured found = run_threads(how, each, [] {});
    sum = rows->sum();
    return found;
}

/// The results of a run.
struct found_run {
    measured run;
    std::int64_t sum = 0;
    bool emulated = false;
    nlohmann::ordered_json recovery; // null: it was not crashed
};

found_run run_locked(const settings& how) {
    if (how.mode == "power" || how.crash) give_up("a variant has no pool");
    if (how.long_calls) give_up("a variant has short calls");
    locked_rows rows(how.engine, how.mode == "pmem" ? domain::adr : domain::process,
                     how.calls_a_checkpoint, how.directory);
    const auto each = [&](std::uint32_t row) {
        if (how.all()) rows.all_inc(1);
        else rows.row_inc(1, row);
    };
    found_run found{run_threads(how, each, [] {}), 0, how.mode == "pmem", {}};
    found.sum = rows.durable_sum();
    return found;
}

/// Makes the record durable that was logged last: variant simpo-all. It may take another thread's
/// line for it, which costs the same.
void persist_last_record(simpo::detail::core& of, domain d) {
    const simpo::object_head& h = of.head();
    const auto* const log = reinterpret_cast<const std::byte*>(&h) +
                            simpo::layout_of(h.object_bytes, h.log_lines).log_offset;
    persist::persist(d, log + (of.log().head() - 1) % h.log_lines * line_bytes, line_bytes);
}

/// Opens the pool again behind a crash.
nlohmann::ordered_json crash_and_open(pool& in, const std::string& path,
                                      const open_options& options) {
    pool::impl::abandon(std::move(in));
    const auto start = std::chrono::steady_clock::now();
    auto again = pool::open(path, options);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (!again) give_up(again.error().what());
    in = std::move(*again);
    return {{"seconds", took.count()}, {"groups_replayed", in.recovered().replayed}};
}

template <class Rows> found_run run_simpo(const settings& how) {
    const temporary_file file(how.directory, "simpo");
    const open_options options = pool_for(how, "bench/simpo/1", 8_MiB + 4 * how.log_bytes);
    auto pool = hf::pool::open(file.path(), options);
    if (!pool) give_up(pool.error().what());
    auto made = simpo::object<Rows>::create(*pool, "rows", simpo::object_options{how.log_bytes});
    if (!made) give_up(made.error().what());
    const bool each_durable = how.engine == "simpo-all";
    const domain d = how.mode == "pmem" ? domain::adr : domain::process;
    const bool hints = how.engine == "simpo-hints";
    const auto each = [=, all = how.all(), rows = *made](std::uint32_t row) mutable {
        const simpo::hint beside{static_cast<std::uint16_t>(hints ? row + 1 : 0)};
        if (all) rows.template defer<&Rows::all_inc>(1);
        else rows.template defer_beside<&Rows::row_inc>(beside, 1, row);
        if (each_durable) persist_last_record(rows.internals(), d);
    };
    found_run found{
        run_threads(how, each, [rows = *made]() mutable { rows.sync(); }), 0, pool->emulated(), {}};
    if (how.crash) {
        found.recovery = crash_and_open(*pool, file.path(), options);
        made = simpo::object<Rows>::find(*pool, "rows");
        if (!made) give_up(made.error().what());
    }
    found.sum = made->template call<&Rows::sum>();
    return found;
}

found_run run_variant(const settings& how) {
    if (const auto model = latency_model_of(how.latency)) {
        if (how.mode != "pmem") give_up("--latency belongs to mode pmem");
        persist::set_latency_model(*model);
    }
    if (how.engine.starts_with("simpo"))
        return how.long_calls ? run_simpo<long_rows>(how) : run_simpo<two_rows>(how);
    if (how.engine != "none") return run_locked(how);
    found_run found{};
    found.run = how.long_calls ? run_native<long_rows>(how, found.sum)
                               : run_native<two_rows>(how, found.sum);
    return found;
}

nlohmann::ordered_json run(const settings& how) {
    const found_run found = run_variant(how);
    if (found.sum != how.expected())
        give_up(fmt::format("{}: the sum is {}, expected {}", how.name, found.sum, how.expected()));
    nlohmann::ordered_json out = report_of(how, found.run, found.emulated);
    out["latency_model"] =
        how.latency.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(how.latency);
    out["long_calls"] = how.long_calls;
    out["calls_a_sync"] = how.calls_a_sync;
    out["calls_a_checkpoint"] = how.calls_a_checkpoint;
    out["log_bytes"] = how.log_bytes;
    out["recovery"] = found.recovery;
    return out;
}

std::vector<std::string> engine_names() {
    std::vector<std::string> all{"none", "simpo", "simpo-all", "simpo-hints"};
    all.insert(all.end(), locked_variants.begin(), locked_variants.end());
    return all;
}

void add(CLI::App& to, const char* name, const char* what) {
    auto how = std::make_shared<settings>();
    how->name = name;
    how->ops = 1'000'000;
    CLI::App& command = add_object_bench(to, what, *how, engine_names());
    command
        .add_option("--calls-a-sync", how->calls_a_sync,
                    "each thread commits after so many calls; 0: at its end")
        ->capture_default_str();
    command
        .add_option("--calls-a-checkpoint", how->calls_a_checkpoint,
                    "of variants that make calls at once, but nvram and ssd, which take 1")
        ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000}))
        ->capture_default_str();
    command.add_flag("--long-calls", how->long_calls, "of 2 us, as the paper's");
    command.add_flag("--crash", how->crash,
                     "simpo: lets go of the pool at the end, and times its opening");
    command
        .add_option("--latency", how->latency, "in mode pmem: fences as long as on other memory")
        ->check(CLI::IsMember({"stt-ram", "pcm", "optane", "cxl", "cxl-far"}));
    command.add_option("--log-bytes", how->log_bytes)
        ->check(CLI::Range(std::uint64_t{1_KiB}, std::uint64_t{1_GiB}))
        ->capture_default_str();
    command.callback([=] { print(*how, run(*how)); });
}

} // namespace

void add_persistent_objects(CLI::App& bench) {
    add(bench, "allinc", "threads add to every element of a persistent object");
    add(bench, "rowinc", "threads add to one row, or the other, of a persistent object");
}

} // namespace hf::bench
