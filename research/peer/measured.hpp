// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an application's steps took: the clock, the processor, and what the persistence layer
// counted.
#pragma once

#include <holdfast/author/persist.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>

namespace hf::apps {

/// Measures this thread from its construction on.
class measured {
public:
    /// Adds what has happened since then to 'out', counts for each of 'steps'.
    void add_to(nlohmann::ordered_json& out, std::uint64_t steps) const {
        const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
        const double cpu = cpu_now() - cpu_;
        const persist::counters& now = persist::thread_counters();
        const auto each = [&](std::uint64_t persist::counters::* of) {
            return static_cast<double>(now.*of - before_.*of) /
                   static_cast<double>(std::max<std::uint64_t>(steps, 1));
        };
        out["steps"] = steps;
        out["seconds"] = elapsed.count();
        out["cpu_seconds"] = cpu;
        out["log_entries_per_step"] = each(&persist::counters::log_entries);
        out["log_bytes_per_step"] = each(&persist::counters::log_bytes);
        out["ordering_points_per_step"] = each(&persist::counters::ordering_points);
    }

private:
    static double cpu_now() {
        std::timespec now{};
        ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
    }

    persist::counters before_ = persist::thread_counters();
    double cpu_ = cpu_now();
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

} // namespace hf::apps
