// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What structures stand on: roots, versions, commits and reclamation, shown on the smallest
// structure there is, a list of numbers whose word is {first node, length}. Crashes are simulated
// by letting go of the pool (abandon); the crash checker explores the rest.
#include <mod/store_impl.hpp>
#include <mod/test_support.hpp>
#include <trace/trace.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/author/blocks.hpp>
#include <holdfast/author/mod/store.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <span>
#include <thread>
#include <vector>

namespace hf::mod {
namespace {

struct list_node {
    ref next;
    std::uint32_t value;
};

void list_top(visitor& to, const std::byte*, std::uint64_t word, std::uint64_t) {
    if (static_cast<ref>(word) != 0) to.node(static_cast<ref>(word), sizeof(list_node), 0);
}
void list_children(visitor& to, const std::byte* node, std::size_t, std::uint32_t, std::uint64_t) {
    const auto* n = reinterpret_cast<const list_node*>(node);
    if (n->next != 0) to.node(n->next, sizeof(list_node), 0);
}
const kind list_kind{builtin_kind::users + 77, "test list", list_top, list_children};

std::uint64_t push(shadow& work, std::uint64_t word, std::uint32_t value) {
    const ref made = work.make(sizeof(list_node));
    if (made == 0) return word;
    *work.at<list_node>(made) = {static_cast<ref>(word), value};
    return (word & ~0xffff'ffffULL) + (std::uint64_t{1} << 32) | made;
}
std::uint64_t pop(shadow& work, std::uint64_t word) {
    const auto first = static_cast<ref>(word);
    work.replaced(first);
    return (word & ~0xffff'ffffULL) - (std::uint64_t{1} << 32) | work.at<list_node>(first)->next;
}
std::vector<std::uint32_t> values(const std::byte* base, std::uint64_t word) {
    std::vector<std::uint32_t> out;
    for (auto at = static_cast<ref>(word); at != 0;) {
        const auto* n = reinterpret_cast<const list_node*>(base + at * granule_bytes);
        out.push_back(n->value);
        at = n->next;
    }
    EXPECT_EQ(out.size(), word >> 32);
    return out;
}
using numbers = std::vector<std::uint32_t>;

class mod_store : public test::PoolTest {
protected:
    void SetUp() override {
        add_kind(list_kind);
        in.make_new(GetParam());
    }
    store& all() { return in.store(); }
    root& list(const place& at) {
        auto opened = all().open(at, list_kind, 0);
        EXPECT_TRUE(opened) << opened.error().what();
        return **opened;
    }
    static status push_one(root& to, std::uint32_t value) {
        auto w = to.write();
        return w.commit(push(w.work(), w.word(), value));
    }
    numbers now(root& of) { return values(of.base(), of.word()); }
    /// Includes nodes that wait for a snapshot.
    std::uint64_t nodes_in_use() { return in.nodes_in_use() + all().account().retired; }
};

TEST_P(mod_store, keeps_what_was_committed_over_closes_and_crashes) {
    ASSERT_TRUE(push_one(list({"a"}), 1).ok());
    ASSERT_TRUE(push_one(list({"b"}), 2).ok());
    in.open();
    EXPECT_EQ(now(list({"a"})), numbers{1});
    ASSERT_TRUE(push_one(list({"a"}), 3).ok());
    in.crash_and_open();
    EXPECT_EQ(now(list({"a"})), (numbers{3, 1}));
    EXPECT_EQ(now(list({"b"})), numbers{2});
    EXPECT_EQ(nodes_in_use(), 3U);
}

// After a crash the trace finds out which nodes are free. Before that an update waits instead of
// finding the pool full.
TEST_P(mod_store, a_pool_is_full_when_the_trace_has_said_so) {
    in.make_new(GetParam(), 4_MiB);
    const auto change = [&](const auto& once) {
        auto w = list({"a"}).write();
        std::uint64_t word = w.word();
        for (int i = 0; i < 1000; ++i) word = once(w.work(), word);
        return w.commit(word);
    };
    const auto add = [](shadow& work, std::uint64_t word) { return push(work, word, 7); };
    while (change(add).ok()) {}
    while (push_one(list({"a"}), 7).ok()) {}
    ASSERT_TRUE(change(pop).ok());
    in.crash();
    EXPECT_TRUE(push_one(list({"a"}), 8).ok());
}

/// Counts flushes while it lives.
class flushes_seen {
public:
    flushes_seen() { ranges_.clear(); }
    static bool covered(const void* at, std::size_t bytes) {
        const auto* from = static_cast<const std::byte*>(at);
        return std::ranges::any_of(ranges_, [&](const std::span<const std::byte>& r) {
            return r.data() <= from && from + bytes <= r.data() + r.size();
        });
    }

private:
    static inline std::vector<std::span<const std::byte>> ranges_;
    trace::listening flushes_{[](const trace::event& what, const void* at, std::size_t bytes) {
        const auto* from = static_cast<const std::byte*>(at);
        if (what == trace::flush) ranges_.push_back({from, from + bytes});
    }};
};

superblock& superblock_in(pool& p) {
    pool_file& file = *p.internals().file;
    return *reinterpret_cast<superblock*>(file.base() + file.roots()->anchor(engine_mod));
}

// The last words of a killed process may be stored and not flushed, and are believed by the next.
TEST_P(mod_store, writes_back_what_a_killed_process_stored_last) {
    if (GetParam() == mode::process) return; // nothing has to be
    ASSERT_TRUE(push_one(list({"a"}), 1).ok());
    ASSERT_TRUE(push_one(list({"b"}), 2).ok());
    const flushes_seen seen;
    in.crash_and_open();
    EXPECT_TRUE(seen.covered(&superblock_in(in.pool()), sizeof(superblock) + 2 * sizeof(cell)));
}

// Another thread has stored that nodes are shared, and has not flushed it yet.
TEST_P(mod_store, shares_nodes_only_when_it_is_durable_that_there_may_be_such) {
    if (GetParam() == mode::process) return;
    root& a = list({"a"});
    root& b = list({"b"});
    ASSERT_TRUE(push_one(a, 1).ok());
    const version of_a = a.read();
    version v = b.read().derived();
    v.depends_on(of_a);
    v.work().shared(static_cast<ref>(of_a.word()));
    v.set_word(push(v.work(), of_a.word(), 99));
    v.done();
    superblock_in(in.pool()).shares = 1;
    const flushes_seen seen;
    ASSERT_TRUE(b.commit(v).ok());
    EXPECT_TRUE(seen.covered(&superblock_in(in.pool()).shares, sizeof(std::uint64_t)));
}

TEST_P(mod_store, reclaims_what_was_replaced_and_what_a_crash_left) {
    root& a = list({"a"});
    for (std::uint32_t i = 0; i < 5000; ++i) {
        ASSERT_TRUE(push_one(a, i).ok());
        if (i % 2 == 0) continue;
        auto w = a.write();
        ASSERT_TRUE(w.commit(pop(w.work(), w.word())).ok());
    }
    EXPECT_EQ(nodes_in_use(), 2500U);
    {
        auto w = a.write(); // dropped
        push(w.work(), w.word(), 7);
    }
    EXPECT_EQ(nodes_in_use(), 2500U);
    // The crash happens while a writer works: its fresh node belongs to nobody.
    auto* const unfinished = new root::writing(a.write());
    push(unfinished->work(), unfinished->word(), 7);
    in.crash_and_open();
    list({"a"});
    EXPECT_EQ(nodes_in_use(), 2500U);
    ::operator delete(unfinished); // without its destructor: its pool is gone
}

TEST_P(mod_store, a_commit_may_be_of_many_steps_and_only_the_last_word_counts) {
    root& a = list({"a"});
    auto w = a.write();
    std::uint64_t word = w.word();
    for (std::uint32_t i = 0; i < 100; ++i) word = push(w.work(), word, i);
    for (std::uint32_t i = 0; i < 40; ++i) word = pop(w.work(), word);
    ASSERT_TRUE(w.commit(word).ok());
    EXPECT_EQ(now(a).size(), 60U);
    EXPECT_EQ(nodes_in_use(), 60U);
}

TEST_P(mod_store, every_node_of_an_update_is_fresh_however_many_there_are) {
    root& r = list({"list"});
    for (int commits = 0; commits < 3; ++commits) {
        auto w = r.write();
        std::uint64_t word = w.word();
        std::vector<ref> made;
        for (std::uint32_t i = 0; i < 30; ++i) {
            word = push(w.work(), word, i);
            made.push_back(static_cast<ref>(word));
            for (const ref node : made) ASSERT_TRUE(w.work().fresh(node)) << commits << ": " << i;
        }
        ASSERT_TRUE(w.commit(word).ok());
        EXPECT_FALSE(r.write().work().fresh(made.front()));
    }
}

TEST_P(mod_store, versions_stay_readable_while_others_are_committed) {
    root& a = list({"a"});
    ASSERT_TRUE(push_one(a, 1).ok());
    version before = a.read();
    for (std::uint32_t i = 0; i < 100; ++i) {
        auto w = a.write();
        ASSERT_TRUE(w.commit(push(w.work(), pop(w.work(), w.word()), i + 10)).ok());
    }
    EXPECT_EQ(values(before.base(), before.word()), numbers{1});
    EXPECT_EQ(now(a), numbers{109});
    EXPECT_GT(all().account().retired, 50U) << "the snapshot holds them";
    before = {};
    EXPECT_EQ(nodes_in_use(), 1U);
}

TEST_P(mod_store, pure_updates_are_committed_if_nobody_came_first) {
    root& a = list({"a"});
    const version base = a.read();
    const auto with = [](std::uint32_t value) {
        return [value](shadow& work, std::uint64_t word) { return push(work, word, value); };
    };
    const version one = base.updated(with(1)), two = one.updated(with(2)),
                  other = one.updated(with(3));
    EXPECT_EQ(values(two.base(), two.word()), (numbers{2, 1}));
    ASSERT_TRUE(a.commit(two).ok());
    EXPECT_EQ(now(a), (numbers{2, 1}));
    EXPECT_EQ(a.commit(other).code(), errc::conflict);
    EXPECT_EQ(values(other.base(), other.word()), (numbers{3, 1}));
    const version three = two.updated(with(4));
    ASSERT_TRUE(a.commit(three).ok()) << "two is current, so three follows it";
    EXPECT_EQ(now(a), (numbers{4, 2, 1}));
}

TEST_P(mod_store, siblings_change_together) {
    const std::initializer_list<std::string_view> names{"x", "y"};
    root &x = list({"x", "f", names}), &y = list({"y", "f", names});
    ASSERT_TRUE(push_one(x, 1).ok());
    {
        const auto with = [](std::uint32_t value) {
            return [value](shadow& s, std::uint64_t w) { return push(s, w, value); };
        };
        const version x2 = x.read().updated(with(2)), y2 = y.read().updated(with(3));
        const auto before = persist::thread_counters().ordering_points;
        ASSERT_TRUE(all().commit({{&x, &x2}, {&y, &y2}}).ok());
        EXPECT_EQ(persist::thread_counters().ordering_points - before, 1U);
    }
    in.crash_and_open();
    EXPECT_EQ(now(list({"x", "f"})), (numbers{2, 1}));
    EXPECT_EQ(now(list({"y", "f"})), numbers{3});
    EXPECT_EQ(nodes_in_use(), 4U) << "three and the parent";
    EXPECT_EQ(all().open({"z", "f"}, list_kind, 0).error().code(), errc::bad_argument);
}

TEST_P(mod_store, unrelated_roots_change_together) {
    root &a = list({"a"}), &b = list({"b"});
    for (std::uint32_t i = 0; i < 10; ++i) {
        const auto step = [&](shadow& s, std::uint64_t w) { return push(s, w, i); };
        const version a2 = a.read().updated(step), b2 = b.read().updated(step);
        ASSERT_TRUE(all().commit({{&a, &a2}, {&b, &b2}}).ok());
        ASSERT_TRUE(push_one(b, 100).ok()) << "the record must not undo this";
    }
    in.crash_and_open();
    EXPECT_EQ(now(list({"a"})).size(), 10U);
    EXPECT_EQ(now(list({"b"})).size(), 20U);
    EXPECT_EQ(nodes_in_use(), 30U);
}

TEST_P(mod_store, several_roots_are_written_jointly) {
    const std::initializer_list<std::string_view> names{"x", "y", "z"};
    root &x = list({"x", "f", names}), &y = list({"y", "f"}), &z = list({"z", "f"}),
         &a = list({"a"});
    for (std::uint32_t i = 0; i < 100; ++i) {
        {
            root* const members[] = {&y, &x, &z};
            joint_writing w(members);
            for (std::size_t m = 0; m < 2; ++m) w.set_word(m, push(w.work(m), w.word(m), i));
            const auto before = persist::thread_counters().ordering_points;
            ASSERT_TRUE(w.commit().ok());
            EXPECT_LE(persist::thread_counters().ordering_points - before, 1U + (i == 0 ? 2 : 0));
        }
        root* const unrelated[] = {&a, &z};
        joint_writing w(unrelated);
        for (std::size_t m = 0; m < 2; ++m) w.set_word(m, push(w.work(m), w.word(m), i));
        if (i % 2 == 0) continue; // dropped
        ASSERT_TRUE(w.commit().ok());
    }
    EXPECT_EQ(nodes_in_use(), 301U);
    in.crash_and_open();
    EXPECT_EQ(now(list({"x", "f"})).size(), 100U);
    EXPECT_EQ(now(list({"y", "f"})).size(), 100U);
    EXPECT_EQ(now(list({"z", "f"})).size(), 50U);
    EXPECT_EQ(now(list({"a"})).size(), 50U);
    EXPECT_EQ(nodes_in_use(), 301U);
}

TEST_P(mod_store, one_ordering_point_or_two) {
    root& a = list({"a"});
    ASSERT_TRUE(push_one(a, 0).ok()); // takes an arena
    const auto points = [&] {
        const auto before = persist::thread_counters().ordering_points;
        EXPECT_TRUE(push_one(a, 1).ok());
        return persist::thread_counters().ordering_points - before;
    };
    EXPECT_EQ(points(), 1U);
    a.set_durability(durability::on_return);
    EXPECT_EQ(points(), 2U);
}

TEST_P(mod_store, a_full_pool_leaves_everything_as_it_was) {
    in.make_new(GetParam(), 1_MiB);
    root& a = list({"a"});
    std::uint32_t pushed = 0;
    status s;
    while ((s = push_one(a, pushed)).ok()) ++pushed;
    EXPECT_EQ(s.code(), errc::pool_full);
    EXPECT_EQ(now(a).size(), pushed);
    {
        auto w = a.write();
        w.work().released(static_cast<ref>(w.word()));
        ASSERT_TRUE(w.commit(0).ok());
    }
    EXPECT_TRUE(push_one(a, 1).ok()) << "there is room again at once";
    auto w = a.write();
    EXPECT_NE(w.work().make(20'000), 0U) << "and for nodes of another size";
}

TEST_P(mod_store, writers_of_one_root_take_turns) {
    root& a = list({"a"});
    constexpr std::uint32_t each = 2000;
    std::vector<std::thread> threads;
    for (std::uint32_t t = 0; t < 3; ++t)
        threads.emplace_back([&a, t] {
            for (std::uint32_t i = 0; i < each; ++i) EXPECT_TRUE(push_one(a, t).ok());
        });
    for (auto& t : threads) t.join();
    EXPECT_EQ(now(a).size(), 3 * each);
    EXPECT_EQ(nodes_in_use(), 3 * each);
}

TEST_P(mod_store, nodes_with_two_parents_live_as_long_as_one_of_them) {
    root &a = list({"a"}), &b = list({"b"});
    for (std::uint32_t i = 0; i < 10; ++i) ASSERT_TRUE(push_one(a, i).ok());
    const version tail = a.read();
    const auto share = [&] {
        version v = b.read().derived();
        v.depends_on(tail);
        v.work().shared(static_cast<ref>(tail.word()));
        v.set_word(push(v.work(), tail.word(), 99));
        v.done();
        return v;
    };
    {
        const version shares = share();
        ASSERT_TRUE(b.commit(shares).ok());
    }
    EXPECT_EQ(nodes_in_use(), 11U);
    const auto clear = [](root& of) {
        auto w = of.write();
        w.work().released(static_cast<ref>(w.word()));
        return w.commit(0);
    };
    {
        auto w = a.write(); // goes past a node that b keeps
        ASSERT_TRUE(w.commit(pop(w.work(), w.word())).ok());
    }
    { const version gone = tail; }
    EXPECT_EQ(now(list({"b"})).size(), 11U);
    EXPECT_EQ(now(list({"a"})).size(), 9U);
    ASSERT_TRUE(clear(a).ok());
    EXPECT_EQ(now(b).size(), 11U);
    ASSERT_TRUE(clear(b).ok());
}

TEST_P(mod_store, sharing_is_counted_again_after_a_crash) {
    {
        root &a = list({"a"}), &b = list({"b"});
        for (std::uint32_t i = 0; i < 10; ++i) ASSERT_TRUE(push_one(a, i).ok());
        version v = b.read().derived();
        const version tail = a.read();
        v.depends_on(tail);
        v.work().shared(static_cast<ref>(tail.word()));
        v.set_word(push(v.work(), tail.word(), 99));
        v.done();
        ASSERT_TRUE(b.commit(v).ok());
    }
    in.crash_and_open();
    EXPECT_EQ(all().account().shared_nodes, 1U);
    {
        root& b = list({"b"});
        auto w = b.write();
        w.work().released(static_cast<ref>(w.word()));
        ASSERT_TRUE(w.commit(0).ok());
    }
    EXPECT_EQ(nodes_in_use(), 10U);
    EXPECT_EQ(now(list({"a"})).size(), 10U);
    in.open();
    EXPECT_EQ(nodes_in_use(), 10U);
}

TEST_P(mod_store, refuses_another_kind_shape_or_name) {
    list({"a"});
    EXPECT_EQ(all().open({"a"}, list_kind, 5).error().code(), errc::wrong_layout);
    EXPECT_EQ(all().open({""}, list_kind, 0).error().code(), errc::bad_argument);
    EXPECT_EQ(all().open({std::string(64, 'x')}, list_kind, 0).error().code(), errc::bad_argument);
    EXPECT_EQ(all().open({"m", "a"}, list_kind, 0).error().code(), errc::wrong_layout);
}

TEST_P(mod_store, memory_of_one_size_serves_another_when_it_is_free) {
    root& a = list({"a"});
    for (int round = 0; round < 20; ++round) {
        auto w = a.write();
        std::uint64_t word = w.word();
        for (std::uint32_t i = 0; i < 1000; ++i) {
            const ref made = w.work().make(sizeof(list_node) + std::size_t(round) * 64);
            ASSERT_NE(made, 0U);
            *w.work().at<list_node>(made) = {static_cast<ref>(word), i};
            word = (word & ~0xffff'ffffULL) + (std::uint64_t{1} << 32) | made;
        }
        ASSERT_TRUE(w.commit(word).ok());
        auto c = a.write();
        c.work().released(static_cast<ref>(c.word()));
        ASSERT_TRUE(c.commit(0).ok());
    }
    EXPECT_EQ(nodes_in_use(), 0U);
    EXPECT_LT(all().account().arena_bytes, 10_MiB) << "13 MiB were asked for in all";
}

TEST_P(mod_store, gives_memory_back_to_the_heap) {
    const auto blocks = [&] { return account(in.pool()).block_bytes; };
    root &a = list({"a"}), &b = list({"b"});
    ASSERT_TRUE(push_one(b, 1).ok());
    for (int round = 0; round < 3; ++round) {
        const auto before = blocks();
        for (std::uint32_t i = 0; i < 2000; ++i) ASSERT_TRUE(push_one(a, i).ok());
        {
            auto w = a.write();
            ASSERT_NE(w.work().make(300'000), 0U); // not part of the version: dropped below
        }
        EXPECT_GT(blocks(), before + 300'000);
        {
            auto w = a.write();
            w.work().released(static_cast<ref>(w.word()));
            ASSERT_TRUE(w.commit(0).ok());
        }
        ASSERT_TRUE(all().collect().ok());
        EXPECT_LE(blocks(), before);
        EXPECT_EQ(now(b), numbers{1});
        ASSERT_TRUE(all().verify().ok());
    }
    in.crash_and_open();
    EXPECT_EQ(now(list({"b"})), numbers{1});
    EXPECT_EQ(nodes_in_use(), 1U);
}

TEST_P(mod_store, nodes_of_any_size) {
    root& a = list({"a"});
    for (std::size_t bytes : {16ul, 500ul, 600ul, 5000ul, 60000ul, 70000ul, 300000ul}) {
        auto w = a.write();
        const ref made = w.work().make(bytes);
        ASSERT_NE(made, 0U);
        std::memset(w.work().at<std::byte>(made), 0x55, bytes);
        *w.work().at<list_node>(made) = {static_cast<ref>(w.word()), 1};
        ASSERT_TRUE(w.commit((w.word() & ~0xffff'ffffULL) + (std::uint64_t{1} << 32) | made).ok());
    }
    in.crash_and_open();
    EXPECT_EQ(now(list({"a"})).size(), 7U);
    EXPECT_EQ(nodes_in_use(), 7U);
}

INSTANTIATE_TEST_SUITE_P(modes, mod_store, testing::ValuesIn(test::both_modes), test::mode_name);

} // namespace
} // namespace hf::mod
