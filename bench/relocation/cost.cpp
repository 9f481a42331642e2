// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// relocation_cost_plain|relocation_cost_relocatable <pool> canonical|elsewhere <keys>
//
// What relocatable code costs (docs/internals/relocation.md): fills and reads a hash map, a
// red-black tree, a skip list and a B+tree in a new pool, walks a list, and prints the processor
// time of each in nanoseconds per operation. cost.py runs the two builds in turns.
#include <structures/bptree.hpp>
#include <structures/hash_map.hpp>
#include <structures/rb_tree.hpp>
#include <structures/skip_list.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/clobber.hpp>
#include <holdfast/pool.hpp>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>
#include <string>
#include <vector>

namespace {
inline namespace HF_STRUCTURES_ENGINE { // the two builds share no inline function

using value = std::array<std::uint64_t, 32>;
struct item {
    item* next;
    std::uint64_t number;
};
struct content {
    hf::structures::hash_map<std::uint64_t, value> hash;
    hf::structures::rb_tree<std::uint64_t, value> tree;
    hf::structures::skip_list<std::uint64_t, value> skips;
    hf::structures::bptree<std::uint64_t, value> leaves;
    item* first;
};

double processor_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return 1e9 * static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec);
}

template <class Work> void measure(const std::string& name, std::size_t operations, Work work) {
    const double begun = processor_ns();
    work();
    std::printf("%s %.2f\n", name.c_str(),
                (processor_ns() - begun) / static_cast<double>(operations));
}

[[noreturn]] void give_up(const char* why) {
    std::fprintf(stderr, "relocation_cost: %s\n", why);
    std::exit(1);
}

template <class Map>
void measure_map(const std::string& name, Map& map, const std::vector<std::uint64_t>& keys) {
    value v{};
    measure(name + ".insert", keys.size(), [&] {
        for (const std::uint64_t key : keys) {
            v[0] = key;
            if (!map.insert(key, v)) give_up("the pool is full");
        }
    });
    measure(name + ".find", 4 * keys.size(), [&] {
        for (int round = 0; round < 4; ++round)
            for (const std::uint64_t key : keys)
                if (!map.find(key, &v) || v[0] != key) give_up("a key is lost");
    });
}

HF_TXFUNC void push(content* in, std::uint64_t number) noexcept {
    auto* fresh = static_cast<item*>(hf_alloc(sizeof(item)));
    fresh->next = in->first;
    fresh->number = number;
    in->first = fresh;
}

/// The worst case: nothing but pointers, followed one after the other in the cache.
[[gnu::noinline]] std::uint64_t walk(const content* in) {
    std::uint64_t sum = 0;
    for (const item* each = in->first; each != nullptr; each = each->next) sum += each->number;
    return sum;
}

hf::pool open(const char* path, hf::relocation where) {
    hf::open_options options;
    options.layout = "relocation_cost/1";
    options.create_bytes = 512 << 20;
    options.max_bytes = 2ULL << 30;
    options.mode = hf::mode::pmem;
    options.engines = {hf::clobber::engine()};
    options.expert.seal = false;
    options.expert.relocate = where;
    auto opened = hf::pool::open(path, options);
    if (!opened) give_up(opened.error().what().c_str());
    return std::move(*opened);
}

void run(const char* path, bool elsewhere, std::size_t count) {
    std::remove(path);
    open(path, hf::relocation::never).root<content>(); // made at its canonical address
    hf::pool pool = open(path, elsewhere ? hf::relocation::always : hf::relocation::never);
    if (pool.relocated() != elsewhere) give_up("the pool is not where it should be");
    auto* in = pool.root<content>();
    std::mt19937_64 random{20261121};
    std::vector<std::uint64_t> keys(count);
    for (std::uint64_t& key : keys) key = random();
    measure_map("hash_map", in->hash, keys);
    measure_map("rb_tree", in->tree, keys);
    measure_map("skip_list", in->skips, keys);
    measure_map("bptree", in->leaves, keys);
    constexpr std::uint64_t links = 1000, rounds = 20'000;
    for (std::uint64_t i = 0; i < links; ++i) push(in, i);
    std::uint64_t sum = 0;
    measure("list.walk", links * rounds, [&] {
        for (std::uint64_t round = 0; round < rounds; ++round) {
            sum += walk(in);
            asm volatile("" : : : "memory"); // each round is walked
        }
    });
    if (sum != rounds * links * (links - 1) / 2) give_up("a link is lost");
}

} // namespace HF_STRUCTURES_ENGINE
} // namespace

int main(int count, char** arguments) {
    if (count != 4) give_up("expected: pool, canonical or elsewhere, keys");
    run(arguments[1], std::strcmp(arguments[2], "elsewhere") == 0,
        std::strtoull(arguments[3], nullptr, 10));
    std::remove(arguments[1]);
}
