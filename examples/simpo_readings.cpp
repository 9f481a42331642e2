// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Readings of sensors, counted by many threads and looked at now and then. docs/guide/simpo.md is
// cut from it.
#include "histogram.hpp"

#include <cstdio>
#include <string>
#include <thread>
#include <vector>
// [include]
#include <holdfast/simpo.hpp>
// [/include]

namespace {

int fail(const hf::status& why) { return std::puts(why.what().c_str()), 1; }

} // namespace

int main(int argc, char** argv) {
    // [open]
    auto pool = hf::pool::open(argc > 1 ? argv[1] : "readings.hf",
                               {.layout = "readings/1", .engines = {hf::simpo::engine()}});
    if (!pool) return fail(pool.error());
    auto all = hf::simpo::object<histogram>::find(*pool, "all");
    if (!all && all.error().code() == hf::errc::not_found)
        all = hf::simpo::object<histogram>::create(*pool, "all");
    if (!all) return fail(all.error());
    // [/open]

    // [use]
    std::vector<std::thread> sensors;
    for (int s = 0; s < 4; ++s)
        sensors.emplace_back([all = *all, s]() mutable {
            for (int i = 0; i < 1000; ++i)
                all.defer<&histogram::count>(s * 50 + i % 50); // logged, and no more
        });
    for (auto& each : sensors) each.join();
    const auto readings = all->call<&histogram::readings>(); // all of them survive from here on
    // [/use]
    std::printf("%llu readings\n", static_cast<unsigned long long>(readings));

    // [reset]
    if (readings >= 12'000) {
        const auto had = all->call<&histogram::clear>();
        std::printf("cleared %llu\n", static_cast<unsigned long long>(had));
    }
    // [/reset]
    // [sync]
    all->defer<&histogram::count>(12.5);
    all->sync();       // survives
    all->checkpoint(); // and the next open has nothing to call again
    // [/sync]
}
