// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <trace/trace.hpp>

#include <gtest/gtest.h>

namespace hf::trace {
namespace {

int first_heard, second_heard;
void first(const event& what, const void*, std::size_t bytes) {
    if (what == flush) first_heard += static_cast<int>(bytes);
}
void second(const event&, const void*, std::size_t) { ++second_heard; }

TEST(Trace, EveryListenerHearsUntilItLeaves) {
    constexpr event of_somebody_else{"other"};
    EXPECT_FALSE(heard());
    announce(flush, nullptr, 64);
    listen(first);
    listen(second);
    announce(flush, nullptr, 64);
    announce(of_somebody_else, nullptr, 8);
    leave(first);
    EXPECT_TRUE(heard());
    announce(flush, nullptr, 64);
    leave(second);
    EXPECT_FALSE(heard());
    EXPECT_EQ(first_heard, 64);
    EXPECT_EQ(second_heard, 3);
}

} // namespace
} // namespace hf::trace
