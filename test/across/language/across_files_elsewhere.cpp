// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "across_files.hpp"

#include <holdfast/alloc.hpp>

#include <stdexcept>

namespace language_test {

void take(purse* from, long coins, bool dies) {
    hf_free(from->newest);
    from->newest = hf::make<long>(coins);
    from->coins -= coins;
    if (dies) hf::crash_point("taken");
    from->changes += 1;
}

long worth(const purse* of) { return of->coins * 100 + of->changes; }

void split(long coins, long* first, long* second) noexcept {
    *first = coins / 2;
    *second = coins - *first;
}

long count_down(purse* of, long from) {
    of->changes += 1;
    return from == 0 ? of->changes : count_down_here(of, from - 1);
}

#if defined(TAKES_BACK)
void refuse(purse* of) {
    of->coins = -1;
    throw std::runtime_error("refused");
}
#endif

template struct keeper<long>;

} // namespace language_test
