// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "indirect.hpp"

#include <cstdio>
#include <stdexcept>

namespace language_test {
namespace {

long adds(cell* c, long by) {
    c->count += 1;
    return c->value += by;
}
long says(cell* c, long by) {
    std::printf("%ld\n", by);
    return adds(c, by);
}
long throws_late(cell* c, long by) {
    adds(c, by);
    throw std::runtime_error("late");
}

class counting final : public visitor {
    void visit(cell* c) override { c->count += c->value; }
};

} // namespace

const change add_to = adds, prints = says, throws = throws_late;

visitor& counter() noexcept {
    static counting one;
    return one;
}

} // namespace language_test
