// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: words that threads use without a lock in common are found with both lines, in sections that
//       store in place and in those that wait; nothing else is.
// Method: programs of two threads with one mistake each, and correct ones.
#include <check/pool_program.hpp>
#include <check/races.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/engines.hpp>
#include <holdfast/lock.hpp>
#include <holdfast/tx.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <shared_mutex>

namespace {

using namespace hf::crash;

struct node {
    long value;
    char rest[56];
};
struct root {
    hf::shared_mutex lock, other;
    long count;
    long of_thread[2];
    node* shared;
};

HF_TXFUNC void count(root* r) noexcept { r->count += 1; }
constexpr int count_line = __LINE__ - 1;
HF_TXFUNC void count_own(root* r, unsigned thread) noexcept { r->of_thread[thread] += 1; }
HF_TXFUNC void renew(root* r) noexcept {
    hf::destroy(r->shared);
    r->shared = hf::make<node>();
    if (r->shared != nullptr) r->shared->value = 1;
}
__attribute__((noinline)) long look(const volatile root* r) noexcept { return r->count; }
constexpr int look_line = __LINE__ - 1;

/// Both threads do 'what', twice each.
class two_threads : public pool_program {
public:
    using operation = void (*)(hf::pool& in, root* r, unsigned thread);
    two_threads(operation what, hf::mode mode)
        : pool_program({.layout = "crash/races", .engines = hf::engines_of_build(), .mode = mode}),
          what_(what) {}
    void setup(hf::pool& p) override { p.root<root>(); }
    unsigned threads() const override { return 2; }
    unsigned operations(unsigned) const override { return 2; }
    void run(hf::pool& p, unsigned thread, unsigned) override { what_(p, p.root<root>(), thread); }
    void describe(hf::pool&, state&) override {}

private:
    const operation what_;
};

class races : public testing::TestWithParam<hf::mode> {
protected:
    static found_races found(two_threads::operation what) {
        two_threads given(what, GetParam());
        found_races out = find_races("it", given, {});
        EXPECT_TRUE(out.trouble.empty()) << for_people(out);
        EXPECT_GT(out.accesses, 8U);
        return out;
    }
    static void is_right(two_threads::operation what) {
        const found_races out = found(what);
        EXPECT_TRUE(out.races.empty()) << for_people(out);
    }
    /// Both lines are named, in this order or the other.
    static void is_race(two_threads::operation what, int one, int two) {
        const found_races out = found(what);
        ASSERT_FALSE(out.races.empty());
        const std::string text = for_people(out);
        for (const int line : {one, two})
            EXPECT_NE(text.find(fmt::format("races_test.cpp:{}\n", line)), text.npos) << text;
        for (const auto& race : out.races) EXPECT_NE(race.first.thread, race.second.thread) << text;
    }
};
INSTANTIATE_TEST_SUITE_P(EachMode, races, testing::Values(hf::mode::process, hf::mode::pmem),
                         [](const auto& of) {
                             return of.param == hf::mode::process ? "process" : "pmem";
                         });

TEST_P(races, NoneUnderOneLock) {
    is_right([](hf::pool&, root* r, unsigned) {
        const std::scoped_lock held{r->lock};
        count(r);
    });
}
TEST_P(races, NoneUnderALockOfTheProgram) {
    is_right([](hf::pool&, root* r, unsigned) {
        static std::mutex lock;
        const std::scoped_lock held{lock};
        count(r);
    });
}
TEST_P(races, NoneInAClosureUnderALock) {
    is_right([](hf::pool& in, root* r, unsigned) {
        const std::scoped_lock held{r->lock, r->other};
        hf::tx(in, [=]() noexcept { r->count += 2; });
    });
}
TEST_P(races, NoneAmongWordsOfOneThread) {
    is_right([](hf::pool&, root* r, unsigned thread) { count_own(r, thread); });
}
TEST_P(races, NoneWhereReadersShareALock) {
    is_right([](hf::pool&, root* r, unsigned thread) {
        if (thread == 0) {
            const std::scoped_lock held{r->lock};
            count(r);
        } else {
            const std::shared_lock held{r->lock};
            look(r);
        }
    });
}
TEST_P(races, NoneInMemoryThatChangesHands) {
    is_right([](hf::pool&, root* r, unsigned) {
        const std::scoped_lock held{r->lock};
        renew(r);
    });
}
TEST_P(races, WithoutALock) {
    is_race([](hf::pool&, root* r, unsigned) { count(r); }, count_line, count_line);
}
TEST_P(races, WhereOneThreadForgetsIt) {
    is_race(
        [](hf::pool&, root* r, unsigned thread) {
            std::unique_lock held{r->lock, std::defer_lock};
            if (thread == 0) held.lock();
            count(r);
        },
        count_line, count_line);
}
TEST_P(races, WhereEachHasAnotherLock) {
    const found_races out = found([](hf::pool&, root* r, unsigned thread) {
        const std::scoped_lock held{thread == 0 ? r->lock : r->other};
        count(r);
    });
    ASSERT_EQ(out.races.size(), 1U) << for_people(out);
    const auto& [offset, first, second] = out.races[0];
    ASSERT_EQ(first.locks.size(), 1U);
    ASSERT_EQ(second.locks.size(), 1U);
    EXPECT_NE(first.locks[0], second.locks[0]);
}
TEST_P(races, OfAStoreUnderAReadersLock) {
    is_race(
        [](hf::pool&, root* r, unsigned) {
            const std::shared_lock held{r->lock};
            count(r);
        },
        count_line, count_line);
}
TEST_P(races, OfALookOutsideOfSections) {
    is_race(
        [](hf::pool&, root* r, unsigned thread) {
            if (thread == 1) return void(look(r));
            const std::scoped_lock held{r->lock};
            count(r);
        },
        count_line, look_line);
}

} // namespace

// hf_crash has a main() too, which this one keeps out.
int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
