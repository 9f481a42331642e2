// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Regression: the push that the README shows, and that everybody copies, in a pool that runs full.
// It once put null in the list's head there, and every number was gone.
#define main numbers_main
#include "../../../examples/numbers.cpp"
#undef main

#include "support.hpp"

namespace language_test {
namespace {

using readme = pools;

TEST_F(readme, AListThatFillsItsPoolKeepsEveryNumber) {
    hf::pool pool = open(first, 64 << 10);
    list* l = pool.root<list>();
    unsigned long pushed = 0;
    while (pushed < 3000 && push(l, pushed + 1)) ++pushed;
    EXPECT_LT(pushed, 3000U);
    EXPECT_FALSE(push(l, pushed + 1)) << "full once, full again";
    unsigned long nodes = 0, sum = 0;
    for (const node* n = l->head; n != nullptr; n = n->next, ++nodes) sum += n->value;
    EXPECT_EQ(nodes, pushed);
    EXPECT_EQ(l->count, pushed);
    EXPECT_EQ(l->sum, sum);
}

} // namespace
} // namespace language_test
