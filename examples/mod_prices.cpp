// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prices in two durable structures that change together; no compiler plugin. Every run is a day.
// Kill one halfway, and the next run finds both structures as they were the day before:
//
//   $ example_mod_prices
//   day 1: tea 3.25, 1 prices known
//   $ HOLDFAST_CRASH_AT=half-written example_mod_prices
//   Killed
//   $ example_mod_prices
//   day 2: tea 3.50, 2 prices known
// [program]
#include <holdfast/holdfast.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <tuple>

int main(int argc, char** argv) {
    auto pool = hf::pool::open(argc > 1 ? argv[1] : "prices.hf",
                               {.layout = "prices/1", .engines = {hf::mod::engine()}});
    if (!pool) return std::puts(pool.error().what().c_str()), 1;
    auto now = hf::mod::map<std::string, double>::open(*pool, {"prices now"});
    auto tea = hf::mod::ordered_map<std::uint64_t, double>::open(*pool, {"tea by day"});
    if (!now || !tea) return std::puts((now ? tea.error() : now.error()).what().c_str()), 1;

    const std::uint64_t today = tea->empty() ? 1 : tea->last().first + 1;
    const double price = 3 + 0.25 * static_cast<double>(today);
    const auto done = hf::mod::update(std::tie(*now, *tea), [&](auto& now, auto& tea) {
        now.insert_or_assign("tea", price);
        hf::crash_point("half-written");        // all of this happens, or nothing
        tea.insert(today, price);
    });
    if (!done.ok()) return std::puts(done.what().c_str()), 1;
    std::printf("day %u: tea %.2f, %zu prices known\n", static_cast<unsigned>(today), *now->get("tea"), tea->size());
}
// [/program]
