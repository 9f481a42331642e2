// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program whose pool `holdfast print` looks into: printed POOL [wait|other]. It may ask pools for
// two types of roots; with 'wait' it keeps the pool open until its input ends.
#include <holdfast/containers.hpp>
#include <holdfast/holdfast.hpp>
#include <holdfast/root.hpp>

#include <cstdio>
#include <cstring>

struct node {
    node* next;
    long value;
};
struct shop {
    node* newest;
    hf::string name;
    hf::map<long, long> amounts;
};
struct other {
    long numbers[3];
};

HF_TXFUNC void fill(shop* s) {
    for (long i = 1; i <= 3; ++i) {
        node* n = hf::make<node>(s->newest, i * 11);
        if (n == nullptr) return;
        s->newest = n;
        s->amounts[i] = i * i;
    }
    s->name = "a name that is too long for the object itself";
}

int main(int count, char** arguments) {
    auto pool = hf::pool::open(arguments[1], {.layout = "printed/1", .create_bytes = 1 << 20});
    if (!pool) {
        std::fprintf(stderr, "%s\n", pool.error().what().c_str());
        return 1;
    }
    const bool waits = count > 2 && std::strcmp(arguments[2], "wait") == 0;
    if (count > 2 && !waits) return pool->find_root<other>() ? 0 : 1;
    auto* const all = hf::root<shop>(*pool);
    if (all == nullptr) return 1;
    if (all->newest == nullptr) fill(all);
    std::puts("ready");
    std::fflush(stdout);
    while (waits && std::getchar() != EOF) {}
}
