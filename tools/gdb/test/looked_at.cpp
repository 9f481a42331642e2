// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Containers for gdb_test.py, which stops in stop_here() and prints them. Every shape of node is
// there: tries of several levels, leaves of strings, relaxed vectors, queues of several levels
// whose oldest have gone.
#include <holdfast/mod/cache.hpp>
#include <holdfast/mod/map.hpp>
#include <holdfast/mod/ordered_map.hpp>
#include <holdfast/mod/queue.hpp>
#include <holdfast/mod/set.hpp>
#include <holdfast/mod/stack.hpp>
#include <holdfast/mod/vector.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

struct point {
    int x;
    int y;
};

template <class Container> Container open(hf::pool& pool, hf::mod::place at) {
    auto opened = Container::open(pool, at);
    if (!opened) std::fprintf(stderr, "%s\n", opened.error().what().c_str()), std::exit(1);
    return *opened;
}

void must(const hf::status& done) {
    if (!done.ok()) std::fprintf(stderr, "%s\n", done.what().c_str()), std::exit(1);
}
template <class T> void must(const hf::result<T>& done) {
    if (!done) must(done.error());
}

[[gnu::noinline]] void stop_here() { asm volatile("" ::: "memory"); }

} // namespace

int main(int, char** argv) {
    const hf::open_options options{.layout = "looked/1", .engines = {hf::mod::engine()}};
    (void)hf::pool::open(argv[1],
                         options); // from the second opening on the kernel has the pool's name
    auto pool = hf::pool::open(argv[1], options);
    if (!pool) return std::fprintf(stderr, "%s\n", pool.error().what().c_str()), 1;
    auto ages = open<hf::mod::map<std::string, int>>(*pool, {"ages"});
    auto names = open<hf::mod::map<std::string, std::string>>(*pool, {"names"});
    auto squares = open<hf::mod::map<long, long>>(*pool, {"squares"});
    auto seen = open<hf::mod::set<long>>(*pool, {"seen"});
    auto order = open<hf::mod::ordered_map<long, point>>(*pool, {"order"});
    auto row = open<hf::mod::vector<long>>(*pool, {"row"});
    auto joined = open<hf::mod::vector<std::string>>(*pool, {"joined"});
    auto pile = open<hf::mod::stack<int>>(*pool, {"pile"});
    auto line = open<hf::mod::queue<int>>(*pool, {"line"});
    auto left = open<hf::mod::map<int, int>>(*pool, {"left", "both", {"left", "right"}});
    auto empty = open<hf::mod::vector<int>>(*pool, {"empty"});

    must(ages.insert("Ada", 36));
    must(ages.insert("Bob", 41));
    must(names.insert("de", "Deutsch"));
    must(left.insert(7, 49));
    for (long i = 0; i < 3000; ++i) {
        must(squares.insert(i, i * i));
        must(seen.insert(i));
        must(order.insert(i * 7919 % 3000, {static_cast<int>(i), -1}));
        must(row.push_back(i));
        must(pile.push(static_cast<int>(i)));
        must(line.push(static_cast<int>(i)));
    }
    for (int i = 0; i < 1234; ++i) must(line.pop());
    for (int i = 0; i < 40; ++i) must(joined.push_back(std::to_string(i)));
    must(joined.insert(7, "between"));
    must(row.erase(5));
    const hf::result<long> good = 3L;
    const hf::result<long> bad = hf::status(hf::errc::pool_full, "no room");
    // Clang's debug information has the name of this class alone: its constructors are elsewhere.
    const auto pages = hf::mod::cache::open(*pool, "pages", {.max_bytes = 1000});
    const long* const element = &row[0];
    stop_here();
    return good && !bad && pages && element != nullptr && empty.size() == 0 ? 0 : 1;
}
