// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The account transfer of the JUSTDO paper (Fig. 6).
//
// usage: example_justdo_transfer FILE FROM TO AMOUNT HOLDFAST_CRASH_AT=between-debit-and-credit
// kills it halfway; the next run finds the transfer made.
#include "justdo_transfer.hpp"

#include <holdfast/justdo.hpp>
#include <holdfast/pool.hpp>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
    if (argc != 5) {
        std::fprintf(stderr, "usage: %s FILE FROM TO AMOUNT\n", argv[0]);
        return 2;
    }
    // [main]
    using namespace justdo_bank;
    // Recovers, if need be: sections that were cut short have their locks again when open()
    // returns, and go on.
    auto pool = hf::pool::open(argv[1], {.layout = "justdo_bank/1",
                                         .create_bytes = 1 << 20,
                                         .engines = {hf::justdo::engine()}});
    if (!pool) {
        std::fprintf(stderr, "%s\n", pool.error().what().c_str());
        return 1;
    }
    auto* const root = pool->root<bank>();

    auto jd_root = hf::justdo::root::in(*pool);
    auto jd = jd_root ? jd_root->new_object() : jd_root.error();
    if (!jd) {
        std::fprintf(stderr, "%s\n", jd.error().what().c_str());
        return 1;
    }
    const transfer::returns made = jd->call<transfer>({.in = root,
                                                       .from = std::strtoull(argv[2], nullptr, 10) % 8,
                                                       .to = std::strtoull(argv[3], nullptr, 10) % 8,
                                                       .amount = std::atoll(argv[4])});
    hf::justdo::wait(*pool); // total() takes no locks
    // [/main]
    std::printf("%s:", made.success ? "made" : "not made");
    for (const account& a : root->accounts) std::printf(" %lld", static_cast<long long>(a.balance));
    std::printf(", total %lld\n", static_cast<long long>(total(root)));
    return 0;
}
