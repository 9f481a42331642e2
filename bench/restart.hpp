// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Restart after SIGKILL: a child fills a structure and is killed while it inserts; this process
// opens the file, which recovers, and checks that every acknowledged key is there.
#pragma once

#include "map_under_test.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

namespace hf::bench {

struct restart_options {
    std::string engine = "clobber";
    std::string mode = "process";
    structure which = structure::hashmap;
    std::uint64_t items = 1000000;
    std::uint64_t batch = 1; // insertions acknowledged together
    unsigned threads = 2;
    unsigned kills = 5;
    unsigned seed = 1; // of the moments to kill
    std::string directory = "/dev/shm";
};

/// Shared with the child: every result that a thread has received is in the map.
struct restart_progress {
    static constexpr unsigned threads_max = 64;
    struct alignas(64) count {
        std::atomic<std::uint64_t> keys{0};
    };
    std::array<count, threads_max> acknowledged;
};

nlohmann::ordered_json run_restart(const restart_options& options);

} // namespace hf::bench
