// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: mod::stack and mod::queue are a stack and a queue, for all elements and modes. Method: the
// generic suite beside a std::deque whose front goes next, and their own promises: length, chunks
// that die, lines and ordering points, commits of several; nodes that are damaged.
#include <mod/container_suite.hpp>

#include <holdfast/mod/queue.hpp>
#include <holdfast/mod/stack.hpp>
#include <holdfast/mod/update.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <deque>
#include <random>
#include <ranges>
#include <string>
#include <thread>
#include <tuple>

namespace hf::mod::test {
namespace {

template <class Container> constexpr bool is_stack = requires(const Container& c) { c.top(); };
const mod::kind& kind_of(bool stack) {
    return stack ? mod::detail::stack_kind : mod::detail::queue_kind;
}
static_assert(std::forward_iterator<mod::stack<std::string>::batch::iterator>);
static_assert(std::ranges::forward_range<const mod::queue<int>>);
static_assert(std::ranges::forward_range<mod::queue<std::string>::version>);
static_assert(std::is_same_v<decltype(std::declval<mod::stack<int>>().pop()), hf::result<int>>);

/// The generic suite's configuration.
template <class Container> struct list_of {
    using container = Container;
    using version = typename Container::version;
    using element = typename Container::value_type;
    using model = std::deque<element>; // next: the front
    static constexpr std::uint64_t seeds = 2;
    static constexpr int steps = 3000;

    static const mod::kind& kind() { return kind_of(is_stack<Container>); }
    static element value(std::uint64_t n) {
        if constexpr (std::is_same_v<element, std::string>)
            if (n % 11 == 0) return {};
        return made_of<element>(n);
    }
    static void prefill(std::uint64_t, Container&, model&) {}
    static bool add(auto& to, std::uint64_t n) {
        if constexpr (requires { to.failed(); }) {
            to.push(value(n));
            return !to.failed();
        } else {
            return to.push(value(n)).ok();
        }
    }
    static void added(model& m, std::uint64_t n) {
        if (is_stack<Container>) m.push_front(value(n));
        else m.push_back(value(n));
    }
    static std::uint64_t number(const auto& element) { return element; }
    static void step(std::mt19937_64& random, int phase, auto& to, model& m) {
        const std::uint64_t n = random();
        if (random() % 100 < std::array{70U, 50U, 30U}[phase]) {
            added(m, n);
            (void)add(to, n);
            return;
        }
        const auto gone = to.pop();
        EXPECT_EQ(bool(gone), !m.empty());
        if (m.empty() || !gone) return;
        EXPECT_TRUE(*gone == m.front());
        m.pop_front();
    }
    static version stepped(std::mt19937_64& random, const version& from, model& m) {
        const std::uint64_t n = random();
        if (n % 2 == 0) {
            added(m, n);
            return from.push(value(n));
        }
        if (!m.empty()) m.pop_front();
        return from.pop();
    }
    static bool same(const auto& reader, const model& m) {
        if (reader.size() != m.size() || reader.empty() != m.empty()) return false;
        auto wanted = m.begin();
        for (auto&& each : reader)
            if (wanted == m.end() || !(*wanted++ == each)) return false;
        if (wanted != m.end()) return false;
        if (m.empty()) return true;
        if constexpr (is_stack<Container>) return reader.top() == m.front();
        else return reader.front() == m.front() && reader.back() == m.back();
    }
    static void drain(std::mt19937_64& random, Container& from, model& m) {
        while (!m.empty()) {
            step(random, 2, from, m);
            if (m.size() % 64 == 0) {
                EXPECT_TRUE(same(from, m));
            }
        }
        EXPECT_EQ(from.pop().error().code(), errc::not_found);
    }
};

template <template <class> class Container>
using each_form =
    testing::Types<list_of<Container<std::uint64_t>>, list_of<Container<std::uint8_t>>,
                   list_of<Container<std::string>>, list_of<Container<words<2, 16>>>,
                   list_of<Container<words<40>>>, list_of<Container<empty>>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Stacks, ElementTest, each_form<mod::stack>);
INSTANTIATE_TYPED_TEST_SUITE_P(Queues, ElementTest, each_form<mod::queue>);
using main_forms =
    testing::Types<list_of<mod::stack<std::uint64_t>>, list_of<mod::stack<std::string>>,
                   list_of<mod::queue<std::uint64_t>>, list_of<mod::queue<std::string>>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Lists, ContainerTest, main_forms);
using of_numbers =
    testing::Types<list_of<mod::stack<std::uint64_t>>, list_of<mod::queue<std::uint64_t>>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Lists, NumbersTest, of_numbers);

std::string text(std::uint64_t n) { return list_of<mod::queue<std::string>>::value(n); }

class ListTest : public PoolTest {
protected:
    void SetUp() override {
        in.how.create_bytes = 16_MiB;
        in.make_new(GetParam());
        in.how.create_bytes = 512_KiB;
    }
    template <class Container> void expect_nodes() {
        const auto list = in.get<Container>();
        EXPECT_EQ(in.nodes_in_use(), nodes_of(list_of<Container>::kind(), {list.its_root()}));
    }
};
INSTANTIATE_TEST_SUITE_P(Modes, ListTest, testing::ValuesIn(both_modes), mode_name);

TEST_P(ListTest, AnotherElementIsAnotherLayout) {
    (void)in.get<mod::stack<std::string>>({"texts"});
    const auto queue = mod::queue<std::uint64_t>::open(in.pool(), {"texts"});
    EXPECT_EQ(queue.error().code(), errc::wrong_layout);
    const auto stack = mod::stack<std::uint64_t>::open(in.pool(), {"texts"});
    EXPECT_EQ(stack.error().code(), errc::wrong_layout);
}

TEST_P(ListTest, PoppingIsOneOrderingPointOrTwo) {
    const auto check = [](auto list) {
        for (const std::uint64_t points : {1U, 2U}) {
            if (points == 2) list.set_durability(durability::on_return);
            for (std::uint64_t i = 0; i < 500; ++i) EXPECT_TRUE(list.push(i).ok());
            for (std::uint64_t i = 0; i < 500; ++i)
                EXPECT_EQ(points_of([&] { EXPECT_TRUE(list.pop()); }), points);
            EXPECT_EQ(points_of([&] { EXPECT_FALSE(list.pop()); }), 0U);
        }
    };
    check(in.get<mod::stack<std::uint64_t>>({"stack"}));
    check(in.get<mod::queue<std::uint64_t>>({"queue"}));
}

/// Five levels of a queue, a thousand chunks of a stack; single updates, so that paths are copied.
template <class Container> void fill_and_empty(Container list) {
    constexpr std::uint64_t elements = 300'000; // 14^4 chunks of 7 are 268,912
    ASSERT_TRUE(list.update([](auto& batch) {
                        for (std::uint64_t i = 0; i < elements; ++i) batch.push(i);
                    })
                    .ok());
    for (std::uint64_t i = elements; i < elements + 2'000; ++i) ASSERT_TRUE(list.push(i).ok());
    std::uint64_t wanted = is_stack<Container> ? elements + 2'000 : 0;
    for (const std::uint64_t value : list)
        ASSERT_EQ(value, is_stack<Container> ? --wanted : wanted++);
    wanted = is_stack<Container> ? elements + 2'000 : 0;
    while (!list.empty()) {
        const auto gone = list.pop();
        ASSERT_TRUE(gone);
        ASSERT_EQ(*gone, is_stack<Container> ? --wanted : wanted++);
    }
}
TEST_P(ListTest, ALongStackIsFilledAndEmptied) {
    ASSERT_NO_FATAL_FAILURE(fill_and_empty(in.get<mod::stack<std::uint64_t>>()));
    EXPECT_EQ(in.nodes_in_use(), 0U);
}
TEST_P(ListTest, ALongQueueIsFilledAndEmptied) {
    ASSERT_NO_FATAL_FAILURE(fill_and_empty(in.get<mod::queue<std::uint64_t>>()));
    EXPECT_EQ(in.nodes_in_use(), 0U);
}

// (3) of queue.hpp.
TEST_P(ListTest, AQueueThatShrankKeepsFewDeadChunks) {
    auto list = in.get<mod::queue<std::uint64_t>>();
    ASSERT_TRUE(list.update([](auto& batch) {
                        for (std::uint64_t i = 0; i < 100'000; ++i) batch.push(i);
                    })
                    .ok());
    for (std::uint64_t left = 100'000; left > 10; --left) {
        ASSERT_TRUE(list.pop());
        if (left % 1'000 != 0) continue;
        const std::uint64_t alive = left / 7 + 2;
        // Groups and levels: one node for 14 chunks, one for 14 groups, and both ends of each.
        EXPECT_LE(nodes_of(mod::detail::queue_kind, {list.its_root()}),
                  alive + alive / 13 + 15 + 2 * 5)
            << left << " left";
    }
    EXPECT_LE(nodes_of(mod::detail::queue_kind, {list.its_root()}), 2U + 15 + 5);
}

TEST_P(ListTest, AShortQueueStaysSmallForEver) {
    auto list = in.get<mod::queue<std::string>>();
    for (std::uint64_t i = 0; i < 20; ++i) ASSERT_TRUE(list.push(text(i)).ok());
    for (std::uint64_t i = 0; i < 20'000; ++i) {
        ASSERT_TRUE(list.push(text(i + 20)).ok());
        const auto gone = list.pop();
        ASSERT_TRUE(gone);
        ASSERT_EQ(*gone, text(i));
        // 20 blobs, those of 14 that are dead beside a live one, header, level and chunks.
        ASSERT_LE(nodes_of(mod::detail::queue_kind, {list.its_root()}), 20U + 14 + 1 + 1 + 3) << i;
    }
}

/// Fills a small pool; then elements can be taken, and the room that they leave used again.
template <class Container> void until_full(Container list) {
    using config = list_of<Container>;
    typename config::model model;
    for (std::uint64_t i = 0;; ++i) {
        const auto done = list.push(config::value(i));
        if (!done.ok()) {
            ASSERT_EQ(done.code(), errc::pool_full) << done.what();
            break;
        }
        config::added(model, i);
    }
    ASSERT_GT(model.size(), 1'000U);
    ASSERT_TRUE(config::same(list, model));
    const auto half = model.size() / 2;
    while (model.size() > half) {
        const auto gone = list.pop();
        ASSERT_TRUE(gone) << gone.error().what();
        ASSERT_TRUE(*gone == model.front());
        model.pop_front();
    }
    for (std::uint64_t i = 0; i < half / 2; ++i) {
        ASSERT_TRUE(list.push(config::value(i)).ok()) << i;
        config::added(model, i);
    }
    ASSERT_TRUE(config::same(list, model));
}
TEST_P(ListTest, AFullPoolGivesElementsBackAndRoom) {
    const auto small = [&]<class Container>(Container*) {
        in.make_new(GetParam(), 1_MiB);
        ASSERT_NO_FATAL_FAILURE(until_full(in.get<Container>()));
        expect_nodes<Container>();
    };
    small(static_cast<mod::stack<std::uint64_t>*>(nullptr));
    small(static_cast<mod::stack<std::string>*>(nullptr));
    small(static_cast<mod::queue<std::uint64_t>*>(nullptr));
    small(static_cast<mod::queue<std::string>*>(nullptr));
}

TEST_P(ListTest, ElementsMoveBetweenThemInOneCommit) {
    using mod::place;
    auto jobs = in.get<mod::queue<std::string>>(place{"jobs", "work", {"jobs", "done"}});
    auto done = in.get<mod::stack<std::string>>(place{"done", "work"});
    auto apart = in.get<mod::stack<std::uint64_t>>({"apart"});
    for (std::uint64_t i = 0; i < 100; ++i) ASSERT_TRUE(jobs.push(std::to_string(i)).ok());
    for (std::uint64_t i = 0; i < 60; ++i) {
        const auto before = jobs.snapshot();
        const auto jobs_left = before.pop();
        const auto more_done = done.snapshot().push(before.front());
        ASSERT_TRUE(
            in.store().commit({{jobs.its_root(), &jobs_left}, {done.its_root(), &more_done}}).ok());
    }
    EXPECT_EQ(jobs.size(), 40U);
    EXPECT_EQ(jobs.front(), "60");
    EXPECT_EQ(done.size(), 60U);
    EXPECT_EQ(done.top(), "59");
    ASSERT_TRUE(
        mod::update(std::tie(jobs, done), [](auto& from, auto& to) { to.push(*from.pop()); }).ok());
    EXPECT_EQ(jobs.size(), 39U);
    EXPECT_EQ(done.top(), "60");
    const auto unrelated = apart.snapshot().push(7);
    const auto jobs_left = jobs.snapshot().pop();
    ASSERT_TRUE(jobs.push("late").ok());
    EXPECT_EQ(
        in.store().commit({{jobs.its_root(), &jobs_left}, {apart.its_root(), &unrelated}}).code(),
        hf::errc::conflict);
    EXPECT_TRUE(apart.empty());
}

/// Room for what follows: taking an arena from the heap has ordering points of its own.
template <class Container> void make_room(Container list, std::uint64_t elements) {
    ASSERT_TRUE(list.update([&](auto& batch) {
                        for (std::uint64_t i = 0; i < elements; ++i) batch.push(i);
                    })
                    .ok());
    ASSERT_TRUE(list.clear().ok());
    ASSERT_TRUE(list.push(0).ok()); // its fence lets what was cleared be used again
    ASSERT_TRUE(list.pop());
}

struct cost {
    std::uint64_t fences, flushes, copies;
};
template <class Change> cost cost_of(const Change& change) {
    const auto before = hf::persist::thread_counters();
    change();
    const auto now = hf::persist::thread_counters();
    return {now.ordering_points - before.ordering_points, now.flushes - before.flushes,
            now.nt_stores - before.nt_stores};
}
// (2) of stack.hpp and of queue.hpp, in lines.
TEST_P(ListTest, AnUpdateFlushesWhatItsHeaderSays) {
    if (GetParam() != hf::mode::pmem) return; // nothing is flushed
    auto stack = in.get<mod::stack<std::uint64_t>>({"stack"});
    auto queue = in.get<mod::queue<std::uint64_t>>({"queue"});
    constexpr std::uint64_t elements = 98'000;
    ASSERT_NO_FATAL_FAILURE(make_room(stack, 3 * elements));
    ASSERT_TRUE(stack.push(0).ok());
    ASSERT_TRUE(queue.push(0).ok());
    std::uint64_t queue_lines = 0;
    for (std::uint64_t i = 1; i < elements; ++i) {
        ASSERT_EQ(cost_of([&] { ASSERT_TRUE(stack.push(i).ok()); }).flushes, 1U);
        const auto lines = cost_of([&] { ASSERT_TRUE(queue.push(i).ok()); }).flushes;
        if (i % 7 != 0) {
            ASSERT_EQ(lines, 1U);
        }
        queue_lines += lines;
    }
    // 1 + 2/7 + 2/98 + …
    EXPECT_NEAR(double(queue_lines) / elements, 1.308, 0.002);
    queue_lines = 0;
    for (std::uint64_t i = 1; i < elements; ++i) {
        ASSERT_EQ(cost_of([&] { ASSERT_TRUE(stack.pop()); }).flushes, 0U);
        queue_lines += cost_of([&] { ASSERT_TRUE(queue.pop()); }).flushes;
    }
    EXPECT_LE(double(queue_lines) / elements, 0.08);
}

TEST_P(ListTest, SnapshotsAreReadBesideAWriter) {
    auto list = in.get<mod::queue<std::uint64_t>>();
    std::atomic<bool> stop{false};
    std::thread reader([&] {
        while (!stop.load()) {
            const auto now = list.snapshot();
            std::uint64_t wanted = now.empty() ? 0 : now.front();
            for (const std::uint64_t value : now) ASSERT_EQ(value, wanted++);
        }
    });
    std::mt19937_64 random(11);
    std::uint64_t next = 0;
    for (int i = 0; i < 20'000; ++i) {
        if (random() % 100 < 52) ASSERT_TRUE(list.push(next++).ok());
        else (void)list.pop();
    }
    stop.store(true);
    reader.join();
}

// Damaged nodes as verification sees them.
class DamagedNodes : public testing::Test {
protected:
    static constexpr std::uint64_t shape = mod::detail::slot_shape({8, 8, false});
    static bool corrupt(bool stack, const void* node, std::uint32_t context) {
        reached_nodes to;
        kind_of(stack).children(to, static_cast<const std::byte*>(node), 64, context, shape);
        return to.corrupt();
    }
    static bool corrupt_word(bool stack, mod::detail::counted word) {
        reached_nodes to;
        kind_of(stack).top(to, nullptr, word.word(), shape);
        return to.corrupt();
    }
};
TEST_F(DamagedNodes, WordsThatContradictThemselvesAreFound) {
    for (const bool stack : {true, false}) {
        EXPECT_FALSE(corrupt_word(stack, {}));
        EXPECT_FALSE(corrupt_word(stack, {4, 1}));
        EXPECT_TRUE(corrupt_word(stack, {4, 0}));
        EXPECT_TRUE(corrupt_word(stack, {0, 1}));
        EXPECT_TRUE(corrupt_word(stack, {4, 0xffff'ffff}));
    }
}
TEST_F(DamagedNodes, AStackThatEndsEarlyOrLateIsFound) {
    alignas(16) std::array<std::uint32_t, 16> chunk{};
    EXPECT_FALSE(corrupt(true, chunk.data(), 7));
    EXPECT_TRUE(corrupt(true, chunk.data(), 8));
    chunk[0] = 4;
    EXPECT_FALSE(corrupt(true, chunk.data(), 8));
    EXPECT_TRUE(corrupt(true, chunk.data(), 7));
}
TEST_F(DamagedNodes, AQueueThatLacksChunksIsFound) {
    namespace context = mod::detail::queue_context;
    alignas(16) std::array<std::uint32_t, 16> line{};
    const auto header = [&](std::uint32_t level, std::uint32_t used, std::uint32_t count) {
        line = {level, used};
        return corrupt(false, line.data(), context::header(count));
    };
    EXPECT_FALSE(header(0, 3, 3));
    EXPECT_FALSE(header(8, 3, 4));
    EXPECT_TRUE(header(0, 3, 4));
    EXPECT_TRUE(header(8, 0, 4));
    EXPECT_TRUE(header(8, 8, 4));
    mod::detail::queue_node node{0, 2, {4, 8}};
    EXPECT_FALSE(corrupt(false, &node, context::level(1, 2)));
    EXPECT_TRUE(corrupt(false, &node, context::level(1, 3)));
    EXPECT_FALSE(corrupt(false, &node, context::level(2, 28)));
    EXPECT_TRUE(corrupt(false, &node, context::group(1, 2)));
    node.at[0] = 0; // dead, or missing
    EXPECT_FALSE(corrupt(false, &node, context::level(1, 1)));
    EXPECT_TRUE(corrupt(false, &node, context::level(1, 2)));
    node.used = 15;
    EXPECT_TRUE(corrupt(false, &node, context::level(1, 1)));
    node = {0, 14, {4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56}};
    EXPECT_FALSE(corrupt(false, &node, context::group(1, 14)));
    node.deeper = 60;
    EXPECT_TRUE(corrupt(false, &node, context::group(1, 14)));
    node = {12, 1, {4}};
    EXPECT_FALSE(corrupt(false, &node, context::level(7, 1)));
    EXPECT_TRUE(corrupt(false, &node, context::level(8, 1)));
}

} // namespace
} // namespace hf::mod::test
