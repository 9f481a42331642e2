// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The calls of an object, kept, and the object as it was at one of them. docs/guide/simpo.md is cut
// from it.
#include "histogram.hpp"

#include <cstdio>
#include <string>
// [include]
#include <holdfast/simpo/history.hpp>
// [/include]
#include <holdfast/txfunc.hpp>

namespace {

int fail(const hf::status& why) { return std::puts(why.what().c_str()), 1; }

} // namespace

int main(int argc, char** argv) {
    auto pool = hf::pool::open(argc > 1 ? argv[1] : "past.hf",
                               {.layout = "readings/1", .engines = {hf::simpo::engine()}});
    if (!pool) return fail(pool.error());
    // [keep]
    auto all = hf::simpo::object<histogram>::find(*pool, "all");
    if (!all && all.error().code() == hf::errc::not_found)
        all = hf::simpo::object<histogram>::create(*pool, "all");
    if (!all) return fail(all.error());
    if (auto s = hf::simpo::keep_history(*pool, "all"); !s.ok()) return fail(s);
    for (int i = 0; i < 2000; ++i) all->defer<&histogram::count>(i % 200);
    all->call<&histogram::clear>(); // by mistake
    // [/keep]
    hf::crash_point("cleared");
    // [past]
    const auto calls = hf::simpo::history(*pool, "all");
    if (!calls) return fail(calls.error());
    const auto& last = calls->back();
    std::printf("call %llu: %s\n", static_cast<unsigned long long>(last.number),
                last.function.c_str());
    const auto then = hf::simpo::past<histogram>::open(*pool, "all", last.number - 1);
    if (!then) return fail(then.error());
    std::printf("before it: %llu readings\n",
                static_cast<unsigned long long>((*then)->readings()));
    // [/past]
}
