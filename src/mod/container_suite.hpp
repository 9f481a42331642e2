// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The promises of every container of MOD, for all elements and modes:
// - it does what a model does, through handles, batches and versions
// - it keeps no node that nothing names
// - a snapshot does not change
// - of two branches one is committed
// - an update is one ordering point
// - a full pool leaves it as it is
// - closing and crashing keep it
// - readers beside a writer see whole versions
// The crash checker explores crash states.
//
// A configuration names the container, a model, and:
//     kind                              the kind by which reclamation knows it
//     seeds, steps                      of the random test
//     step(random, phase, to, model)    one random update of a handle or a batch, and of the model;
//                                       phase: 0 grows it, 1 keeps its size, 2 shrinks it
//     stepped(random, version, model)   the same for a version
//     same(reader, model)               whether they agree
//     prefill(seed, container, model)   before the random steps
//     add(to, n), added(model, n)       one more element: n, which is not there
//     drain(random, container, model)   until it is empty, by the updates that remove
//     number(element)                   the n of an element, where elements are numbers
#pragma once

#include <mod/test_support.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <list>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace hf::mod::test {

template <class Config> class ContainerTest : public testing::Test {
protected:
    using container = typename Config::container;
    using version = typename container::version;
    using model = typename Config::model;

    void expect_no_other_nodes(const container& of) {
        EXPECT_EQ(in.nodes_in_use(), nodes_of(Config::kind(), {of.its_root()}));
    }
    /// Random updates, alone and in batches, versions among them.
    void random_steps(std::uint64_t seed) {
        SCOPED_TRACE(testing::Message() << "seed " << seed);
        std::mt19937_64 random(seed);
        auto c = in.get<container>();
        model m;
        Config::prefill(seed, c, m);
        constexpr int steps = Config::steps;
        for (int i = 0; i < steps && !HasFailure(); ++i) {
            const int phase = 9 * i / steps % 3;
            Config::step(random, phase, c, m);
            if (i % (steps / 8) == 0) {
                EXPECT_TRUE(Config::same(c, m)) << "step " << i;
                expect_no_other_nodes(c);
            }
            if (random() % 16 != 0) continue;
            const status done = c.update([&](auto& batch) {
                for (int j = 0; j < 20; ++j) Config::step(random, phase, batch, m);
                if (i % 8 == 0) {
                    EXPECT_TRUE(Config::same(batch, m)) << "step " << i;
                }
            });
            EXPECT_TRUE(done.ok()) << done.what();
        }
        EXPECT_TRUE(Config::same(c, m));
        Config::drain(random, c, m);
        EXPECT_TRUE(c.empty() && c.begin() == c.end());
        EXPECT_EQ(c.word(), 0U);
        expect_no_other_nodes(c);
        EXPECT_EQ(in.store().account().nodes, 0U);
    }
    static void expect_same(const auto& kept) {
        for (const auto& [version, then] : kept) EXPECT_TRUE(Config::same(version, then));
    }

    test_pool in;
};

/// For every form of elements.
template <class Config> class ElementTest : public ContainerTest<Config> {};
TYPED_TEST_SUITE_P(ElementTest);

TYPED_TEST_P(ElementTest, ContainersDoWhatTheirModelDoes) {
    for (const hf::mode mode : both_modes) {
        this->in.make_new(mode);
        for (std::uint64_t seed = 1; seed <= TypeParam::seeds; ++seed) this->random_steps(seed);
    }
}

REGISTER_TYPED_TEST_SUITE_P(ElementTest, ContainersDoWhatTheirModelDoes);

/// For a form or two.
TYPED_TEST_SUITE_P(ContainerTest);

TYPED_TEST_P(ContainerTest, ASnapshotStaysWhateverComes) {
    for (const hf::mode mode : both_modes) {
        this->in.make_new(mode);
        auto c = this->in.template get<typename TypeParam::container>();
        typename TypeParam::model m;
        std::mt19937_64 random(11);
        std::list<std::pair<typename TestFixture::version, typename TypeParam::model>> kept;
        for (int round = 0; round < 16; ++round) {
            for (int i = 0; i < 80; ++i) TypeParam::step(random, round % 3, c, m);
            kept.emplace_back(c.snapshot(), m);
            if (kept.size() > 10) kept.erase(std::next(kept.begin(), random() % 10));
            this->expect_same(kept);
        }
        EXPECT_TRUE(c.clear().ok());
        this->expect_same(kept);
        kept.clear();
        this->expect_no_other_nodes(c);
        EXPECT_EQ(this->in.store().account().retired, 0U);
        EXPECT_EQ(this->in.store().account().nodes, 0U);
    }
}

TYPED_TEST_P(ContainerTest, VersionsBranchAndOneOfThemIsCommitted) {
    this->in.make_new(hf::mode::pmem);
    auto c = this->in.template get<typename TypeParam::container>();
    typename TypeParam::model m;
    std::mt19937_64 random(13);
    for (int round = 0; round < 30 && !this->HasFailure(); ++round) {
        using branch = std::pair<typename TestFixture::version, typename TypeParam::model>;
        const auto now = c.snapshot();
        branch left{now, m}, right{now, m};
        for (branch* each : {&left, &right}) {
            for (int i = 0; i < 10; ++i)
                each->first = TypeParam::stepped(random, each->first, each->second);
            each->first = each->first.update(
                [&](auto& batch) { TypeParam::step(random, 0, batch, each->second); });
        }
        EXPECT_TRUE(TypeParam::same(now, m) && TypeParam::same(left.first, left.second));
        EXPECT_TRUE(TypeParam::same(right.first, right.second));
        const status first = c.commit(left.first);
        EXPECT_TRUE(first.ok()) << first.what();
        if (left.first.word() != now.word()) { // an empty one may have stayed so
            EXPECT_EQ(c.commit(right.first).code(), errc::conflict);
        }
        EXPECT_TRUE(TypeParam::same(c, left.second));
        EXPECT_TRUE(TypeParam::same(right.first, right.second));
        EXPECT_TRUE(right.first.clear().empty());
        m = left.second;
    }
    this->expect_no_other_nodes(c);
    const typename TestFixture::version none;
    EXPECT_TRUE(none.empty() && none.begin() == none.end());
}

TYPED_TEST_P(ContainerTest, AFullPoolLeavesItAsItIs) {
    this->in.make_new(hf::mode::pmem, 1_MiB);
    auto c = this->in.template get<typename TypeParam::container>();
    typename TypeParam::model m;
    std::mt19937_64 random(17);
    std::uint64_t n = 1'000'000;
    const auto grow = [&](auto& batch, auto& model, std::size_t count) {
        for (std::size_t i = 0; i < count && !batch.failed(); ++i) {
            (void)TypeParam::add(batch, ++n);
            TypeParam::added(model, n);
        }
        for (int i = 0; i < 6 && !batch.failed(); ++i) TypeParam::step(random, 1, batch, model);
    };
    unsigned refused = 0;
    for (int round = 0; refused < 6; ++round) {
        ASSERT_LT(round, 400);
        auto next = m;
        const std::uint64_t word = c.word();
        const status done = c.update([&](auto& batch) { grow(batch, next, 100 + m.size() / 2); });
        if (done.ok()) {
            m = std::move(next);
            continue;
        }
        EXPECT_EQ(done.code(), errc::pool_full);
        EXPECT_NE(done.what().find("no room for an update: the pool has "), std::string::npos)
            << done.what();
        EXPECT_EQ(c.word(), word);
        EXPECT_TRUE(TypeParam::same(c, m));
        {
            const auto tried = c.snapshot().update([&](auto& batch) {
                auto never = m;
                while (!batch.failed()) grow(batch, never, 1000);
                std::size_t read = 0; // what it holds can be read
                for ([[maybe_unused]] auto&& each : batch) ++read;
                EXPECT_EQ(read, batch.size());
                if constexpr (requires { TypeParam::finds_all(batch); }) {
                    EXPECT_TRUE(TypeParam::finds_all(batch));
                }
            });
            EXPECT_EQ(c.commit(tried).code(), errc::pool_full);
        }
        while (TypeParam::add(c, ++n)) TypeParam::added(m, n); // one by one, there may be room
        EXPECT_TRUE(TypeParam::same(c, m));
        if (++refused % 2 != 0) continue;
        EXPECT_TRUE(c.clear().ok());
        m = {};
        this->expect_no_other_nodes(c);
    }
    this->expect_no_other_nodes(c);
}

TYPED_TEST_P(ContainerTest, ClosingAndCrashingKeepIt) {
    for (const hf::mode mode : both_modes) {
        this->in.make_new(mode);
        typename TypeParam::model m;
        std::mt19937_64 random(19);
        for (int round = 0; round < 5; ++round) {
            auto c = this->in.template get<typename TypeParam::container>();
            EXPECT_TRUE(TypeParam::same(c, m)) << "round " << round;
            this->expect_no_other_nodes(c);
            for (int i = 0; i < 200; ++i) TypeParam::step(random, 0, c, m);
            // The crash happens while a writer works: its fresh nodes belong to nobody. The writer
            // has a thread of its own, which a crash leaves in its update.
            const bool crash = round % 2 == 0;
            std::thread([&] {
                auto* const unfinished = new root::writing(c.its_root()->write());
                typename TypeParam::container::batch batch(unfinished->work(), unfinished->word());
                (void)TypeParam::add(batch, 1'000'000);
                if (!crash) delete unfinished;
            }).join();
            if (crash) this->in.crash_and_open();
            else this->in.open();
        }
        EXPECT_TRUE(TypeParam::same(this->in.template get<typename TypeParam::container>(), m));
    }
}

REGISTER_TYPED_TEST_SUITE_P(ContainerTest, ASnapshotStaysWhateverComes,
                            VersionsBranchAndOneOfThemIsCommitted, AFullPoolLeavesItAsItIs,
                            ClosingAndCrashingKeepIt);

/// For numbers: nodes of few sizes.
template <class Config> class NumbersTest : public ContainerTest<Config> {};
TYPED_TEST_SUITE_P(NumbersTest);

TYPED_TEST_P(NumbersTest, AnUpdateIsOneOrderingPointOrTwo) {
    this->in.make_new(hf::mode::pmem, 64_MiB);
    auto c = this->in.template get<typename TypeParam::container>();
    std::uint64_t n = 0;
    const auto all = [&](int count, auto&& expect) {
        const auto add_some = [&](auto& to) {
            for (int i = 0; i < count; ++i) (void)TypeParam::add(to, ++n);
        };
        for (int i = 0; i < 50; ++i) expect(1, [&] { (void)TypeParam::add(c, ++n); });
        expect(1, [&] { EXPECT_TRUE(c.update(add_some).ok()); });
        expect(0, [&] { EXPECT_TRUE(c.update([](auto&) {}).ok()); });
        const auto tried = c.snapshot().clear();
        expect(1, [&] { EXPECT_TRUE(c.commit(tried).ok()); });
        expect(0, [&] { EXPECT_TRUE(c.clear().ok()); });
    };
    // Room for what follows: taking an arena from the heap has ordering points of its own.
    for (int i = 0; i < 4; ++i) all(3000, [](std::uint64_t, auto&& work) { work(); });
    all(300, [](std::uint64_t points, auto&& work) { EXPECT_EQ(points_of(work), points); });
    c.set_durability(durability::on_return);
    all(300, [](std::uint64_t points, auto&& work) { EXPECT_EQ(points_of(work), 2 * points); });
}

/// Each version has the numbers of one round, and all of them.
TYPED_TEST_P(NumbersTest, ReadersBesideAWriterSeeWholeVersions) {
    this->in.make_new(hf::mode::process);
    auto c = this->in.template get<typename TypeParam::container>();
    constexpr std::uint64_t in_a_round = 40;
    const auto write = [&](std::uint64_t round) {
        return c.update([&](auto& batch) {
            batch.clear();
            for (std::uint64_t i = 0; i < in_a_round; ++i)
                (void)TypeParam::add(batch, round * in_a_round + i);
        });
    };
    EXPECT_TRUE(write(1).ok());
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> torn{0}, seen{0};
    std::vector<std::thread> readers;
    for (int r = 0; r < 2; ++r)
        readers.emplace_back([&] {
            while (!stop) {
                const auto now = c.snapshot();
                torn += now.size() != in_a_round;
                const std::uint64_t round = TypeParam::number(*now.begin()) / in_a_round;
                for (auto&& each : now) torn += TypeParam::number(each) / in_a_round != round;
                ++seen;
            }
        });
    for (std::uint64_t round = 2; round <= 300 || seen < 20; ++round)
        EXPECT_TRUE(write(round).ok());
    stop = true;
    for (auto& reader : readers) reader.join();
    EXPECT_EQ(torn, 0U);
    this->expect_no_other_nodes(c);
}

REGISTER_TYPED_TEST_SUITE_P(NumbersTest, AnUpdateIsOneOrderingPointOrTwo,
                            ReadersBesideAWriterSeeWholeVersions);

} // namespace hf::mod::test
