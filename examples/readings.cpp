// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Readings in a file, with engine selective: one store of three is logged.
#include <holdfast/author/selective.hpp>
#include <holdfast/pool.hpp>
#include <holdfast/selective.hpp>
#include <holdfast/txfunc.hpp>

#include <cstdio>

// [section]
struct readings {
    unsigned long count;
    unsigned long total; // of the values
    unsigned long values[1000];
};

HF_TXFUNC bool add(readings* to, unsigned long value) noexcept {
    if (to->count == 1000) return false;
    hf::log_free(to->values[to->count]) = value; // a slot that nobody reads, until 'count' says so
    hf::lazy(to->total) = to->total + value;     // follows from the others: rebuild() finds it again
    to->count += 1;                              // logged
    hf::crash_point("half-added");
    return true;
}

HF_TXFUNC void rebuild(readings* of) noexcept {
    unsigned long total = 0;
    for (unsigned long i = 0; i < of->count; ++i) total += of->values[i];
    hf::lazy(of->total) = total;
}
// [/section]

int main() {
    // [open]
    hf::open_options options;
    options.layout = "readings/1";
    options.engines = {hf::selective::engine(
        {.rebuild = [](hf::pool& of) { rebuild(of.root<readings>()); }})};
    auto pool = hf::pool::open("readings.hf", options);
    // [/open]
    if (!pool) return std::fprintf(stderr, "%s\n", pool.error().what().c_str()), 1;
    auto* all = pool->root<readings>();
    for (unsigned long value : {10UL, 20UL})
        if (!add(all, value)) return std::puts("full"), 1;
    std::printf("%lu readings, total %lu\n", all->count, all->total);
}
