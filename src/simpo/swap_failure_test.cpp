// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a swap_to that failed leaves nothing behind: it may be called again, while the pool is
// open. Method: each of its allocations fails once, those among them behind the moment when the
// folder is the pool's.
#include "test_support.hpp"

#include <holdfast/simpo/swap.hpp>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <string>
#include <vector>

namespace {
std::atomic<long> allocations_left{-1}; // until one fails; negative: none does
} // namespace

void* operator new(std::size_t bytes) {
    if (allocations_left.load() >= 0 && allocations_left-- == 0) throw std::bad_alloc();
    void* const made = std::malloc(bytes == 0 ? 1 : bytes);
    if (made == nullptr) throw std::bad_alloc();
    return made;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace hf::simpo {
namespace {

namespace fs = std::filesystem;
using test::digits;

class SwapFailure : public test::PoolTest {
protected:
    fs::path folder() const { return fs::path(in.path()).parent_path() / "swapped"; }
    std::vector<std::string> names() const {
        std::vector<std::string> found;
        for (const auto& each : fs::directory_iterator(folder()))
            found.push_back(each.path().filename());
        std::ranges::sort(found);
        return found;
    }
};
INSTANTIATE_TEST_SUITE_P(Modes, SwapFailure, ::testing::Values(mode::process, mode::pmem),
                         [](const auto& each) { return std::string(name(each.param)); });

TEST_P(SwapFailure, MayBeTriedAgain) {
    in.open();
    ASSERT_TRUE(swap_to(in.pool(), folder()).ok());
    {
        auto it = *object<digits>::create(in.pool(), "it");
        it.call<&digits::append_and_get>(7U);
        ASSERT_TRUE(swap_out(in.pool(), "it").ok()); // a file that swap_to has to keep
    }
    in.close();
    const std::vector<std::string> there = names();
    ASSERT_EQ(there.size(), 2U) << "the lock, and the object's file";
    bool through = false;
    unsigned failed = 0;
    for (long n = 0; !through; ++n) {
        in.open();
        std::string where = folder();
        allocations_left = n;
        const status first = swap_to(in.pool(), std::move(where));
        through = allocations_left.exchange(-1) >= 0; // none has failed
        if (!first.ok()) {
            ASSERT_FALSE(through) << first.what();
            ++failed;
            EXPECT_EQ(first.code(), errc::io_error) << "allocation " << n;
            const status again = swap_to(in.pool(), folder());
            ASSERT_TRUE(again.ok()) << "allocation " << n << ": " << again.what();
        }
        EXPECT_EQ(names(), there) << "allocation " << n;
        EXPECT_EQ(object<digits>::find(in.pool(), "it")->call<&digits::number>(), 7U);
        ASSERT_TRUE(swap_out(in.pool(), "it").ok());
        in.close();
    }
    EXPECT_GT(failed, 5U) << "that of the set of files, behind the lock's, among them";
}

} // namespace
} // namespace hf::simpo
