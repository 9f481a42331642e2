// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A counter that survives a power cut, on any disk. Every run adds 64, and waits for the disk once:
//
//   $ example_power
//   64 counted
//   $ example_power
//   128 counted
#include <holdfast/engines.hpp>
#include <holdfast/pool.hpp>
#include <holdfast/txfunc.hpp>

#include <cstdio>

struct counter {
    unsigned long counted, sum;
};

HF_TXFUNC void count(counter* c, unsigned long n) noexcept {
    c->counted += 1;
    c->sum += n;
}

int main(int argc, char** argv) {
    auto pool = hf::pool::open(argc > 1 ? argv[1] : "power.hf",
                               {.layout = "power/1", .mode = hf::mode::power});
    if (!pool) return std::puts(pool.error().what().c_str()), 1;
    auto* const root = pool->root<counter>();
    if (root == nullptr) return 1;
    // [together]
    {
        const hf::durable_together until_the_end{*pool};
        for (unsigned long n = 0; n < 64; ++n) count(root, n);
    } // waits for the disk, once; from here on all 64 survive a power cut
    // [/together]
    std::printf("%lu counted\n", root->counted);
    return 0;
}
