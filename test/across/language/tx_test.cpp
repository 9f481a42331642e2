// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// hf::tx on pools: what a closure does survives a crash halfway, and a pointer in it that leads
// somewhere else stops the process before the section begins.
#include "support.hpp"

#include <holdfast/alloc.hpp>
#include <holdfast/author/blocks.hpp>
#include <holdfast/author/mod/store.hpp>
#include <holdfast/holdfast.h>
#include <holdfast/tx.hpp>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

namespace language_test {
namespace {

struct root {
    long value, twice;
    long* cell;
};

using tx = pools;

TEST_F(tx, ReturnsWhatTheClosureReturns) {
    hf::pool pool = open(first);
    root* r = pool.root<root>();
    EXPECT_EQ(hf::tx(pool, [=] { return r->value += 5; }), 5);
    hf::tx(pool, [=] { r->cell = hf::make<long>(r->value); });
    EXPECT_EQ(*r->cell, 5);
    const auto [value, twice, cell] = hf::tx(pool, [=] { return *r; }); // through memory
    EXPECT_EQ(value, 5);
    EXPECT_EQ(cell, r->cell);
}

TEST_F(tx, IsWholeOrAbsentAfterAKillHalfway) {
    EXPECT_EXIT(
        {
            ::setenv("HOLDFAST_CRASH_AT", "half", 1);
            hf::pool pool = open(first);
            root* r = pool.root<root>();
            hf::tx(pool, [r, by = 21L] {
                r->value += by;
                hf::crash_point("half");
                r->twice += 2 * by;
            });
        },
        testing::KilledBySignal(SIGKILL), "");
    hf::pool pool = open(first);
    const root* r = pool.root<root>();
    EXPECT_EQ(pool.recovered().sections_pending, redo() ? 0U : 1U); // it logs at its end
    EXPECT_EQ(r->value, clobber() ? 21 : 0);
    EXPECT_EQ(r->twice, 2 * r->value);
}

TEST_F(tx, APointerToVolatileMemoryIsRefusedWhereASectionMayRunAgain) {
    const auto heap = std::make_unique<root>();
    heap->value = 0;
    root* volatile hidden = heap.get(); // what the compiler can follow, it refuses
    if (!clobber()) {
        hf::pool pool = open(first);
        hf::tx(pool, [r = hidden] { r->value += 1; });
        EXPECT_EQ(heap->value, 1);
        return;
    }
    EXPECT_DEATH(
        {
            hf::pool pool = open(first);
            hf::tx(pool, [r = hidden] { r->value += 1; });
        },
        "points? to volatile memory|expected an address in the pool");
}

struct cache {
    root* in_pool;
    long step = 3;
    void advance(const hf::pool& pool) {
        hf::tx(pool, [this] { in_pool->value += step; });
    }
};
TEST_F(tx, ThisOfAVolatileObjectIsRefusedWhereASectionMayRunAgain) {
    if (!clobber()) {
        hf::pool pool = open(first);
        const auto c = std::make_unique<cache>(pool.root<root>());
        c->advance(pool);
        EXPECT_EQ(c->in_pool->value, 3);
        return;
    }
    EXPECT_DEATH(
        {
            hf::pool pool = open(first);
            const auto c = std::make_unique<cache>(pool.root<root>());
            c->advance(pool);
        },
        "expected an address in the pool");
}

TEST_F(tx, OpenRefusesEnginesThatTheFunctionsAreNotBuiltFor) {
    hf::open_options o;
    o.layout = "language/1";
    o.engines = {clobber() ? hf::undo::engine() : hf::clobber::engine()};
    const auto refused = hf::pool::open(first, o);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), hf::errc::bad_argument);
    const std::string built = chooses() ? "undo, redo" : std::string(hf::engine_of_build());
    const std::string expected = "expected " + built + ",";
    const std::string found = clobber() ? "found undo:" : "found clobber:";
    EXPECT_NE(refused.error().what().find(expected), std::string::npos) << refused.error().what();
    EXPECT_NE(refused.error().what().find(found), std::string::npos) << refused.error().what();
    EXPECT_NE(refused.error().what().find("hf::engines_of_build()"), std::string::npos);
    for (const hf::engine_ptr& e : hf::engines_of_build()) o.engines.push_back(e);
    EXPECT_TRUE(hf::pool::open(first, o)) << "to recover what the other one has left";
}

TEST_F(tx, NoEnginesAreTheBuilds) {
    hf::open_options o;
    o.layout = "language/1";
    {
        auto pool = hf::pool::open(first, o);
        ASSERT_TRUE(pool) << pool.error().what();
        root* r = pool->root<root>();
        hf::tx(*pool, [r] { r->value += 1; });
    }
    auto pool = hf::pool::open(first, o);
    ASSERT_TRUE(pool) << pool.error().what();
    EXPECT_EQ(pool->root<root>()->value, 1U);
}

TEST_F(tx, NamesTheEngineThatThePoolWasNotOpenedWith) {
    EXPECT_DEATH(
        {
            hf::open_options o;
            o.layout = "language/1";
            o.engines = {
                hf::mod::engine()}; // an engine without sections: any program may open such a pool
            auto pool = hf::pool::open(first, o);
            root* r = pool->root<root>();
            hf::tx(*pool, [r] { r->value += 1; });
        },
        "is built for engine " + std::string(hf::engine_of_build()) +
            ", and the pool was opened with mod: leave open_options::engines empty, or give it " +
            (chooses() ? "hf::undo::engine\\(\\), hf::redo::engine\\(\\) as well" : "hf::"));
}

TEST_F(tx, RefusesToOpenWithoutTheFormThatTheModeRuns) {
    if (!chooses()) return; // there is one form
    hf::open_options o;
    o.layout = "language/1";
    o.engines = {hf::undo::engine()};
    EXPECT_TRUE(hf::pool::open(first, o)) << "mode process runs it";
    o.mode = hf::mode::pmem;
    const auto refused = hf::pool::open(first, o);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), hf::errc::bad_argument);
    EXPECT_NE(refused.error().what().find("expected redo, which"), std::string::npos)
        << refused.error().what();
}

TEST_F(tx, RefusesAPointerIntoAnotherPool) {
    EXPECT_DEATH(
        {
            hf::pool one = open(first);
            hf::pool two = open(second);
            root* r = two.root<root>();
            hf::tx(one, [r] { r->value += 1; });
        },
        "expected an address in the pool of the arguments before it");
}

TEST_F(tx, LeavesPointersAloneThatItDoesNotFollow) {
    hf::pool pool = open(first);
    root* r = pool.root<root>();
    alignas(std::optional<long*>) std::byte any[sizeof(std::optional<long*>)];
    std::memset(any, 0x5a, sizeof any); // what a disengaged optional may be made of
    auto* none = ::new (any) std::optional<long*>;
    hf::tx(pool, [r, other = *none, nothing = static_cast<long*>(nullptr)] {
        r->value += 1;
        if (other) **other += 1;
        if (nothing != nullptr) *nothing += 1;
    });
    EXPECT_EQ(r->value, 1);
}

void add_through(const hf::pool& pool, root* r) {
    hf::tx(pool, [r] { r->value += 1; });
}
TEST_F(tx, FindsThePoolAmongSeveral) {
    hf::pool one = open(first);
    hf::pool two = open(second);
    add_through(one, one.root<root>());
    add_through(two, two.root<root>());
    EXPECT_EQ(hf::tx(two, [] { return hf::make<long>(7L); }) != nullptr, true);
    EXPECT_EQ(hf::account(one).blocks, 1U); // the root alone
    EXPECT_EQ(hf::account(two).blocks, 2U);
}

TEST_F(tx, RunsOnAPoolOfTheCApi) {
    hf_pool* pool = nullptr;
    hf_open_options options{};
    options.layout = "language/1";
    ASSERT_EQ(hf_pool_open(first.c_str(), &options, &pool), HF_OK) << hf_error_text();
    void* at = nullptr;
    ASSERT_EQ(hf_pool_root(pool, sizeof(root), &at), HF_OK);
    root* r = static_cast<root*>(at);
    EXPECT_EQ(hf::tx(pool, [r] { return ++r->value; }), 1);

    hf_pool* again = pool;
    EXPECT_EQ(hf_pool_open(first.c_str(), &options, &again), HF_IN_USE);
    EXPECT_EQ(again, nullptr);
    EXPECT_STREQ(hf_strerror(HF_IN_USE), "in_use");
    EXPECT_NE(std::string(hf_error_text()).find("already open"), std::string::npos);
    hf_pool_close(pool);
    hf_pool_close(nullptr);

    options.layout = "other/1";
    EXPECT_EQ(hf_pool_open(first.c_str(), &options, &pool), HF_WRONG_LAYOUT);
    options.mode = 77;
    EXPECT_EQ(hf_pool_open(first.c_str(), &options, &pool), HF_BAD_ARGUMENT);
    options = {};
    options.creation = HF_CREATE_NEVER;
    EXPECT_EQ(hf_pool_open(second.c_str(), &options, &pool), HF_NOT_FOUND);
}

} // namespace
} // namespace language_test
