// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The search finds what a plain one finds, on every engine, and after every crash. Crashes are
// tried twice: a model of memory that loses whatever no fence has made durable, in every way,
// engine apart; and a process that dies after each step on each engine.
#include "../peer/random.hpp"
#include "search.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <deque>
#include <filesystem>
#include <sys/wait.h>
#include <unistd.h>

namespace hf::apps::bfs {
namespace {

std::vector<level> plain_levels(const graph& in) {
    std::vector<level> levels(in.description().nodes, 0);
    std::vector<node> now{in.source()};
    levels[in.source()] = 1;
    for (level next = 2; !now.empty(); ++next) {
        std::vector<node> later;
        for (const node from : now)
            for (const node to : in.from(from))
                if (levels[to] == 0) {
                    levels[to] = next;
                    later.push_back(to);
                }
        now = later;
    }
    return levels;
}

std::vector<level> levels_of(const search_state& state) {
    return {state.levels().begin(), state.levels().end()};
}

TEST(Graph, IsThatOfItsSeed) {
    const graph one({1000, 20000, 7});
    const graph same({1000, 20000, 7});
    const graph other({1000, 20000, 8});
    std::uint64_t edges = 0, differ = 0, most = 0, few = 0;
    for (node n = 0; n < 1000; ++n) {
        ASSERT_TRUE(std::ranges::equal(one.from(n), same.from(n)));
        differ += std::ranges::equal(one.from(n), other.from(n)) ? 0 : 1;
        edges += one.from(n).size();
        most = std::max<std::uint64_t>(most, one.from(n).size());
        few += one.from(n).size() < 20 ? 1 : 0;
    }
    EXPECT_EQ(edges, 20000U);
    EXPECT_GT(differ, 900U);
    EXPECT_EQ(most, one.from(one.source()).size());
    EXPECT_GT(most, 1000U); // 1000^(-1/3) of the edges are the hub's: 2000
    EXPECT_GT(few, 600U);
    // On every machine: a pool may be carried to another.
    EXPECT_EQ(one.source(), 919U);
    EXPECT_EQ(one.from(0).front(), 346U);
}

// --- A model of memory -----------------------------------------------------------------------

struct died {};

// One ordering point for each section, as mod_state with durability::by_next_section: its fence
// makes durable what was flushed before, the queue's previous word among it.
class lossy_state final : public search_state {
public:
    explicit lossy_state(node nodes) : seen_(nodes), durable_(nodes) { levels_ = seen_; }

    bool begun() const noexcept override { return begun_; }
    status set_begun() override {
        fence();
        begun_ = true;
        return {};
    }
    void note_level(node reached, level its) noexcept override {
        seen_[reached] = its;
        flushed_.emplace_back(reached, its);
    }
    status push(node last) override {
        fence();
        queue_.push_back(last);
        return {};
    }
    status pop() override {
        fence();
        queue_.pop_front();
        return {};
    }
    bool front(node& first) const noexcept override {
        if (queue_.empty()) return false;
        first = queue_.front();
        return true;
    }
    void for_each_queued(const std::function<void(node)>& visit) const override {
        for (const node each : queue_) visit(each);
    }

    /// Bits of what no fence has made durable: the queue's last word, then the levels.
    std::size_t undecided() const { return 1 + flushed_.size(); }
    /// Power fails; the bits of 'kept' select the lines that had reached memory by themselves.
    void fail(std::uint64_t kept) {
        if ((kept & 1) == 0) queue_ = durable_queue_;
        durable_queue_ = queue_;
        for (std::size_t i = 0; i < flushed_.size(); ++i)
            if ((kept >> (i + 1) & 1) != 0) durable_[flushed_[i].first] = flushed_[i].second;
        flushed_.clear();
        std::ranges::copy(durable_, seen_.begin());
    }

private:
    void fence() {
        for (const auto& [reached, its] : flushed_) durable_[reached] = its;
        flushed_.clear();
        durable_queue_ = queue_;
    }

    std::vector<level> seen_, durable_;
    std::vector<std::pair<node, level>> flushed_;
    std::deque<node> queue_, durable_queue_;
    bool begun_ = false;
};

std::uint64_t last_step;
void die_at_last_step(std::uint64_t step) {
    if (step == last_step) throw died{};
}
// Whether the search came to its end.
bool search_until(const graph& in, search_state& state, std::uint64_t step) {
    last_step = step;
    try {
        EXPECT_TRUE(search(in, state, die_at_last_step));
        return true;
    } catch (const died&) {
        return false;
    }
}

void check_queue(const search_state& state) {
    std::vector<bool> queued(state.levels().size(), false);
    state.for_each_queued([&](node each) {
        EXPECT_FALSE(queued[each]) << "node " << each << " waits twice";
        EXPECT_NE(state.levels()[each], 0U) << "node " << each << " waits without a level";
        queued[each] = true;
    });
}

TEST(Search, SurvivesEveryLossOfWhatNoFenceMadeDurable) {
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
        const graph in({24, 100, seed});
        const auto wanted = plain_levels(in);
        bool ended = false;
        for (std::uint64_t step = 1; !ended; ++step)
            for (std::uint64_t kept = 0, all = 1; kept < all; ++kept) {
                lossy_state state(24);
                ended = search_until(in, state, step);
                if (ended) break;
                all = std::uint64_t{1} << state.undecided();
                state.fail(kept);
                check_queue(state);
                ASSERT_TRUE(search(in, state));
                ASSERT_EQ(levels_of(state), wanted)
                    << "seed " << seed << ", step " << step << ", kept " << kept;
            }
    }
}

TEST(Search, SurvivesManyLossesInARow) {
    random_words random(5);
    for (unsigned trial = 0; trial < 300; ++trial) {
        const graph in({40, 200, trial});
        lossy_state state(40);
        while (!HasFailure() && !search_until(in, state, 1 + random.below(12))) {
            state.fail(random.word());
            check_queue(state);
        }
        ASSERT_EQ(levels_of(state), plain_levels(in)) << "trial " << trial;
    }
}

// --- Engines ---------------------------------------------------------------------------------

class SearchOn : public testing::TestWithParam<std::tuple<std::string, bool>> {
protected:
    SearchOn() {
        options_.engine = std::get<0>(GetParam());
        options_.power = std::get<1>(GetParam());
        options_.path = "/dev/shm/holdfast-bfs-test." + std::to_string(::getpid());
        std::filesystem::remove(options_.path);
    }
    ~SearchOn() override { std::filesystem::remove(options_.path); }

    // A process searches and dies after the step. False when the search was over before.
    bool run_until(const graph& in, std::uint64_t step) const {
        const pid_t child = ::fork();
        if (child == 0) {
            last_step = step;
            auto state = open_state(options_, in.description());
            if (!state) ::_exit(2);
            const auto found = search(in, **state, [](std::uint64_t now) {
                if (now == last_step) ::raise(SIGKILL);
            });
            state = status();
            ::_exit(found ? 0 : 3);
        }
        int how = 0;
        ::waitpid(child, &how, 0);
        EXPECT_TRUE(WIFSIGNALED(how) || WEXITSTATUS(how) == 0) << "step " << step << ": " << how;
        return WIFSIGNALED(how);
    }

    state_options options_;
};

/// Engines that keep anything.
class DurableSearchOn : public SearchOn {};

TEST_P(SearchOn, FindsTheLevelsOfAPlainOne) {
    const graph in({2000, 12000, 3});
    auto state = open_state(options_, in.description());
    ASSERT_TRUE(state) << state.error().what();
    const auto found = search(in, **state);
    ASSERT_TRUE(found);
    const auto wanted = plain_levels(in);
    EXPECT_EQ(levels_of(**state), wanted);
    EXPECT_EQ(found->pushed, found->reached);
    EXPECT_EQ(found->popped, found->reached);
    EXPECT_EQ(found->reached, 2000U - std::ranges::count(wanted, 0U));
    EXPECT_EQ(found->depth + 1, *std::ranges::max_element(wanted));
}

TEST_P(DurableSearchOn, GoesOnAfterADeathAtEachStep) {
    const graph in({20, 60, 2});
    const auto wanted = plain_levels(in);
    for (std::uint64_t step = 1; run_until(in, step); ++step) {
        auto state = open_state(options_, in.description());
        ASSERT_TRUE(state) << state.error().what();
        check_queue(**state);
        const auto levels = (*state)->levels();
        const auto unknown = static_cast<std::uint64_t>(std::ranges::count(levels, 0U));
        const auto found = search(in, **state);
        ASSERT_TRUE(found);
        ASSERT_EQ(levels_of(**state), wanted) << "step " << step;
        // Once each: nodes that had no level yet, and at most one that had only been given one.
        const std::uint64_t never = std::ranges::count(wanted, 0U);
        EXPECT_GE(found->pushed, unknown - never) << "step " << step;
        EXPECT_LE(found->pushed, unknown - never + 1) << "step " << step;
        state = status();
        std::filesystem::remove(options_.path);
    }
}

TEST_P(DurableSearchOn, RefusesTheSearchOfAnotherGraph) {
    {
        auto state = open_state(options_, {50, 100, 1});
        ASSERT_TRUE(state) << state.error().what();
    }
    const auto other = open_state(options_, {50, 100, 2});
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().code(), errc::wrong_layout);
}

INSTANTIATE_TEST_SUITE_P(Engines, SearchOn,
                         testing::Combine(testing::Values("mod", "pmdk", "volatile"),
                                          testing::Bool()),
                         [](const auto& given) {
                             return std::get<0>(given.param) +
                                    (std::get<1>(given.param) ? "_pmem" : "_process");
                         });
INSTANTIATE_TEST_SUITE_P(Engines, DurableSearchOn,
                         testing::Combine(testing::Values("mod", "pmdk"), testing::Bool()),
                         [](const auto& given) {
                             return std::get<0>(given.param) +
                                    (std::get<1>(given.param) ? "_pmem" : "_process");
                         });

} // namespace
} // namespace hf::apps::bfs
