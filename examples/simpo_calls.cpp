// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The calling interface that holdfast classify makes of a class, in use. docs/guide/simpo.md is cut
// from it.
#include <cstdio>
#include <string>
// [include]
#include "histogram.hpp"
#include "histogram_calls.hpp" // made by holdfast classify histogram.hpp --generate histogram_calls.hpp
// [/include]

namespace {

int fail(const hf::status& why) { return std::puts(why.what().c_str()), 1; }

} // namespace

int main(int argc, char** argv) {
    auto pool = hf::pool::open(argc > 1 ? argv[1] : "readings.hf",
                               {.layout = "readings/1", .engines = {hf::simpo::engine()}});
    if (!pool) return fail(pool.error());
    // [use]
    auto all = histogram_calls::find(*pool, "all");
    if (!all && all.error().code() == hf::errc::not_found)
        all = histogram_calls::create(*pool, "all");
    if (!all) return fail(all.error());
    for (int i = 0; i < 1000; ++i) all->count(i % 250); // deferrable: logged, and no more
    const auto readings = all->readings();              // instant: commits the thousand
    // [/use]
    std::printf("%llu readings\n", static_cast<unsigned long long>(readings));
    all->count(12.5);
    all->sync();
    if (readings >= 3000) std::printf("cleared %llu\n", static_cast<unsigned long long>(all->clear()));
}
