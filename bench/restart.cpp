// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "restart.hpp"

#include "run.hpp"
#include "temporary_file.hpp"
#include "workload.hpp"
#include <clobber/engine.hpp>
#include <open/pool_impl.hpp>
#include <open/registry.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <new>
#include <random>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <vector>

namespace hf::bench {
namespace {

constexpr std::size_t value_bytes = 256;

std::unique_ptr<map_under_test> open_map(const std::string& path, const restart_options& given) {
    map_options options;
    options.which = given.which;
    options.mode = mode_named(given.mode);
    options.keys = 2 * given.items;
    options.prefault = false;
    options.keep_at = path;
    auto opened = make_map(given.engine, options);
    if (opened == nullptr) give_up(given.engine + ": no such engine");
    if (!opened->state()) give_up(given.engine + " is not opened again");
    return opened;
}

std::uint64_t key_of(std::uint64_t item, const restart_options& given, unsigned worker) {
    return scrambled(item * given.threads + worker);
}

void insert_own(map_under_test& target, const restart_options& given, unsigned worker,
                std::atomic<std::uint64_t>& acknowledged) {
    const noise values(value_bytes);
    std::vector<std::byte> found(value_bytes);
    std::uint64_t item = acknowledged.load();
    // Inserted before, perhaps, and the process killed before it said so.
    while (target.find(key_of(item, given, worker), found.data())) ++item;
    for (;;) {
        target.begin_batch(given.batch);
        for (const std::uint64_t end = item + given.batch; item < end; ++item) {
            const std::uint64_t key = key_of(item, given, worker);
            if (!target.insert(key, values.value_of(key))) give_up("the pool is full");
        }
        target.end_batch();
        acknowledged.store(item, std::memory_order_release);
    }
}

[[noreturn]] void insert_forever(const std::string& path, const restart_options& given,
                                 restart_progress& progress) {
    const auto target = open_map(path, given);
    std::vector<std::thread> workers;
    for (unsigned w = 0; w < given.threads; ++w)
        workers.emplace_back(
            [&, w] { insert_own(*target, given, w, progress.acknowledged[w].keys); });
    for (std::thread& worker : workers) worker.join();
    _exit(1);
}

std::uint64_t acknowledged(const restart_progress& progress) {
    std::uint64_t keys = 0;
    for (const auto& one : progress.acknowledged) keys += one.keys.load();
    return keys;
}

void insert_and_die(const std::string& path, const restart_options& options,
                    restart_progress& progress, unsigned delay_us) {
    const std::uint64_t wanted = std::max(options.items, acknowledged(progress) + 1);
    const pid_t child = fork();
    if (child < 0) give_up("fork failed");
    if (child == 0) insert_forever(path, options, progress);
    while (acknowledged(progress) < wanted) {
        if (waitpid(child, nullptr, WNOHANG) != 0) give_up("the inserting process ended by itself");
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(delay_us));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
}

std::uint64_t count_missing(map_under_test& target, const restart_options& given,
                            const restart_progress& progress) {
    const noise values(value_bytes);
    std::vector<std::byte> found(value_bytes);
    std::uint64_t missing = 0;
    for (unsigned w = 0; w < given.threads; ++w)
        for (std::uint64_t i = 0; i < progress.acknowledged[w].keys.load(); ++i) {
            const std::uint64_t key = key_of(i, given, w);
            if (!target.find(key, found.data()) ||
                std::memcmp(found.data(), values.value_of(key), value_bytes) != 0)
                ++missing;
        }
    return missing;
}

/// Where an opening's time went, in milliseconds: the file locked and mapped; its logs read and
/// bounded, blocks put back; inputs put back and functions executed again by engine clobber, summed
/// over its threads; sections ended in all.
struct open_parts {
    double map = 0, check = 0, restore = 0, re_execute = 0, sections = 0;
};

struct recovery_so_far {
    std::int64_t restore_ns = clobber::recovery_took.restore_ns,
                 re_execute_ns = clobber::recovery_took.re_execute_ns;
};

/// Those of the pool that has been opened since; none if it is a peer's.
std::optional<open_parts> parts_since(const recovery_so_far& before) {
    const pool::impl* const opened = registry::only_pool();
    if (opened == nullptr) return std::nullopt;
    const recovery_so_far now;
    const auto ms = [](std::int64_t ns) { return static_cast<double>(ns) / 1e6; };
    return open_parts{opened->map_ms, opened->check_ms, ms(now.restore_ns - before.restore_ns),
                      ms(now.re_execute_ns - before.re_execute_ns), opened->sections_ms};
}

struct kill_results {
    std::vector<double> open_ms;
    std::vector<open_parts> parts;      // none of peers
    std::vector<std::uint32_t> pending; // none for engines that do not say
    std::vector<std::uint64_t> file_bytes;
    std::uint64_t keys = 0;
    std::uint64_t lost = 0;
    bool sound = true;
};

kill_results kill_and_reopen(const restart_options& options, restart_progress& progress) {
    const temporary_file file(options.directory, "restart");
    std::minstd_rand random(options.seed);
    kill_results all;
    for (unsigned kill = 0; kill < options.kills; ++kill) {
        insert_and_die(file.path(), options, progress, random() % 20000);
        const recovery_so_far before;
        const auto map = open_map(file.path(), options);
        const reopened seen = *map->state();
        if (const auto parts = parts_since(before)) all.parts.push_back(*parts);
        all.open_ms.push_back(seen.open_ms);
        all.file_bytes.push_back(seen.file_bytes);
        if (seen.sections_pending) all.pending.push_back(*seen.sections_pending);
        all.lost += count_missing(*map, options, progress);
        all.keys = seen.keys.value_or(acknowledged(progress));
        // A thread's newest batch may be in the map, or a part of it, without having been
        // acknowledged.
        all.sound = all.sound && seen.sound.value_or(true) && all.keys >= acknowledged(progress) &&
                    all.keys <= acknowledged(progress) + options.threads * options.batch;
    }
    return all;
}

double median(std::vector<double> of) {
    std::ranges::sort(of);
    return of[of.size() / 2];
}

nlohmann::ordered_json to_json(const std::vector<open_parts>& all) {
    if (all.empty()) return nullptr;
    nlohmann::ordered_json out;
    for (const auto& [name, part] :
         {std::pair{"map", &open_parts::map}, std::pair{"check", &open_parts::check},
          std::pair{"restore", &open_parts::restore},
          std::pair{"re_execute", &open_parts::re_execute},
          std::pair{"sections", &open_parts::sections}}) {
        std::vector<double> each;
        for (const open_parts& one : all) each.push_back(one.*part);
        out[name] = median(std::move(each));
    }
    return out;
}

} // namespace

nlohmann::ordered_json run_restart(const restart_options& options) {
    if (options.threads == 0 || options.threads > restart_progress::threads_max)
        give_up("--threads is 1 to 64");
    void* shared = mmap(nullptr, sizeof(restart_progress), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) give_up("mmap failed");
    auto* progress = ::new (shared) restart_progress;
    const kill_results all = kill_and_reopen(options, *progress);
    munmap(shared, sizeof(restart_progress));

    nlohmann::ordered_json out;
    out["name"] = "restart";
    out["engine"] = options.engine;
    out["mode"] = options.mode;
    out["threads"] = options.threads;
    out["structure"] = name_of(options.which);
    out["batch"] = options.batch;
    out["items"] = options.items;
    out["kills"] = options.kills;
    out["seed"] = options.seed;
    out["open_ms"] = median(all.open_ms);
    out["open_ms_max"] = std::ranges::max(all.open_ms);
    out["open_parts_ms"] = to_json(all.parts);
    out["open_ms_each"] = all.open_ms;
    out["sections_pending_each"] = all.pending;
    out["pool_bytes_each"] = all.file_bytes;
    out["keys"] = all.keys;
    out["lost"] = all.lost;
    out["sound"] = all.sound;
    out["directory"] = options.directory;
    out["cpu"] = cpu_name();
    return out;
}

} // namespace hf::bench
