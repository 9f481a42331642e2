// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Looks at the readings that another process counts (simpo_readings.cpp). docs/guide/simpo.md is
// cut from it.
#include "histogram.hpp"

#include <cstdio>
// [include]
#include <holdfast/simpo/view.hpp>
// [/include]

namespace {

int fail(const hf::status& why) { return std::puts(why.what().c_str()), 1; }

} // namespace

int main(int argc, char** argv) {
    // [view]
    auto pool = hf::pool::open(argc > 1 ? argv[1] : "readings.hf",
                               {.layout = "readings/1", .engines = {hf::simpo::engine()},
                                .read_only = true, .shared = true});
    if (!pool) return fail(pool.error());
    using histogram_view = hf::simpo::view<histogram>;
    auto all = histogram_view::open<&histogram::count, &histogram::clear>(*pool, "all");
    if (!all) return fail(all.error()); // not_found: nobody has made it yet
    std::printf("%llu readings\n", static_cast<unsigned long long>((*all)->readings()));
    if (auto s = all->refresh(); !s.ok()) return fail(s); // what was committed meanwhile
    // [/view]
    std::printf("%llu readings\n", static_cast<unsigned long long>((*all)->readings()));
}
