// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A bank in a file:
//
//   $ example_bank create bank.hf 10 1000
//   $ HOLDFAST_CRASH_AT=between-debit-and-credit example_bank transfer bank.hf 0 1 250
//   Killed
//   $ example_bank total bank.hf
//   10 accounts, 10000 cents; 1 transfer was completed
//
// Built twice from this source: example_bank (engine clobber, which completes the transfer) and
// example_bank_undo (engine undo, which rolls it back).
#include "bank.hpp"

#include <holdfast/engines.hpp>

#include <holdfast/pool.hpp>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

int usage() {
    std::fputs("usage: example_bank create FILE ACCOUNTS CENTS\n"
               "       example_bank transfer FILE FROM TO CENTS\n"
               "       example_bank total FILE\n",
               stderr);
    return 2;
}

int failed(const char* why) {
    std::fprintf(stderr, "example_bank: %s\n", why);
    return 1;
}

void print(const bank::branch* b, const hf::recovery_report& recovered) {
    std::printf("%" PRIu64 " accounts, %" PRId64 " cents", b->count, bank::total(b));
    if (const auto completed = recovered.re_executed + recovered.replayed; completed != 0)
        std::printf("; %u transfer was completed", completed);
    if (recovered.rolled_back != 0)
        std::printf("; %u transfer was rolled back", recovered.rolled_back);
    if (recovered.discarded != 0) std::printf("; %u transfer had not begun", recovered.discarded);
    std::puts("");
}

} // namespace

int main(int argc, char** argv) {
    const std::string_view verb = argc > 2 ? argv[1] : "";
    const bool creating = verb == "create" && argc == 5;
    const bool moving = verb == "transfer" && argc == 6;
    if (!creating && !moving && !(verb == "total" && argc == 3)) return usage();

    hf::open_options options;
    options.layout = bank::layout;
    options.creation = creating ? hf::create::always_new : hf::create::never;
    auto pool = hf::pool::open(argv[2], options);
    if (!pool) return failed(pool.error().what().c_str());
    auto* b = pool->root<bank::branch>();
    if (b == nullptr) return failed("the pool is full");

    if (creating && !bank::create(b, std::strtoull(argv[3], nullptr, 10), std::atoll(argv[4])))
        return failed("the pool is full");
    if (moving && !bank::transfer(b, std::strtoull(argv[3], nullptr, 10),
                                  std::strtoull(argv[4], nullptr, 10), std::atoll(argv[5])))
        return failed("there is no such pair of accounts");
    print(b, pool->recovered());
}
