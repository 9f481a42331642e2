// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// counted FILE: counts to 1000 in a durable map, and kills itself there. counted FILE again: says
// what is there.
#include <holdfast/mod/map.hpp>

#include <csignal>
#include <cstdio>

int main(int argc, char** argv) {
    auto pool = hf::pool::open(argv[1], {.layout = "counted/1", .engines = {hf::mod::engine()}});
    if (!pool) return std::fprintf(stderr, "%s\n", pool.error().what().c_str()), 1;
    auto counts = *hf::mod::map<int, int>::open(*pool, {"counts"});
    if (argc > 2) {
        std::printf("%zu counted\n", counts.size());
        return counts.size() == 1000 ? 0 : 1;
    }
    for (int i = 0; i < 1000; ++i)
        if (!counts.insert(i, i)) return 1;
    std::raise(SIGKILL);
}
