// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The operations and items of a benchmark's name.
//
//   (1) Item i of thread w has number i * threads + w; its key is scrambled(number). So each thread
//       knows which of its items exist, and insertions of two threads never meet.
//   (2) The operations are written down before the clock starts: distributions and random numbers
//       cost the measured loop nothing, and every engine gets the same ones.
//
// Mixes A-F: YCSB (Cooper et al., SoCC 2010), core workloads. Differs: the items that a thread
// reads or updates with distribution latest are its own, by (1); scans of mix E start at loaded
// items.
#pragma once

#include "choosers.hpp"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace hf::bench {

enum class distribution : std::uint8_t { uniform, zipfian, latest };
enum class operation_kind : std::uint32_t { insert, read, update, read_modify_write, scan };

/// Shares in percent; what is left of 100 inserts.
struct mix {
    unsigned read = 0;
    unsigned update = 0;
    unsigned read_modify_write = 0;
    unsigned scan = 0;
    bool loads_first = true; // all records are there when the clock starts
    bool latest = false;     // reads what was inserted last
};

/// ycsb-a … ycsb-f; nothing for another name.
std::optional<mix> ycsb_mix(std::string_view name);

struct operation {
    std::uint64_t key;
    operation_kind kind;
    std::uint32_t length; // of a scan
};

struct plan_options {
    mix operations;
    distribution which = distribution::zipfian;
    std::uint64_t records = 0; // loaded first
    std::uint64_t ops = 0;
    unsigned threads = 1;
};

inline std::uint64_t share_of(std::uint64_t all, unsigned threads, unsigned worker) {
    return all / threads + (worker < all % threads ? 1 : 0);
}

/// The insertions of thread 'worker' before the clock starts.
std::vector<operation> plan_load(const plan_options& options, unsigned worker);
/// Its operations after that.
std::vector<operation> plan(const plan_options& options, unsigned worker);

} // namespace hf::bench
