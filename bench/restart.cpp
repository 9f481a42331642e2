// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "restart.hpp"

#include "run.hpp"
#include "temporary_file.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <new>
#include <random>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <vector>

namespace hf::bench {
namespace {

std::uint64_t acknowledged(const restart_progress& progress) {
    std::uint64_t keys = 0;
    for (const auto& one : progress.acknowledged) keys += one.keys.load();
    return keys;
}

void insert_and_die(const std::string& path, const restart_options& options,
                    restart_progress& progress, unsigned delay_us) {
    const pid_t child = fork();
    if (child < 0) give_up("fork failed");
    if (child == 0) {
        (options.engine == "undo" ? insert_forever_undo : insert_forever_clobber)(path, options,
                                                                                  progress);
        _exit(1);
    }
    const std::uint64_t wanted = std::max(options.items, acknowledged(progress) + 1);
    while (acknowledged(progress) < wanted) {
        if (waitpid(child, nullptr, WNOHANG) != 0) give_up("the inserting process ended by itself");
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(delay_us));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
}

} // namespace

nlohmann::ordered_json run_restart(const restart_options& options) {
    if (options.engine != "undo" && options.engine != "clobber")
        give_up("--engine is undo or clobber");
    if (options.threads == 0 || options.threads > restart_progress::threads_max)
        give_up("--threads is 1 to 64");
    void* shared = mmap(nullptr, sizeof(restart_progress), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) give_up("mmap failed");
    auto* progress = ::new (shared) restart_progress;
    const temporary_file file(options.directory, "restart");

    std::minstd_rand random(static_cast<unsigned>(options.items));
    std::vector<double> open_ms;
    std::vector<std::uint32_t> pending_each;
    std::vector<std::uint64_t> pool_bytes_each;
    std::uint64_t pending = 0;
    std::uint64_t lost = 0;
    std::uint64_t keys = 0;
    bool sound = true;
    for (unsigned kill = 0; kill < options.kills; ++kill) {
        insert_and_die(file.path(), options, *progress, random() % 20000);
        const reopened seen = (options.engine == "undo" ? reopen_undo : reopen_clobber)(
            file.path(), options, *progress);
        open_ms.push_back(seen.open_ms);
        pending += seen.sections_pending;
        pending_each.push_back(seen.sections_pending);
        pool_bytes_each.push_back(seen.pool_bytes);
        lost += seen.missing;
        keys = seen.keys;
        // A thread's newest insertion may be in the map without having been acknowledged.
        sound = sound && seen.sound && keys >= acknowledged(*progress) &&
                keys <= acknowledged(*progress) + options.threads * (kill + 1);
    }
    munmap(shared, sizeof(restart_progress));

    const std::vector<double> open_ms_each = open_ms;
    std::sort(open_ms.begin(), open_ms.end());
    nlohmann::ordered_json out;
    out["name"] = "restart";
    out["engine"] = options.engine;
    out["mode"] = options.mode;
    out["threads"] = options.threads;
    out["items"] = options.items;
    out["kills"] = options.kills;
    out["open_ms"] = open_ms[open_ms.size() / 2];
    out["open_ms_max"] = open_ms.back();
    out["sections_pending"] = pending;
    out["open_ms_each"] = open_ms_each;
    out["sections_pending_each"] = pending_each;
    out["pool_bytes_each"] = pool_bytes_each;
    out["keys"] = keys;
    out["lost"] = lost;
    out["sound"] = sound;
    out["directory"] = options.directory;
    out["cpu"] = cpu_name();
    return out;
}

} // namespace hf::bench
