// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A cache of slow answers that outlives its process; no compiler plugin. Kill a run halfway, and
// the next one computes only what is missing:
//
//   $ HOLDFAST_CRASH_AT=third example_cache
//   computes /news
//   computes /tea
//   Killed
//   $ example_cache
//   computes /weather
//   3 pages, 480 of 1000000 bytes; 2 found, 1 computed
// [program]
#include <holdfast/holdfast.hpp>

#include <chrono>
#include <cstdio>
#include <string>

using namespace std::chrono_literals;

std::string slow_answer(const std::string& page) {
    if (page == "/weather") hf::crash_point("third");
    std::printf("computes %s\n", page.c_str());
    std::fflush(stdout);
    return "the long text of " + page + std::string(90, '.');
}

int main(int argc, char** argv) {
    auto pool = hf::pool::open(argc > 1 ? argv[1] : "cache.hf",
                               {.layout = "pages/1", .engines = {hf::mod::engine()}});
    if (!pool) return std::puts(pool.error().what().c_str()), 1;
    auto pages = hf::mod::cache::open(*pool, "pages", {.max_bytes = 1'000'000, .ttl = 24h});
    if (!pages) return std::puts(pages.error().what().c_str()), 1;

    for (const std::string page : {"/news", "/tea", "/weather"}) {
        const auto text = pages->get_or_compute(page, [&] { return slow_answer(page); });
        if (!text) return std::puts(text.error().what().c_str()), 1;
    }
    const auto counts = pages->statistics();
    std::printf("%zu pages, %ju of %ju bytes; %ju found, %ju computed\n", pages->size(),
                std::uintmax_t{pages->bytes()}, std::uintmax_t{pages->max_bytes()},
                std::uintmax_t{counts.hits}, std::uintmax_t{counts.misses});
}
// [/program]
