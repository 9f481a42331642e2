// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: with expert_options::guard_marks a store outside of sections, or one by a function that a
// section takes for pure, ends the process before it is made, and names its line; what the library
// stores, and a program may store, passes. Method: each kind of store in a process of its own, and
// the pool afterwards.
#include "support.hpp"

#include <holdfast/alloc.hpp>
#include <holdfast/allocator.hpp>
#include <holdfast/author/staged.hpp>
#include <holdfast/lock.hpp>
#include <holdfast/tx.hpp>

#include <chrono>
#include <cstring>
#include <functional>
#include <mutex>
#include <vector>

namespace language_test {

/// Breaks its promise, in a file that the plugin has not seen (guard_plain.cpp).
HF_PURE long stores_elsewhere(long* where) noexcept;

namespace {

using vector = std::vector<long, hf::allocator<long>>;

struct root {
    long count;
    char text[64];
    hf::mutex lock;
    vector* all;
    long* far; // so many that the last is in another page than 'count'
};
constexpr unsigned last = 1023;

HF_TXFUNC void create(root* r) {
    r->all = hf::make<vector>();
    for (long i = 0; i < 5; ++i) r->all->push_back(i);
    r->far = hf::make_array<long>(last + 1);
    std::memset(r->far, 0, (last + 1) * sizeof(long));
}
HF_TXFUNC void count(root* r) { r->count += 1; }
HF_TXFUNC void take(root* r, void* staged) {
    hf_adopt(staged);
    r->count += *static_cast<long*>(staged);
}

HF_TXFUNC void believes(root* r) { r->count += stores_elsewhere(&r->count); }
HF_TXFUNC void believes_later(root* r) {
    r->count += 1;
    r->count += stores_elsewhere(&r->far[last]);
}
/// All of these stores are the section's.
HF_TXFUNC void stores_widely(root* r) {
    for (unsigned i = 0; i < last; ++i) r->far[i] = i;
    std::memset(r->far + 100, 0, 5000);
    auto* const more = hf::make<vector>();
    more->push_back(r->far[2]);
    more->resize(3000);
    (*more)[2999] = 1;
    r->far[last] += (*more)[2999];
    hf::destroy(more);
}

__attribute__((noinline)) void stores_a_word(root* r) { r->count = 7; }
__attribute__((noinline)) void copies_text(root* r, const char* from) {
    std::memcpy(r->text, from, sizeof r->text);
}
__attribute__((noinline)) void changes_a_container(root* r) {
    for (long& each : *r->all) each = 9;
}

class guard : public pools, public testing::WithParamInterface<hf::mode> {
protected:
    hf::pool open_guarded() {
        hf::open_options o;
        o.layout = "language/1";
        o.create_bytes = o.max_bytes = 1 << 20;
        o.mode = GetParam();
        o.engines = hf::engines_of_build();
        o.expert.guard_marks = true;
        auto opened = hf::pool::open(first, o);
        if (!opened) std::fprintf(stderr, "%s\n", opened.error().what().c_str()), std::exit(1);
        return std::move(*opened);
    }
    void is_reported(const std::function<void(root*)>& store, const char* where,
                     const char* what = "a store to the pool outside of a section",
                     bool stays = false) {
        EXPECT_DEATH(
            {
                hf::pool pool = open_guarded();
                root* const r = pool.root<root>();
                if (r->all == nullptr) create(r);
                count(r);
                store(r);
            },
            std::string(what) + ", at byte [0-9]+, by .*" + where);
        hf::pool pool = open_guarded();
        const root& r = *pool.root<root>();
        EXPECT_GE(r.count, 1);
        EXPECT_NE(r.count, 7);
        EXPECT_TRUE(r.far[last] == 0 || stays) << r.far[last];
        EXPECT_STREQ(r.text, "");
        EXPECT_EQ((*r.all)[2], 2);
    }
};
INSTANTIATE_TEST_SUITE_P(EachMode, guard, testing::Values(hf::mode::process, hf::mode::pmem),
                         [](const auto& of) {
                             return of.param == hf::mode::process ? "process" : "pmem";
                         });

TEST_P(guard, AStoreOutsideOfSectionsIsReportedWithItsLine) {
    is_reported(stores_a_word, "stores_a_word at test/across/language/guard_test.cpp:[67]");
}
TEST_P(guard, ACopyOutsideOfSectionsIsReportedWithItsLine) {
    static const char text[64] = "a text";
    is_reported([](root* r) { copies_text(r, text); },
                "copies_text at test/across/language/guard_test.cpp:[67]");
}
TEST_P(guard, AContainerOutsideOfSectionsIsReportedWithItsLine) {
    is_reported(changes_a_container,
                "changes_a_container at test/across/language/guard_test.cpp:[67]");
}
TEST_P(guard, ALockIsNoSection) {
    is_reported(
        [](root* r) {
            const std::scoped_lock held{r->lock};
            stores_a_word(r);
        },
        "stores_a_word at test/across/language/guard_test.cpp:[67]");
}
TEST_P(guard, ItIsReportedBeforeTheFirstSectionToo) {
    EXPECT_DEATH(
        {
            hf::pool pool = open_guarded();
            stores_a_word(pool.root<root>());
        },
        "by .*stores_a_word at");
}

TEST_P(guard, AFunctionThatASectionTakesForPureIsReportedWithItsLine) {
    is_reported(believes, "stores_elsewhere at test/across/language/guard_plain.cpp:8",
                "a store to the pool that its section knows nothing of");
}
TEST_P(guard, ItIsReportedBehindStoresOfTheSectionToo) {
    is_reported(believes_later, "stores_elsewhere at test/across/language/guard_plain.cpp:8",
                "a store to the pool that its section knows nothing of");
}
TEST_P(guard, AMistakeAmongManySectionsIsReportedWhenItIsRepeated) {
    is_reported(
        [](root* r) {
            for (int i = 0; i < 1000; ++i) count(r);
            const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
            while (std::chrono::steady_clock::now() < end) {
                count(r);
                asm volatile("" ::: "memory"); // each of the stores is made
                r->far[last] = 7;
            }
        },
        "guard_test.cpp:[0-9]+", "a store to the pool outside of a section", true);
}

TEST_P(guard, WhatTheLibraryStoresPasses) {
    {
        hf::pool pool = open_guarded();
        root* const r = pool.root<root>();
        create(r);
        for (int i = 0; i < 3; ++i) {
            const std::scoped_lock held{r->lock};
            count(r);
        }
        void* const block = hf_alloc(100);
        ASSERT_NE(block, nullptr);
        count(r);
        hf_free(block);
        count(r);
        auto staged = hf::staged::in(pool, 64);
        ASSERT_TRUE(staged);
        const long five = 5;
        hf::staged::copy(pool, staged->get(), &five, sizeof five);
        take(r, staged->release());
        EXPECT_EQ(r->count, 10);
        for (int i = 0; i < 600; ++i) stores_widely(r);
        EXPECT_EQ(r->far[last], 600);
    }
    hf::pool pool = open(first, 1 << 20);
    EXPECT_EQ(pool.root<root>()->count, 10);
}

TEST_P(guard, AStagedBlockIsTheProgramsToFill) {
    hf::pool pool = open_guarded();
    root* const r = pool.root<root>();
    count(r);
    auto staged = hf::staged::in(pool, 64);
    ASSERT_TRUE(staged);
    count(r);
    *static_cast<long*>(staged->get()) = 5;
    hf::staged::persist(pool, staged->get(), 8);
    take(r, staged->release());
    EXPECT_EQ(r->count, 7);
}

} // namespace
} // namespace language_test
