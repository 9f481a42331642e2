// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For failing_disk_test.py: opens a pool in mode power. With a number, stores it to all of the root
// by plain stores. Prints what the root held, and how much of it. Closes the pool on request.
//
// usage: stored_and_closed POOL [NUMBER]
#include <holdfast/pool.hpp>

#include <array>
#include <cstdio>
#include <cstdlib>

namespace {
struct numbers {
    std::array<unsigned long, 64 << 10> all;
};
} // namespace

int main(int argc, char** argv) {
    hf::open_options options;
    options.layout = "numbers/1";
    options.mode = hf::mode::power;
    options.create_bytes = 8 << 20;
    options.root_bytes = sizeof(numbers);
    auto pool = hf::pool::open(argv[1], options);
    if (!pool) return std::puts(pool.error().what().c_str()), 1;
    auto* const held = pool->root<numbers>();
    if (argc > 2) held->all.fill(std::strtoul(argv[2], nullptr, 10));
    std::size_t same = 0;
    for (const unsigned long each : held->all) same += each == held->all[0] ? 1 : 0;
    std::printf("%lu %zu\n", held->all[0], same);
    std::fflush(stdout);
    (void)std::getchar();
}
