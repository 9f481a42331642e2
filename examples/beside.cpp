// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A pool and its backup, open in one process. The backup has the address of its original, so it is
// mapped elsewhere: this program is built relocatable.
//
//   $ example_beside
//   now 1250 in 2 entries, then 1000 in 1
//   now 1250, then 960
#include <holdfast/copy.hpp>
#include <holdfast/holdfast.hpp>

#include <cstdio>

struct entry {
    entry* before;
    long cents;
};
struct account {
    entry* last;
    long count;
};

// [book]
HF_TXFUNC void book(account* in, long cents) {
    auto* fresh = hf::make<entry>();
    if (fresh == nullptr) return hf::abort_section();
    fresh->before = in->last;
    fresh->cents = cents;
    in->last = fresh;
    in->count += 1;
}
// [/book]

static long sum_of(const account* of) {
    long sum = 0;
    for (const entry* each = of->last; each != nullptr; each = each->before) sum += each->cents;
    return sum;
}

// [main]
int main() {
    hf::open_options options{.layout = "account/1", .create_bytes = 8 << 20};
    auto pool = hf::pool::open("account.hf", options);
    if (!pool) return std::puts(pool.error().what().c_str()), 1;
    account* now = pool->root<account>();
    book(now, 1000);
    if (auto copied = pool->copy_to("yesterday.hf"); !copied)
        return std::puts(copied.error().what().c_str()), 1;
    book(now, 250);

    options.expert.relocate = hf::relocation::if_taken; // the original is at its address
    auto backup = hf::pool::open("yesterday.hf", options);
    if (!backup) return std::puts(backup.error().what().c_str()), 1;
    account* then = backup->root<account>();
    std::printf("now %ld in %ld entries, then %ld in %ld\n", sum_of(now), now->count, sum_of(then),
                then->count);
    book(then, -40); // a section of the backup: the original does not see it
    std::printf("now %ld, then %ld\n", sum_of(now), sum_of(then));
}
// [/main]
