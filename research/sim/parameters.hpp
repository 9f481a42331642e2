// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The machine that is simulated, in numbers. Defaults: SLPMT's Table III; what the table leaves
// open is gem5's out-of-order core (192 entries, 32 and 32 in its queues) and is marked "open".
#pragma once

#include <cstdint>

namespace hf::sim {

/// Time, in sixteenths of a nanosecond.
using ticks = std::uint64_t;
inline constexpr ticks ticks_per_ns = 16;
inline constexpr ticks ticks_per_cycle = 8; // 2 GHz

struct cache_shape {
    std::uint32_t bytes;
    std::uint32_t ways;
    std::uint32_t cycles; // from the access to the value, all levels above included
};

struct core_parameters {
    std::uint32_t instructions_per_cycle = 2;  // open: sustained by code of this kind
    std::uint32_t instructions_per_access = 3; // open: the access itself and what surrounds it
    std::uint32_t reorder_buffer = 192;        // instructions
    std::uint32_t store_queue = 32;            // stores that have retired and are not visible yet
    std::uint32_t store_misses = 16;           // of them, how many may wait for their lines at once
};

struct memory_parameters {
    std::uint32_t read_ns = 150;
    std::uint32_t write_ns = 500;
    std::uint32_t accept_ns = 4;          // until the write queue has taken a line, and between two
    std::uint32_t queue_lines = 8;        // 512 bytes; an entry is held until its media write ends
    std::uint32_t banks = 16;             // open
    std::uint32_t interleave_bytes = 256; // open
    bool caches_persist =
        false; // eADR: the contents of caches are durable, and those of a core's log buffer
};

struct parameters {
    cache_shape l1{32 << 10, 8, 4};
    cache_shape l2{256 << 10, 4, 12};
    cache_shape l3{2 << 20, 16, 40};
    std::uint32_t cores = 1;
    core_parameters core;
    memory_parameters memory;
};

} // namespace hf::sim
