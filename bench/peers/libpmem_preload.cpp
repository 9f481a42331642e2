// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Preloaded, this stands before libpmem: it counts what libpmemobj flushes and fences, and makes
// its fences as long as the latency model has ours (HOLDFAST_BENCH_LATENCY="<first>,<further>", in
// ns per line). Costs libpmemobj a few nanoseconds per call: speed is measured without it, unless a
// model is asked for.
//
// (1) What libpmemobj imports from libpmem 1.12 to write is here, and nothing here calls a libpmem
//     function that calls another of these: no event is counted twice.
// (2) Which copies libpmem makes non-temporally: those asked for with NONTEMPORAL or WC, and
//     without TEMPORAL or WB those from 256 bytes on. Of the others it flushes the lines.
#include "libpmem_events.hpp"

#include <holdfast/author/persist.hpp>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <libpmem.h>

namespace {

thread_local hf::bench::libpmem_events events{};
thread_local std::uint64_t lines_waiting = 0;

template <class Function> Function* real(const char* name) {
    void* found = dlsym(RTLD_NEXT, name);
    if (found == nullptr) {
        std::fprintf(stderr, "holdfast: no %s to call\n", name);
        std::abort();
    }
    return reinterpret_cast<Function*>(found);
}

std::uint64_t lines_in(const void* address, std::size_t bytes) {
    const auto first = reinterpret_cast<std::uintptr_t>(address) / 64;
    return bytes == 0 ? 0
                      : (reinterpret_cast<std::uintptr_t>(address) + bytes - 1) / 64 - first + 1;
}

void count_flush(const void* address, std::size_t bytes) {
    const std::uint64_t lines = lines_in(address, bytes);
    events.flushes += lines;
    lines_waiting += lines;
}

void count_copy(const void* to, std::size_t bytes, unsigned flags) {
    constexpr std::size_t nontemporal_from = 256;
    if ((flags & PMEM_F_MEM_NOFLUSH) != 0) return;
    const bool temporal =
        (flags & (PMEM_F_MEM_TEMPORAL | PMEM_F_MEM_WB)) != 0 ||
        ((flags & (PMEM_F_MEM_NONTEMPORAL | PMEM_F_MEM_WC)) == 0 && bytes < nontemporal_from);
    if (temporal) return count_flush(to, bytes);
    ++events.nt_stores;
    events.nt_bytes += bytes;
    lines_waiting += lines_in(to, bytes);
}

void install_model() {
    hf::persist::latency_model model;
    const char* given = std::getenv("HOLDFAST_BENCH_LATENCY");
    if (given == nullptr ||
        std::sscanf(given, "%lf,%lf", &model.first_line_ns, &model.further_line_ns) != 2)
        return;
    hf::persist::set_latency_model(model);
}

struct when_loaded {
    when_loaded() { install_model(); }
} const installed;

} // namespace

extern "C" {

const hf::bench::libpmem_events* hf_bench_libpmem_events() { return &events; }

void pmem_flush(const void* address, std::size_t bytes) {
    static auto* const call = real<decltype(pmem_flush)>("pmem_flush");
    call(address, bytes);
    count_flush(address, bytes);
}

void pmem_deep_flush(const void* address, std::size_t bytes) {
    static auto* const call = real<decltype(pmem_deep_flush)>("pmem_deep_flush");
    call(address, bytes);
    count_flush(address, bytes);
}

void pmem_drain() {
    static auto* const call = real<decltype(pmem_drain)>("pmem_drain");
    const std::uint64_t begun = hf::persist::detail::ticks();
    call();
    ++events.fences;
    hf::persist::detail::wait_as_modelled(lines_waiting, begun);
    lines_waiting = 0;
}

void pmem_persist(const void* address, std::size_t bytes) {
    pmem_flush(address, bytes);
    pmem_drain();
}

void* pmem_memcpy(void* to, const void* from, std::size_t bytes, unsigned flags) {
    static auto* const call = real<decltype(pmem_memcpy)>("pmem_memcpy");
    call(to, from, bytes, flags | PMEM_F_MEM_NODRAIN);
    count_copy(to, bytes, flags);
    if ((flags & (PMEM_F_MEM_NODRAIN | PMEM_F_MEM_NOFLUSH)) == 0) pmem_drain();
    return to;
}

void* pmem_memmove(void* to, const void* from, std::size_t bytes, unsigned flags) {
    static auto* const call = real<decltype(pmem_memmove)>("pmem_memmove");
    call(to, from, bytes, flags | PMEM_F_MEM_NODRAIN);
    count_copy(to, bytes, flags);
    if ((flags & (PMEM_F_MEM_NODRAIN | PMEM_F_MEM_NOFLUSH)) == 0) pmem_drain();
    return to;
}

void* pmem_memset(void* to, int byte, std::size_t bytes, unsigned flags) {
    static auto* const call = real<decltype(pmem_memset)>("pmem_memset");
    call(to, byte, bytes, flags | PMEM_F_MEM_NODRAIN);
    count_copy(to, bytes, flags);
    if ((flags & (PMEM_F_MEM_NODRAIN | PMEM_F_MEM_NOFLUSH)) == 0) pmem_drain();
    return to;
}
}
