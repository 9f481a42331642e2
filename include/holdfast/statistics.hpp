// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a pool is doing, in numbers, for monitoring.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hf {

class pool;

/// Blocks of one size.
struct block_class {
    std::uint64_t block_bytes; // size-class rounding included
    std::uint64_t blocks;      // allocated
};

struct statistics {
    // Work of this process, on all its pools, since it began. Events of this very moment may be
    // missing.
    std::uint64_t sections = 0; // committed, MOD's updates included
    std::uint64_t ordering_points =
        0; // fences that were waited for; in process mode, where one would stand
    std::uint64_t flushes = 0;     // lines written back
    std::uint64_t log_entries = 0; // records of sections' logs
    std::uint64_t log_bytes = 0;
    std::uint64_t pm_bytes = 0; // stored to pools

    // This pool's space.
    std::uint64_t size_bytes = 0;     // the pool's part of its file
    std::uint64_t max_bytes = 0;      // what it may grow to
    std::uint64_t used_bytes = 0;     // in allocated blocks
    std::uint64_t free_bytes = 0;     // in the heap, and in no block: of any size, or of one only
    std::uint64_t metadata_bytes = 0; // the heap's tables
    std::uint64_t blocks = 0;
    std::vector<block_class> classes; // those that have blocks, smallest first

    // This open.
    std::uint64_t generation = 0; // how often the pool was opened
    std::uint64_t sections_recovered = 0;
    double open_ms = 0;
};

/// What the pool is doing now.
///
/// Cost:     reads the heap's tables, a 128th of the pool; no thread waits for it.
/// Errors:   throws std::bad_alloc.
/// Threads:  any; blocks that others allocate meanwhile may be counted or not.
statistics statistics_of(const pool& of);

/// What has happened to the name of the pool's file since it was opened: the file was removed or
/// renamed, or another file has the name. Empty: the name still leads to the file. The program goes
/// on working with the file that it has. The log (stderr, <holdfast/log.hpp>) says it as well, when
/// the pool grows and when it is closed.
///
/// Errors:   throws std::bad_alloc.
std::string misplaced(const pool& of);

} // namespace hf
