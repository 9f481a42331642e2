// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// relocation_ordinary <pool> <keys> <links> <mode>: opens the pool at its canonical address, with
// code built without relocation, looks for everything, adds more and looks again.
#include "content.hpp"

#include <cstdio>
#include <cstdlib>

int main(int count, char** arguments) {
    using namespace relocation_test;
    if (count != 5) return 2;
    const std::uint64_t keys = std::strtoull(arguments[2], nullptr, 10);
    const std::uint64_t links = std::strtoull(arguments[3], nullptr, 10);
    const auto mode = static_cast<hf::mode>(std::atoi(arguments[4]));
    auto opened = hf::pool::open(arguments[1], options_for(mode));
    if (!opened) {
        std::fprintf(stderr, "%s\n", opened.error().what().c_str());
        return 10 + static_cast<int>(opened.error().code());
    }
    auto* all = opened->root<content>();
    if (opened->relocated() || !holds_all(all, keys, links)) return 1;
    const std::uint64_t key = key_of(keys);
    const value more = value_of(keys);
    push(all, links);
    push_at(all, {all->first, links + 1, 0});
    const bool added = all->hash.insert(key, more) && all->red_black.insert(key, more) &&
                       all->avl.insert(key, more) && all->skips.insert(key, more) &&
                       all->leaves.insert(key, more);
    return added && holds_all(all, keys + 1, links + 2) ? 0 : 1;
}
