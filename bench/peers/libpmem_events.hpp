// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What libhf_bench_pmem.so, when it is preloaded, counts of libpmem's work: libpmemobj's flushes
// and fences, which do not go through hf::persist.
#pragma once

#include <cstdint>

namespace hf::bench {

struct libpmem_events {
    std::uint64_t flushes; // lines
    std::uint64_t fences;
    std::uint64_t nt_stores; // calls
    std::uint64_t nt_bytes;
};

/// Whether the library is loaded.
bool libpmem_is_counted();
/// The calling thread's counts; zeros without the library.
libpmem_events libpmem_events_now();

} // namespace hf::bench

/// The calling thread's counts.
extern "C" const hf::bench::libpmem_events* hf_bench_libpmem_events();
