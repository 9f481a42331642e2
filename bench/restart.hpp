// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Restart after SIGKILL: a child fills a map and is killed while it inserts; this process reopens
// the pool, which recovers, and checks that every acknowledged key is there.
#pragma once

#include <nlohmann/json.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

namespace hf::bench {

struct restart_options {
    std::string engine = "clobber";
    std::string mode = "process";
    std::uint64_t items = 1000000;
    unsigned threads = 2;
    unsigned kills = 5;
    std::string directory = "/dev/shm";
};

/// Shared with the child: what each thread has been told is in the map.
struct restart_progress {
    static constexpr unsigned threads_max = 64;
    struct alignas(64) count {
        std::atomic<std::uint64_t> keys{0};
    };
    std::array<count, threads_max> acknowledged;
};

struct reopened {
    double open_ms;
    std::uint32_t sections_pending;
    std::uint64_t pool_bytes;
    std::uint64_t keys;
    std::uint64_t missing; // acknowledged keys that are not there
    bool sound;            // the map's and tables' invariants hold
};

nlohmann::ordered_json run_restart(const restart_options& options);

// ours/restart.cpp, built once per engine: insert until killed; reopen and look.
using insert_forever = void(const std::string& path, const restart_options&, restart_progress&);
using reopen_and_check = reopened(const std::string& path, const restart_options&,
                                  const restart_progress&);
insert_forever insert_forever_undo, insert_forever_clobber;
reopen_and_check reopen_undo, reopen_clobber;

} // namespace hf::bench
