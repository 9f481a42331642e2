// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A section for gdb_test.py, which stops inside at the crash point: looked_into POOL MODE.
#include <holdfast/engines.hpp>
#include <holdfast/pool.hpp>
#include <holdfast/txfunc.hpp>

#include <cstdio>
#include <cstring>
#include <string_view>

namespace {

struct account {
    long owner;
    long balance;
    char name[40];
    long wide;
};

HF_TXFUNC void create(account* a) noexcept {
    a->owner = 7;
    a->balance = 100;
    hf::crash_point("created");
}

HF_TXFUNC long withdraw(account* a, long amount) noexcept {
    const long local = amount;
    a->balance -= amount;
    std::memcpy(a->name, "Ada", 4);
    a->wide = -5;
    hf::crash_point("withdrawn");
    a->wide += 1;
    return local + a->balance;
}

} // namespace

int main(int, char** argv) {
    const hf::open_options options{.layout = "looked into/1",
                                   .mode = std::string_view(argv[2]) == "pmem" ? hf::mode::pmem
                                                                               : hf::mode::process,
                                   .engines = hf::engines_of_build()};
    auto pool = hf::pool::open(argv[1], options);
    if (!pool) return std::fprintf(stderr, "%s\n", pool.error().what().c_str()), 1;
    auto* const a = pool->root<account>();
    create(a);
    if (withdraw(a, 30) != 100) return 1;
    std::printf("balance %ld\n", a->balance);
    return a->wide == -4 ? 0 : 1;
}
