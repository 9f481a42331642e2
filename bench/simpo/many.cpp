// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "many.hpp"

#include "../measured.hpp"
#include "../temporary_file.hpp"
#include "object_bench.hpp"
#include <simpo/format.hpp>

#include <holdfast/pool.hpp>
#include <holdfast/simpo.hpp>
#include <holdfast/simpo/swap.hpp>
#include <holdfast/simpo/table.hpp>
#include <holdfast/simpo/zstd.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

namespace hf::bench {
namespace {

/// The paper's TwoDimIntArray.
class grid {
public:
    static constexpr simpo::class_name simpo_class{"grid", 1};
    static constexpr std::size_t cells = std::size_t{1} << 20;
    void all_inc(std::int32_t by) noexcept {
        for (std::int32_t& cell : cells_) cell += by;
    }
    std::int64_t sum() const {
        std::int64_t all = 0;
        for (const std::int32_t cell : cells_) all += cell;
        return all;
    }

private:
    std::array<std::int32_t, cells> cells_{};
};

struct settings : object_settings {
    std::string swap_directory = ".";
    unsigned objects = 24, room_percent = 100;
    int zstd = 0;
};

/// Calls each(which) for every operation.
template <class Each> measured run_threads(const settings& how, const Each& each) {
    return measure_threads(how.threads, [&](unsigned thread) {
        std::mt19937 random(thread + 1);
        for (std::uint64_t i = thread; i < how.ops; i += how.threads) each(random() % how.objects);
        return true;
    });
}

struct found_run {
    measured run;
    std::int64_t sum = 0;
    bool emulated = false;
    unsigned swapped_out = 0; // in the end
};

found_run run_native(const settings& how) {
    struct one {
        std::mutex lock;
        grid is;
    };
    const auto all = std::make_unique<one[]>(how.objects);
    found_run found{run_threads(how, [&](unsigned which) {
        const std::scoped_lock held{all[which].lock};
        all[which].is.all_inc(1);
    })};
    for (unsigned i = 0; i < how.objects; ++i) found.sum += all[i].is.sum();
    return found;
}

/// A folder that goes with it.
struct temporary_folder {
    explicit temporary_folder(const std::string& in)
        : path(fmt::format("{}/holdfast-bench-swapped.{}", in, ::getpid())) {}
    ~temporary_folder() { std::filesystem::remove_all(path); }
    temporary_folder(const temporary_folder&) = delete;
    const std::string path;
};

simpo::object<grid> find(pool& in, unsigned which) {
    auto found = simpo::object<grid>::find(in, std::to_string(which));
    if (!found) give_up(found.error().what());
    return *found;
}

found_run run_simpo(const settings& how) {
    const temporary_file file(how.directory, "simpo-many");
    const temporary_folder folder(how.swap_directory);
    const simpo::zstd packing(how.zstd);
    const simpo::object_options log{.log_bytes = 16_KiB};
    const std::uint64_t one =
        round_up(simpo::layout_of(sizeof(grid), log.log_bytes / line_bytes).block_bytes, 64_KiB);
    const std::uint64_t bytes = 16_MiB + (how.objects * how.room_percent / 100) * one;
    open_options options = pool_for(how, "bench/simpo-many/1", bytes);
    options.max_bytes = bytes;
    auto pool = hf::pool::open(file.path(), options);
    if (!pool) give_up(pool.error().what());
    const simpo::swap_options swap{.packing = how.zstd == 0 ? nullptr : &packing};
    if (how.room_percent < 100)
        if (status s = simpo::swap_to(*pool, folder.path, swap); !s.ok()) give_up(s.what());
    for (unsigned i = 0; i < how.objects; ++i)
        if (auto made = simpo::object<grid>::create(*pool, std::to_string(i), log); !made)
            give_up(made.error().what());
    found_run found{
        run_threads(how, [&](unsigned which) { find(*pool, which).call<&grid::all_inc>(1); })};
    found.emulated = pool->emulated();
    const auto all = simpo::list(*pool);
    for (const simpo::object_info& each : *all) found.swapped_out += each.swapped_out;
    for (unsigned i = 0; i < how.objects; ++i) found.sum += find(*pool, i).call<&grid::sum>();
    return found;
}

nlohmann::ordered_json run(const settings& how) {
    const found_run found = how.engine == "none" ? run_native(how) : run_simpo(how);
    if (const auto expected = static_cast<std::int64_t>(how.ops * grid::cells);
        found.sum != expected)
        give_up(fmt::format("many: the sum is {}, expected {}", found.sum, expected));
    nlohmann::ordered_json out = report_of(how, found.run, found.emulated);
    out["objects"] = how.objects;
    out["room_percent"] = how.room_percent;
    out["zstd"] = how.zstd;
    out["swapped_out"] = found.swapped_out;
    return out;
}

} // namespace

void add_many_objects(CLI::App& bench) {
    auto how = std::make_shared<settings>();
    how->name = "many";
    CLI::App& command = add_object_bench(
        bench, "threads change persistent objects of 4 MiB, by chance", *how, {"none", "simpo"});
    command.add_option("--objects", how->objects)
        ->check(CLI::Range(1, 4096))
        ->capture_default_str();
    command
        .add_option("--room-percent", how->room_percent,
                    "of the objects that the pool has room for; below 100 others are in files")
        ->check(CLI::Range(1, 100))
        ->capture_default_str();
    command.add_option("--zstd", how->zstd, "level at which files are packed; 0: they are not")
        ->check(CLI::Range(0, 19))
        ->capture_default_str();
    command.add_option("--swap-dir", how->swap_directory, "where the files go")
        ->capture_default_str();
    command.callback([=] { print(*how, run(*how)); });
}

} // namespace hf::bench
