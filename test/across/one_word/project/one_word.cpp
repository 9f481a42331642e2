// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One program text for every engine of the compiler: transfers of a bank, a hash map, a B+tree.
//
//   one_word FILE run FROM UPTO   makes operations FROM … UPTO-1, and writes a byte to standard output behind each
//   one_word FILE state FROM UPTO prints the number of operations, FROM … UPTO, after which a pool
//                                 has this pool's state, and a sum of its contents; "0 none" if no
//                                 such number exists
//
// An operation's number decides what it is: a transfer, an insertion or a removal. A model in
// volatile memory gives the states.
#include <structures/bptree.hpp>
#include <structures/hash_map.hpp>

#include <holdfast/engines.hpp>

#include <examples/bank.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <unistd.h>
#include <vector>

namespace {

constexpr std::uint64_t accounts = 5, keys = 40;
using hash_map = hf::structures::hash_map<std::uint64_t, std::uint64_t, 4>;
using tree = hf::structures::bptree<std::uint64_t, std::uint64_t>;

struct world {
    bank::branch bank;
    hash_map map;
    tree tree;
};

struct model {
    std::vector<std::int64_t> cents = std::vector<std::int64_t>(accounts, 100);
    std::map<std::uint64_t, std::uint64_t> map, tree;
    bool operator==(const model&) const = default;
};

struct step {
    std::uint64_t kind, key, value;
    explicit step(std::uint64_t number)
        : kind(number % 3), key((number * 0x9e3779b97f4a7c15ULL >> 40) % keys),
          value(1 + number % 90) {}
    bool erases() const { return value % 3 == 0; }
    std::uint64_t from() const { return key % accounts; }
    std::uint64_t to() const { return (key + 1 + value % (accounts - 1)) % accounts; }
};

template <class Map> void change(Map& map, const step& s) {
    if (s.erases()) map.erase(s.key);
    else map.insert(s.key, s.value);
}
void take(world& w, const step& s) {
    if (s.kind == 0) bank::transfer(&w.bank, s.from(), s.to(), static_cast<std::int64_t>(s.value));
    else if (s.kind == 1) change(w.map, s);
    else change(w.tree, s);
}
void take(model& m, const step& s) {
    if (s.kind == 0) {
        m.cents[s.from()] -= static_cast<std::int64_t>(s.value);
        m.cents[s.to()] += static_cast<std::int64_t>(s.value);
        return;
    }
    auto& in = s.kind == 1 ? m.map : m.tree;
    if (s.erases()) in.erase(s.key);
    else in[s.key] = s.value;
}

model seen(const world& w) {
    model m;
    for (std::uint64_t i = 0; i < w.bank.count; ++i) m.cents[i] = w.bank.accounts[i].cents;
    w.map.for_each([&](std::uint64_t key, std::uint64_t value) { m.map[key] = value; });
    w.tree.for_each([&](std::uint64_t key, std::uint64_t value) { m.tree[key] = value; });
    return m;
}

std::uint64_t sum_of(const model& m) {
    std::uint64_t sum = 0;
    const auto add = [&](std::uint64_t word) { sum = (sum ^ word) * 0x100000001b3ULL + 1; };
    for (const std::int64_t each : m.cents) add(static_cast<std::uint64_t>(each));
    for (const auto* map : {&m.map, &m.tree})
        for (const auto& [key, value] : *map) add(key), add(value);
    return sum;
}

void print_state(const world& w, std::uint64_t from, std::uint64_t upto) {
    const model now = seen(w);
    if (!w.map.check() || !w.tree.check()) {
        std::printf("0 broken\n");
        return;
    }
    model m;
    for (std::uint64_t i = 0;; take(m, step(i++))) {
        if (i >= from && m == now) {
            std::printf("%llu %016llx\n", static_cast<unsigned long long>(i),
                        static_cast<unsigned long long>(sum_of(m)));
            return;
        }
        if (i == upto) break;
    }
    std::printf("0 none\n");
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 5) return 2;
    auto pool = hf::pool::open(
        argv[1],
        {.layout = "one_word/1", .create_bytes = 1 << 20, .engines = hf::engines_of_build()});
    if (!pool) {
        std::fprintf(stderr, "%s\n", pool.error().what().c_str());
        return 1;
    }
    auto& w = *pool->root<world>();
    if (w.bank.count == 0 && !bank::create(&w.bank, accounts, 100)) return 1;
    const std::uint64_t number = std::strtoull(argv[3], nullptr, 10);
    const std::uint64_t upto = std::strtoull(argv[4], nullptr, 10);
    if (std::strcmp(argv[2], "state") == 0) {
        print_state(w, number, upto);
        return 0;
    }
    for (std::uint64_t i = number; i < upto; ++i) {
        take(w, step(i));
        if (::write(1, ".", 1) != 1) return 1;
    }
    return 0;
}
