// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: readers of snapshots see whole versions beside any writer, writers lose no update of each
// other, and the trace after a crash disturbs neither. Method: threads with numbers of operations
// fixed by a seed work on lists whose invariants any torn or reused node breaks; built for
// ThreadSanitizer too, where fewer of them do.
#include <mod/block_list.hpp>
#include <mod/test_support.hpp>

#include <holdfast/author/mod/store.hpp>
#include <holdfast/mod/map.hpp>
#include <holdfast/mod/vector.hpp>
#include <holdfast/pool.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace hf;
namespace list = hf::mod::block_list;
using mod::shadow;
using mod::version;

[[maybe_unused]] const bool kind_known = (mod::add_kind(list::kind), true);

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
constexpr unsigned slower = 8;
#else
constexpr unsigned slower = 1;
#endif
#else
constexpr unsigned slower = 1;
#endif
constexpr std::uint64_t seed = 20261121;

class ModConcurrency : public ::testing::Test {
protected:
    ModConcurrency() {
        in.how.create_bytes = 4_MiB;
        in.make_new(mode::pmem, 256_MiB);
    }
    mod::store& store() { return in.store(); }
    mod::root& root(std::string_view name, std::string_view family = {}) {
        auto opened = store().open({name, family, {"left", "right"}}, list::kind, 0);
        EXPECT_TRUE(opened) << opened.error().what();
        return **opened;
    }
    /// The store's own view agrees with what is reachable from these roots.
    void expect_whole(const std::vector<mod::root*>& roots, std::uint64_t parents = 0) {
        EXPECT_TRUE(store().wait_for_trace().ok());
        EXPECT_TRUE(store().verify().ok()) << store().verify().what();
        EXPECT_TRUE(store().collect().ok());
        std::set<mod::ref> reached;
        for (mod::root* r : roots)
            for (mod::ref n = list::first_of(r->word()); n != 0; n = list::at(r->base(), n)->next)
                reached.insert(n);
        EXPECT_EQ(store().account().nodes, reached.size() + parents);
        EXPECT_EQ(store().account().retired, 0U);
    }

    mod::test::test_pool in;
};

/// Runs all of 'bodies' at once.
template <class... Body> void at_once(Body&&... bodies) {
    std::vector<std::thread> threads;
    (threads.emplace_back(bodies), ...);
    for (std::thread& t : threads) t.join();
}

std::vector<std::uint64_t> values_of(const version& v) {
    std::vector<std::uint64_t> out;
    EXPECT_TRUE(list::values(v.base(), v.word(), out)) << "a snapshot is torn";
    return out;
}

/// Every node gets 'value'.
std::uint64_t set_all(shadow& s, std::uint64_t word, std::uint64_t value) {
    for (std::uint64_t i = list::count_of(word); i-- > 0;) word = list::set(s, word, i, value);
    return word;
}

TEST_F(ModConcurrency, ReadersSeeWholeVersionsBesideAWriter) {
    mod::root& r = root("all alike");
    ASSERT_TRUE(list::updated(r, [](shadow& s, std::uint64_t w) {
                    for (unsigned i = 0; i < 20; ++i) w = list::push(s, w, 0, 1 + i % 7);
                    return w;
                }).ok());
    constexpr std::uint64_t commits = 8000 / slower;
    std::atomic<bool> over{false};
    const auto reader = [&](std::uint64_t number) {
        std::mt19937_64 random(seed + number);
        std::uint64_t newest = 0;
        std::vector<version> kept; // some versions are held for long
        while (!over) {
            const version v = r.read();
            const auto values = values_of(v);
            for (const std::uint64_t x : values) ASSERT_EQ(x, values.front());
            ASSERT_GE(values.front(), newest) << "a reader went back in time";
            newest = values.front();
            if (random() % 64 == 0) kept.push_back(v);
            if (kept.size() > 4) kept.erase(kept.begin());
            for (const version& k : kept) {
                const auto old = values_of(k);
                for (const std::uint64_t x : old) ASSERT_EQ(x, old.front()) << "reused too early";
            }
        }
    };
    const auto commit_all = [&] {
        for (std::uint64_t i = 1; i <= commits; ++i)
            ASSERT_TRUE(list::updated(r, [&](shadow& s, std::uint64_t w) {
                            return set_all(s, w, i);
                        }).ok());
    };
    const auto writer = [&] {
        commit_all();
        over = true; // whether or not it got to the end
    };
    at_once(writer, [&] { reader(1); }, [&] { reader(2); }, [&] { reader(3); });
    EXPECT_EQ(values_of(r.read()), std::vector<std::uint64_t>(20, commits));
    expect_whole({&r});
}

TEST_F(ModConcurrency, WritersOfOneRootLoseNoUpdate) {
    mod::root& r = root("counted");
    constexpr std::uint64_t each = 3000 / slower;
    const auto one = [](std::uint64_t thread) {
        return [thread](shadow& s, std::uint64_t w) { return list::push(s, w, thread, 2); };
    };
    const auto in_turn = [&](std::uint64_t thread) {
        for (std::uint64_t i = 0; i < each; ++i) ASSERT_TRUE(list::updated(r, one(thread)).ok());
    };
    std::atomic<std::uint64_t> conflicts{0};
    const auto compare_and_commit = [&](std::uint64_t thread) {
        for (std::uint64_t i = 0; i < each;) {
            const status outcome = r.commit(r.read().updated(one(thread)));
            if (outcome.ok()) ++i;
            else ASSERT_EQ(outcome.code(), errc::conflict) << outcome.what();
            if (!outcome.ok()) ++conflicts;
        }
    };
    at_once([&] { in_turn(1); }, [&] { in_turn(2); }, [&] { compare_and_commit(3); },
            [&] { compare_and_commit(4); });
    std::vector<std::uint64_t> by(5);
    for (const std::uint64_t thread : values_of(r.read())) ++by.at(thread);
    EXPECT_EQ(by, (std::vector<std::uint64_t>{0, each, each, each, each}));
    RecordProperty("conflicts", static_cast<int>(conflicts));
    expect_whole({&r});
}

TEST_F(ModConcurrency, WritersOfDifferentRootsDoNotDisturbEachOther) {
    constexpr std::uint64_t each = 4000 / slower;
    mod::root* const roots[] = {&root("a"), &root("b"), &root("left", "f"), &root("right", "f")};
    const auto work = [&](unsigned number) {
        mod::root& r = *roots[number];
        std::mt19937_64 random(seed + number);
        std::vector<std::uint64_t> expected;
        for (std::uint64_t i = 0; i < each; ++i) {
            const bool grows = expected.empty() || random() % 100 < (i < each / 2 ? 60 : 40);
            ASSERT_TRUE(list::updated(r, [&](shadow& s, std::uint64_t w) {
                            if (!grows) return list::pop(s, w);
                            return list::push(s, w, i, 1 + random() % 30);
                        }).ok());
            if (grows) expected.insert(expected.begin(), i);
            else expected.erase(expected.begin());
            if (i % 97 == 0) ASSERT_EQ(values_of(r.read()), expected);
        }
        EXPECT_EQ(values_of(r.read()), expected);
    };
    at_once([&] { work(0); }, [&] { work(1); }, [&] { work(2); }, [&] { work(3); });
    expect_whole({roots[0], roots[1], roots[2], roots[3]}, 1);
}

/// Moves the first element of one list to the other, while others change them as well.
void move_one(mod::store& in, mod::root& from, mod::root& to) {
    for (;;) {
        const version source = from.read(), target = to.read();
        if (list::count_of(source.word()) == 0) return;
        const std::uint64_t value = list::at(source.base(), list::first_of(source.word()))->word[0];
        const version less = source.updated(list::pop);
        const version more =
            target.updated([&](shadow& s, std::uint64_t w) { return list::push(s, w, value, 3); });
        const status outcome = in.commit({{&from, &less}, {&to, &more}});
        if (outcome.ok()) return;
        ASSERT_EQ(outcome.code(), errc::conflict) << outcome.what();
    }
}

TEST_F(ModConcurrency, ElementsThatMoveBetweenRootsAreNeverLost) {
    constexpr std::uint64_t elements = 60, moves = 1500 / slower;
    mod::root* const roots[] = {&root("a"), &root("b"), &root("left", "f"), &root("right", "f")};
    for (std::uint64_t i = 0; i < elements; ++i)
        ASSERT_TRUE(list::updated(*roots[i % 4], [&](shadow& s, std::uint64_t w) {
                        return list::push(s, w, i, 3);
                    }).ok());
    const auto mover = [&](std::uint64_t number) {
        std::mt19937_64 random(seed + number);
        for (std::uint64_t i = 0; i < moves; ++i) {
            const auto from = random() % 4, to = (from + 1 + random() % 3) % 4;
            move_one(store(), *roots[from], *roots[to]);
        }
    };
    std::atomic<bool> over{false};
    const auto reader = [&] {
        while (!over)
            for (mod::root* r : roots) {
                const auto values = values_of(r->read());
                ASSERT_EQ(std::set<std::uint64_t>(values.begin(), values.end()).size(),
                          values.size())
                    << "an element is there twice";
            }
    };
    std::thread looking(reader);
    at_once([&] { mover(1); }, [&] { mover(2); }, [&] { mover(3); });
    over = true;
    looking.join();
    const auto expect_all = [&] {
        std::multiset<std::uint64_t> all;
        for (const char* name : {"a", "b"})
            for (const std::uint64_t v : values_of(root(name).read())) all.insert(v);
        for (const char* name : {"left", "right"})
            for (const std::uint64_t v : values_of(root(name, "f").read())) all.insert(v);
        EXPECT_EQ(all.size(), elements);
        EXPECT_EQ(std::set<std::uint64_t>(all.begin(), all.end()).size(), elements);
    };
    expect_all();
    expect_whole({roots[0], roots[1], roots[2], roots[3]}, 1);
    in.crash();
    expect_all();
}

TEST_F(ModConcurrency, VersionsAreSharedCopiedAndDroppedOnAnyThread) {
    constexpr std::uint64_t rounds = 2000 / slower;
    mod::root& r = root("handed on");
    ASSERT_TRUE(list::updated(r, [](shadow& s, std::uint64_t w) {
                    for (unsigned i = 0; i < 10; ++i) w = list::push(s, w, 0);
                    return w;
                }).ok());
    std::mutex lock;
    version handed = r.read(); // guarded by 'lock'
    std::atomic<bool> over{false};
    const auto make_all = [&] {
        for (std::uint64_t i = 1; i <= rounds; ++i) {
            const version next =
                r.read().updated([&](shadow& s, std::uint64_t w) { return set_all(s, w, i); });
            version copy = next;
            {
                const std::scoped_lock held_now{lock};
                std::swap(handed, copy); // of the one before, perhaps the last owner
            }
            if (i % 2 == 0) ASSERT_TRUE(r.commit(next).ok()); // others are dropped
        }
    };
    const auto maker = [&] {
        make_all();
        over = true;
    };
    const auto user = [&] {
        while (!over) {
            version mine;
            {
                const std::scoped_lock held_now{lock};
                mine = handed;
            }
            const auto values = values_of(mine);
            for (const std::uint64_t v : values) ASSERT_EQ(v, values.front());
            const version further = mine.updated(list::pop); // never committed
            ASSERT_EQ(values_of(further).size(), values.size() - 1);
        }
    };
    at_once(maker, user, user);
    handed = {};
    expect_whole({&r});
}

TEST_F(ModConcurrency, TheTraceAfterACrashRunsBesideReadersAndWriters) {
    constexpr std::uint64_t nodes = 40'000 / slower, each = 1000 / slower;
    {
        mod::root &a = root("a"), &b = root("b");
        for (mod::root* r : {&a, &b})
            ASSERT_TRUE(list::updated(*r, [&](shadow& s, std::uint64_t w) {
                            for (std::uint64_t i = 0; i < nodes; ++i) w = list::push(s, w, i);
                            return w;
                        }).ok());
    }
    for (unsigned round = 0; round < 3; ++round) {
        in.crash();
        mod::root &a = root("a"), &b = root("b");
        const auto before = values_of(b.read());
        const auto writer = [&](mod::root& r) {
            for (std::uint64_t i = 0; i < each; ++i)
                ASSERT_TRUE(list::updated(r, [&](shadow& s, std::uint64_t w) {
                                return list::pop(s, list::push(s, list::push(s, w, i, 5), i));
                            }).ok());
        };
        const auto reader = [&] {
            for (unsigned i = 0; i < 3; ++i)
                ASSERT_EQ(values_of(a.read()).back(), 0U); // the oldest element
        };
        at_once([&] { writer(a); }, [&] { writer(b); }, reader);
        auto after = values_of(b.read());
        ASSERT_EQ(after.size(), before.size() + each);
        after.erase(after.begin(), after.begin() + static_cast<std::ptrdiff_t>(each));
        EXPECT_EQ(after, before) << "a node that was in use was taken for free";
        expect_whole({&a, &b});
    }
}

/// Among the logs of several pools only the first has a group. A group of another pool must wait
/// for what was only ordered.
TEST_F(ModConcurrency, WhatAGroupWithinThatOfAnotherPoolDidIsOnTheDiskWhenItEnds) {
    mod::test::test_pool outer;
    outer.make_new(mode::power);
    in.make_new(mode::power);
    auto map = in.get<mod::map<std::uint64_t, std::uint64_t>>();
    {
        hf::durable_together first(outer.pool());
        {
            hf::durable_together second(in.pool());
            ASSERT_TRUE(map.insert(1, 10)); // durable by the next update
        }
        in.keep_disk();
    }
    in.open_kept();
    map = in.get<mod::map<std::uint64_t, std::uint64_t>>();
    ASSERT_NE(map.get(1), nullptr);
    EXPECT_EQ(*map.get(1), 10U);
}

/// An update is a fence for what its thread has flushed before it, such as the mark of a section.
TEST_F(ModConcurrency, WhatAThreadHasFlushedIsOnTheDiskWithItsNextUpdate) {
    for (const bool in_place : {false, true}) {
        in.make_new(mode::power);
        auto vector = in.get<mod::vector<std::uint64_t>>({"vector"});
        ASSERT_TRUE(vector.append_range(std::vector<std::uint64_t>(10)).ok());
        auto* const word = in.pool().root<std::uint64_t>();
        ASSERT_NE(word, nullptr);
        *word = 7;
        in.pool().internals().file->medium().flush(word, sizeof *word);
        ASSERT_TRUE(in_place ? vector.set(3, 1).ok() : vector.push_back(1).ok());
        in.keep_disk();
        in.open_kept();
        EXPECT_EQ(*in.pool().root<std::uint64_t>(), 7U) << in_place;
    }
}

/// durable_together: what it has read of another thread's work is durable when its group ends.
TEST_F(ModConcurrency, WhatAGroupHasReadIsOnTheDiskWhenItEnds) {
    in.make_new(mode::power);
    using pairs = mod::map<std::uint64_t, std::uint64_t>;
    using numbers = mod::vector<std::uint64_t>;
    const auto both = [&] {
        return std::pair(in.get<pairs>({"map"}), in.get<numbers>({"vector"}));
    };
    {
        auto [map, vector] = both();
        hf::durable_together first(in.pool());
        ASSERT_TRUE(map.insert(1, 10));
        for (std::uint64_t i = 0; i < 100; ++i) (void)vector.push_back(i);
    }
    for (const bool grouped : {false, true}) {
        std::optional<hf::durable_together> of_writer;
        std::atomic<int> step{0};
        const std::uint64_t next = 11 + grouped;
        std::thread writer([&] { // has not continued when the machine fails
            if (grouped) of_writer.emplace(in.pool());
            auto [map, vector] = both();
            if (grouped) (void)map.insert_or_assign(1, next);
            (void)vector.set(50, next); // in place
            if (!grouped) (void)map.insert_or_assign(1, next);
            step = 1;
            while (step != 2) std::this_thread::yield();
            of_writer.reset();
        });
        while (step != 1) std::this_thread::yield();
        {
            hf::durable_together reading(in.pool());
            auto [map, vector] = both();
            EXPECT_EQ(*map.snapshot().get(1), next);
            EXPECT_EQ(vector.snapshot()[50], next);
        }
        in.keep_disk();
        step = 2;
        writer.join();
        in.open_kept();
        auto [map, vector] = both();
        EXPECT_EQ(*map.get(1), next) << grouped;
        EXPECT_EQ(vector[50], next) << grouped;
    }
}

} // namespace
