// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: mod::stack and mod::queue are a stack and a queue, whatever the elements and the mode, and
// keep no node that nobody names. Method: random operations with fixed seeds beside a std::deque
// whose front goes next, with batches, versions and branches between them, compared as a whole
// every few steps, the nodes counted by a walk of the kind; pools that run full; reopening; nodes
// that are damaged. Crashes are the business of the crash checker.
#include <holdfast/mod/queue.hpp>
#include <holdfast/mod/stack.hpp>
#include <holdfast/mod/update.hpp>
#include <holdfast/persist.hpp>
#include <holdfast/pool.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <random>
#include <ranges>
#include <string>
#include <thread>
#include <tuple>
#include <unistd.h>
#include <vector>

namespace {

using namespace hf::literals;
namespace mod = hf::mod;

struct empty {
    bool operator==(const empty&) const = default;
};
struct alignas(16) aligned_value {
    std::uint64_t low, high;
    bool operator==(const aligned_value&) const = default;
};
struct large_value {
    std::array<std::uint64_t, 40> words;
    bool operator==(const large_value&) const = default;
};

// Things made of numbers.
template <class T> T made_of(std::uint64_t n) { return static_cast<T>(n); }
template <> empty made_of(std::uint64_t) { return {}; }
template <> aligned_value made_of(std::uint64_t n) { return {n, ~n}; }
template <> large_value made_of(std::uint64_t n) {
    large_value made;
    made.words.fill(n);
    return made;
}
template <> std::string made_of(std::uint64_t n) { // of 0 to 299 bytes, zeros among them
    if (n % 11 == 0) return {};
    return std::to_string(n) + std::string(n % 13 == 0 ? 280 : n % 5, static_cast<char>(n % 3));
}

template <class Container> constexpr bool is_stack = requires(const Container& c) { c.top(); };
template <class Container> using element_of = typename Container::value_type;
template <class Container> using model_of = std::deque<element_of<Container>>; // next: the front
template <class Container> void push(model_of<Container>& model, element_of<Container> value) {
    if (is_stack<Container>) model.push_front(std::move(value));
    else model.push_back(std::move(value));
}

static_assert(std::forward_iterator<mod::stack<std::string>::batch::iterator>);
static_assert(std::ranges::forward_range<const mod::queue<int>>);
static_assert(std::ranges::forward_range<mod::queue<std::string>::version>);
static_assert(std::is_same_v<decltype(std::declval<mod::stack<int>>().pop()), hf::result<int>>);

/// Counts what hangs on a word, as reclamation would.
struct counting final : mod::visitor {
    struct found {
        mod::ref at;
        std::uint32_t context;
    };
    std::vector<found> left;
    std::uint64_t nodes = 0;
    void node(mod::ref at, std::size_t, std::uint32_t context) override {
        left.push_back({at, context});
        ++nodes;
    }
    bool corrupt() const {
        return std::ranges::any_of(left, [](const found& f) { return f.at == mod::ref_max; });
    }
};
const mod::kind& kind_of(bool stack) {
    return stack ? mod::detail::stack_kind : mod::detail::queue_kind;
}
template <class Container> std::uint64_t nodes_of(const Container& container) {
    const mod::kind& kind = kind_of(is_stack<Container>);
    const std::uint64_t shape = container.of()->shape();
    counting to;
    kind.top(to, container.base(), container.word(), shape);
    while (!to.left.empty()) {
        const auto next = to.left.back();
        to.left.pop_back();
        if (next.at == mod::ref_max) continue; // corrupt: counted, which tells
        kind.children(to, mod::detail::node_at<std::byte>(container.base(), next.at),
                      mod::node_bytes_max, next.context, shape);
    }
    return to.nodes;
}

class ModLists : public testing::TestWithParam<hf::mode> {
protected:
    void SetUp() override {
        char directory[] = "/dev/shm/mod_lists_test.XXXXXX";
        ASSERT_NE(mkdtemp(directory), nullptr);
        directory_ = directory;
        path_ = directory_ + "/lists.hf";
        open();
    }
    void TearDown() override {
        pool_.reset();
        std::remove(path_.c_str());
        rmdir(directory_.c_str());
    }
    void open(std::uint64_t create_bytes = 16_MiB, std::uint64_t max_bytes = 1_GiB) {
        pool_.reset();
        hf::open_options options;
        options.layout = "mod_lists_test/1";
        options.create_bytes = create_bytes;
        options.max_bytes = max_bytes;
        options.mode = GetParam();
        options.engines = {mod::engine()};
        auto opened = hf::pool::open(path_, options);
        ASSERT_TRUE(opened) << opened.error().what();
        pool_ = std::make_unique<hf::pool>(std::move(*opened));
    }
    void start_over(std::uint64_t create_bytes, std::uint64_t max_bytes) {
        pool_.reset();
        std::remove(path_.c_str());
        open(create_bytes, max_bytes);
    }
    hf::pool& pool() { return *pool_; }
    mod::store& store() { return mod::store::of(*pool_); }
    template <class Container> Container container_of(mod::place at = {"list"}) {
        auto opened = Container::open(pool(), at);
        if (!opened) ADD_FAILURE() << opened.error().what();
        return *opened;
    }
    std::uint64_t nodes_in_use() {
        const auto collected = store().collect();
        EXPECT_TRUE(collected.ok()) << collected.what();
        const auto sound = store().verify();
        EXPECT_TRUE(sound.ok()) << sound.what();
        return store().account().nodes - store().account().retired;
    }

private:
    std::string directory_;
    std::string path_;
    std::unique_ptr<hf::pool> pool_;
};
INSTANTIATE_TEST_SUITE_P(Modes, ModLists, testing::Values(hf::mode::process, hf::mode::pmem),
                         [](const auto& info) {
                             return info.param == hf::mode::process ? "process" : "pmem";
                         });

template <class Container, class Reader>
void expect_same(const Reader& list, const model_of<Container>& model) {
    ASSERT_EQ(list.size(), model.size());
    ASSERT_EQ(list.empty(), model.empty());
    std::size_t seen = 0;
    for (auto&& value : list) {
        ASSERT_LT(seen, model.size());
        ASSERT_TRUE(model[seen] == value) << "element " << seen << " of " << model.size();
        ++seen;
    }
    ASSERT_EQ(seen, model.size());
    if (model.empty()) return;
    if constexpr (requires { list.top(); }) {
        ASSERT_TRUE(list.top() == model.front());
    } else {
        ASSERT_TRUE(list.front() == model.front());
        ASSERT_TRUE(list.back() == model.back());
    }
}

/// One random step on a container or a batch, and on the model. A longer list shrinks more often.
template <class Container, class Target>
void step(std::mt19937_64& random, std::uint64_t pushes_percent, Target& target,
          model_of<Container>& model) {
    if (random() % 100 < pushes_percent) {
        auto value = made_of<element_of<Container>>(random());
        if constexpr (requires { target.push(value).ok(); }) {
            ASSERT_TRUE(target.push(value).ok());
        } else {
            target.push(value);
        }
        push<Container>(model, std::move(value));
        return;
    }
    const auto gone = target.pop();
    ASSERT_EQ(bool(gone), !model.empty());
    if (model.empty()) return;
    ASSERT_TRUE(*gone == model.front());
    model.pop_front();
}

/// A version after random steps, of which the model tells the same.
template <class Container>
typename Container::version tried(std::mt19937_64& random, typename Container::version from,
                                  model_of<Container>& model) {
    for (int i = 0; i < 12; ++i) {
        if (random() % 2 == 0) {
            auto value = made_of<element_of<Container>>(random());
            from = from.push(value);
            push<Container>(model, std::move(value));
        } else {
            from = from.pop();
            if (!model.empty()) model.pop_front();
        }
    }
    return from.update([&](auto& batch) { step<Container>(random, 50, batch, model); });
}

template <class Container> void branch(std::mt19937_64& random, Container& list,
                                       model_of<Container>& model) {
    const auto before = list.snapshot();
    const model_of<Container> then = model;
    auto one_model = model;
    auto other_model = model;
    const auto one = tried<Container>(random, before, one_model);
    const auto other = tried<Container>(random, before, other_model);
    ASSERT_NO_FATAL_FAILURE(expect_same<Container>(one, one_model));
    ASSERT_NO_FATAL_FAILURE(expect_same<Container>(other, other_model));
    ASSERT_TRUE(list.commit(one).ok());
    if (one.word() != before.word()) { // an empty one that nothing was taken from
        ASSERT_EQ(list.commit(other).code(), hf::errc::conflict);
    }
    model = one_model;
    ASSERT_NO_FATAL_FAILURE(step<Container>(random, 50, list, model));
    ASSERT_NO_FATAL_FAILURE(expect_same<Container>(before, then));
    ASSERT_NO_FATAL_FAILURE(expect_same<Container>(one, one_model));
    ASSERT_NO_FATAL_FAILURE(expect_same<Container>(list, model));
}

/// Grows, stays, shrinks, three times; then is emptied.
template <class Container, class Check>
void random_steps(Container list, std::uint64_t seed, int steps, const Check& check) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    model_of<Container> model;
    for (int i = 0; i < steps; ++i) {
        const std::uint64_t pushes = std::array{70U, 50U, 30U}[9 * i / steps % 3];
        ASSERT_NO_FATAL_FAILURE(step<Container>(random, pushes, list, model));
        if (i % (steps / 9) == 0) {
            ASSERT_NO_FATAL_FAILURE(expect_same<Container>(list, model));
            ASSERT_NO_FATAL_FAILURE(check());
        }
        if (random() % 64 == 0) ASSERT_NO_FATAL_FAILURE(branch(random, list, model));
        if (random() % 16 != 0) continue;
        const auto committed = list.update([&](auto& batch) {
            for (int j = 0; j < 30; ++j)
                ASSERT_NO_FATAL_FAILURE(step<Container>(random, pushes, batch, model));
            ASSERT_NO_FATAL_FAILURE(expect_same<Container>(batch, model));
        });
        ASSERT_TRUE(committed.ok()) << committed.what();
    }
    check();
    while (!model.empty()) {
        ASSERT_NO_FATAL_FAILURE(step<Container>(random, 0, list, model));
        if (model.size() % 64 == 0) ASSERT_NO_FATAL_FAILURE(expect_same<Container>(list, model));
    }
    EXPECT_EQ(list.word(), 0U);
    EXPECT_EQ(list.pop().error().code(), hf::errc::not_found);
    check();
}

#define HF_LIST_TEST(name, steps, ...)                                                             \
    TEST_P(ModLists, name) {                                                                       \
        using list = __VA_ARGS__;                                                                  \
        for (std::uint64_t seed = 1; seed <= 3; ++seed)                                            \
            ASSERT_NO_FATAL_FAILURE(random_steps(container_of<list>(), seed, steps, [&] {          \
                ASSERT_EQ(nodes_in_use(), nodes_of(container_of<list>()));                         \
            }));                                                                                   \
    }
HF_LIST_TEST(StackOfNumbers, 9000, mod::stack<std::uint64_t>)
HF_LIST_TEST(StackOfBytes, 9000, mod::stack<std::uint8_t>)
HF_LIST_TEST(StackOfTexts, 6000, mod::stack<std::string>)
HF_LIST_TEST(StackOfAligned, 3000, mod::stack<aligned_value>)
HF_LIST_TEST(StackOfLarge, 3000, mod::stack<large_value>)
HF_LIST_TEST(StackOfNothing, 3000, mod::stack<empty>)
HF_LIST_TEST(QueueOfNumbers, 18000, mod::queue<std::uint64_t>)
HF_LIST_TEST(QueueOfBytes, 18000, mod::queue<std::uint8_t>)
HF_LIST_TEST(QueueOfTexts, 9000, mod::queue<std::string>)
HF_LIST_TEST(QueueOfAligned, 9000, mod::queue<aligned_value>)
HF_LIST_TEST(QueueOfLarge, 9000, mod::queue<large_value>)
HF_LIST_TEST(QueueOfNothing, 9000, mod::queue<empty>)

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
TEST_P(ModLists, ALongStackIsFilledAndEmptied) {
    ASSERT_NO_FATAL_FAILURE(fill_and_empty(container_of<mod::stack<std::uint64_t>>()));
    EXPECT_EQ(nodes_in_use(), 0U);
}
TEST_P(ModLists, ALongQueueIsFilledAndEmptied) {
    ASSERT_NO_FATAL_FAILURE(fill_and_empty(container_of<mod::queue<std::uint64_t>>()));
    EXPECT_EQ(nodes_in_use(), 0U);
}

// (3) of queue.hpp.
TEST_P(ModLists, AQueueThatShrankKeepsFewDeadChunks) {
    auto list = container_of<mod::queue<std::uint64_t>>();
    ASSERT_TRUE(list.update([](auto& batch) {
                        for (std::uint64_t i = 0; i < 100'000; ++i) batch.push(i);
                    })
                    .ok());
    for (std::uint64_t left = 100'000; left > 10; --left) {
        ASSERT_TRUE(list.pop());
        if (left % 1'000 != 0) continue;
        const std::uint64_t alive = left / 7 + 2;
        // Groups and levels: one node for 14 chunks, one for 14 groups, and both ends of each.
        EXPECT_LE(nodes_of(list), alive + alive / 13 + 15 + 2 * 5) << left << " left";
    }
    EXPECT_LE(nodes_of(list), 2U + 15 + 5);
}

TEST_P(ModLists, AShortQueueStaysSmallForEver) {
    auto list = container_of<mod::queue<std::string>>();
    for (std::uint64_t i = 0; i < 20; ++i) ASSERT_TRUE(list.push(made_of<std::string>(i)).ok());
    for (std::uint64_t i = 0; i < 20'000; ++i) {
        ASSERT_TRUE(list.push(made_of<std::string>(i + 20)).ok());
        const auto gone = list.pop();
        ASSERT_TRUE(gone);
        ASSERT_EQ(*gone, made_of<std::string>(i));
        // 20 blobs, those of 14 that are dead beside a live one, header, level and chunks.
        ASSERT_LE(nodes_of(list), 20U + 14 + 1 + 1 + 3) << i;
    }
}

TEST_P(ModLists, WhatIsCommittedIsThereAfterReopening) {
    std::mt19937_64 random(5);
    model_of<mod::stack<std::string>> texts;
    model_of<mod::queue<std::uint64_t>> numbers;
    for (int round = 0; round < 4; ++round) {
        auto stack = container_of<mod::stack<std::string>>({"texts"});
        auto queue = container_of<mod::queue<std::uint64_t>>({"numbers"});
        ASSERT_NO_FATAL_FAILURE(expect_same<mod::stack<std::string>>(stack, texts));
        ASSERT_NO_FATAL_FAILURE(expect_same<mod::queue<std::uint64_t>>(queue, numbers));
        for (int i = 0; i < 2000; ++i) {
            ASSERT_NO_FATAL_FAILURE(step<mod::stack<std::string>>(random, 60, stack, texts));
            ASSERT_NO_FATAL_FAILURE(step<mod::queue<std::uint64_t>>(random, 60, queue, numbers));
        }
        EXPECT_EQ(nodes_in_use(), nodes_of(stack) + nodes_of(queue));
        ASSERT_NO_FATAL_FAILURE(open());
    }
    EXPECT_EQ(mod::queue<std::uint64_t>::open(pool(), {"texts"}).error().code(),
              hf::errc::wrong_layout);
    EXPECT_EQ(mod::stack<std::uint64_t>::open(pool(), {"texts"}).error().code(),
              hf::errc::wrong_layout);
}

/// Fills a small pool; then what was in it is all there, and room that is made can be used again.
template <class Container> void until_full(Container list) {
    model_of<Container> model;
    for (std::uint64_t i = 0;; ++i) {
        const auto value = made_of<element_of<Container>>(i);
        const auto done = list.push(value);
        if (!done.ok()) {
            ASSERT_EQ(done.code(), hf::errc::pool_full) << done.what();
            break;
        }
        push<Container>(model, value);
    }
    ASSERT_GT(model.size(), 1'000U);
    ASSERT_NO_FATAL_FAILURE(expect_same<Container>(list, model));
    const auto refused = list.update([&](auto& batch) {
        for (int i = 0; i < 100'000; ++i) batch.push(made_of<element_of<Container>>(1));
        EXPECT_TRUE(batch.failed());
        EXPECT_LE(std::ranges::distance(batch), 100'000 + std::ptrdiff_t(model.size()));
    });
    ASSERT_EQ(refused.code(), hf::errc::pool_full);
    {
        const auto never = list.snapshot().update([&](auto& batch) {
            for (int i = 0; i < 100'000; ++i) batch.push(made_of<element_of<Container>>(1));
        });
        ASSERT_EQ(list.commit(never).code(), hf::errc::pool_full);
    }
    ASSERT_NO_FATAL_FAILURE(expect_same<Container>(list, model));
    const auto half = model.size() / 2;
    while (model.size() > half) {
        const auto gone = list.pop();
        ASSERT_TRUE(gone) << gone.error().what();
        ASSERT_TRUE(*gone == model.front());
        model.pop_front();
    }
    for (std::uint64_t i = 0; i < half / 2; ++i) {
        const auto value = made_of<element_of<Container>>(i);
        ASSERT_TRUE(list.push(value).ok()) << i;
        push<Container>(model, value);
    }
    ASSERT_NO_FATAL_FAILURE(expect_same<Container>(list, model));
}
TEST_P(ModLists, AFullPoolRefusesAndKeepsWhatIsThere) {
    start_over(512_KiB, 1_MiB);
    ASSERT_NO_FATAL_FAILURE(until_full(container_of<mod::stack<std::uint64_t>>()));
    start_over(512_KiB, 1_MiB);
    ASSERT_NO_FATAL_FAILURE(until_full(container_of<mod::stack<std::string>>()));
    start_over(512_KiB, 1_MiB);
    ASSERT_NO_FATAL_FAILURE(until_full(container_of<mod::queue<std::uint64_t>>()));
    start_over(512_KiB, 1_MiB);
    ASSERT_NO_FATAL_FAILURE(until_full(container_of<mod::queue<std::string>>()));
    EXPECT_EQ(nodes_in_use(), nodes_of(container_of<mod::queue<std::string>>()));
}

TEST_P(ModLists, ElementsMoveBetweenThemInOneCommit) {
    using mod::place;
    auto jobs = container_of<mod::queue<std::string>>(place{"jobs", "work", {"jobs", "done"}});
    auto done = container_of<mod::stack<std::string>>(place{"done", "work"});
    auto apart = container_of<mod::stack<std::uint64_t>>({"apart"});
    for (std::uint64_t i = 0; i < 100; ++i) ASSERT_TRUE(jobs.push(std::to_string(i)).ok());
    for (std::uint64_t i = 0; i < 60; ++i) {
        const auto before = jobs.snapshot();
        const auto jobs_left = before.pop();
        const auto more_done = done.snapshot().push(before.front());
        ASSERT_TRUE(store().commit({{jobs.of(), &jobs_left}, {done.of(), &more_done}}).ok());
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
    EXPECT_EQ(store().commit({{jobs.of(), &jobs_left}, {apart.of(), &unrelated}}).code(),
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
template <class Container> void expect_points(Container list, std::uint64_t points) {
    for (std::uint64_t i = 0; i < 500; ++i)
        ASSERT_EQ(cost_of([&] { ASSERT_TRUE(list.push(i).ok()); }).fences, points);
    for (std::uint64_t i = 0; i < 500; ++i)
        ASSERT_EQ(cost_of([&] { ASSERT_TRUE(list.pop()); }).fences, points);
    ASSERT_EQ(cost_of([&] { (void)list.pop(); }).fences, 0U);
    ASSERT_EQ(cost_of([&] { (void)list.clear(); }).fences, 0U);
    ASSERT_EQ(cost_of([&] {
                  (void)list.update([](auto& batch) {
                      for (std::uint64_t i = 0; i < 500; ++i) batch.push(i);
                  });
              }).fences,
              points);
    ASSERT_EQ(cost_of([&] { (void)list.clear(); }).fences, points);
}
TEST_P(ModLists, AnUpdateHasOneOrderingPointOrTwo) {
    auto stack = container_of<mod::stack<std::uint64_t>>({"stack"});
    auto queue = container_of<mod::queue<std::uint64_t>>({"queue"});
    ASSERT_NO_FATAL_FAILURE(make_room(stack, 2'000));
    ASSERT_NO_FATAL_FAILURE(expect_points(stack, 1));
    ASSERT_NO_FATAL_FAILURE(expect_points(queue, 1));
    stack.set_durability(mod::durability::on_return);
    queue.set_durability(mod::durability::on_return);
    ASSERT_NO_FATAL_FAILURE(expect_points(stack, 2));
    ASSERT_NO_FATAL_FAILURE(expect_points(queue, 2));
}

// (2) of stack.hpp and of queue.hpp, in lines.
TEST_P(ModLists, AnUpdateFlushesWhatItsHeaderSays) {
    if (GetParam() != hf::mode::pmem) return; // nothing is flushed
    auto stack = container_of<mod::stack<std::uint64_t>>({"stack"});
    auto queue = container_of<mod::queue<std::uint64_t>>({"queue"});
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

TEST_P(ModLists, SnapshotsAreReadBesideAWriter) {
    auto list = container_of<mod::queue<std::uint64_t>>();
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

// What verification sees of nodes that are damaged.
class DamagedNodes : public testing::Test {
protected:
    static constexpr std::uint64_t shape = mod::detail::slot_shape({8, 8, false});
    static bool corrupt(bool stack, const void* node, std::uint32_t context) {
        counting to;
        kind_of(stack).children(to, static_cast<const std::byte*>(node), 64, context, shape);
        return to.corrupt();
    }
    static bool corrupt_word(bool stack, mod::detail::counted word) {
        counting to;
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
