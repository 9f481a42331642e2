// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: one ordering point for each operation of each structure of MOD, two if it is durable on
// return, or if other processes read beside; one in mode power; and no change in the number of
// flushed lines goes unnoticed.
// Method: a fixed sequence of operations on a new pool, per durability; what each kind of operation
// cost in all is compared with golden/mod_<structure>.txt. Taking arenas has ordering points of its
// own: all of it is done once before it is counted.
// When a change is meant: HOLDFAST_GOLDEN_WRITE=1 ctest -R golden, and say in the commit why.
#include <holdfast/author/persist.hpp>
#include <holdfast/mod/cache.hpp>
#include <holdfast/mod/map.hpp>
#include <holdfast/mod/ordered_map.hpp>
#include <holdfast/mod/queue.hpp>
#include <holdfast/mod/set.hpp>
#include <holdfast/mod/stack.hpp>
#include <holdfast/mod/update.hpp>
#include <holdfast/mod/vector.hpp>
#include <holdfast/pool.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <tuple>
#include <unistd.h>
#include <vector>

namespace {

using namespace hf;
using mod::durability;
using u64 = std::uint64_t;
using counters = hf::persist::counters;
using value = std::array<u64, 4>; // 32 bytes

constexpr u64 preloaded = 100'000, operations = 1000;

u64 key(u64 i) { return i * 0x9e3779b97f4a7c15ULL; }

/// One structure's lines: "durability operation flushes fences ordering_points".
class golden {
public:
    explicit golden(std::string name, const char* mode = "pmem")
        : path_(std::string(HF_GOLDEN_FOLDER) + "/mod_" + name + ".txt"), name_(std::move(name)),
          mode_(mode) {
        std::ifstream file(path_);
        for (std::string one; std::getline(file, one);)
            if (!one.empty() && one[0] != '#') expected_[id_of(one)] = one;
    }
    ~golden() {
        if (!writing()) {
            EXPECT_EQ(seen_.size(), expected_.size()) << path_ << " has lines that nothing counts";
            return;
        }
        std::ofstream file(path_);
        file << fmt::format("# mod::{} of {} elements, mode {}: events per {} operations.\n"
                            "# durability operation flushes fences ordering_points\n",
                            name_, preloaded, mode_, operations);
        for (const auto& one : seen_) file << one.second << '\n';
    }
    /// Counts 'operations' calls of each(i). 'points': ordering points that one of them promises.
    template <class Each> void count(durability when, const char* what, u64 points, Each&& each) {
        const std::string id = fmt::format(
            "{} {} ", when == durability::on_return ? "on_return" : "by_next_section", what);
        counters spent{};
        for (u64 i = 0; i < operations; ++i) {
            const counters before = persist::thread_counters();
            each(i);
            const counters after = persist::thread_counters();
            EXPECT_EQ(after.ordering_points - before.ordering_points, points) << id << i;
            spent.flushes += after.flushes - before.flushes;
            spent.fences += after.fences - before.fences;
            spent.ordering_points += after.ordering_points - before.ordering_points;
        }
        const std::string line =
            fmt::format("{}{} {} {}", id, spent.flushes, spent.fences, spent.ordering_points);
        seen_[id] = line;
        if (!writing()) EXPECT_EQ(expected_[id], line);
        flushes_ = static_cast<double>(spent.flushes) / operations;
    }
    /// Lines that the operation counted last flushed, on average.
    double flushes() const noexcept { return flushes_; }

private:
    static bool writing() { return std::getenv("HOLDFAST_GOLDEN_WRITE") != nullptr; }
    static std::string id_of(const std::string& line) {
        return line.substr(0, line.find(' ', line.find(' ') + 1) + 1);
    }
    std::string path_, name_;
    const char* mode_;
    std::map<std::string, std::string> expected_, seen_;
    double flushes_ = 0;
};

class ModGolden : public ::testing::Test {
protected:
    void SetUp() override { open_pool(false); }
    void open_pool(bool shared, hf::mode mode = hf::mode::pmem) {
        held_.reset();
        const std::string path = fmt::format("/dev/shm/holdfast-mod-golden.{}", getpid());
        open_options o;
        o.shared = shared;
        o.layout = "golden/1";
        o.mode = mode;
        o.creation = create::always_new;
        o.create_bytes = 256_MiB;
        o.expert.seal = false;
        o.engines = {mod::engine()};
        auto opened = pool::open(path, o);
        std::remove(path.c_str());
        std::remove((path + "-power").c_str());
        ASSERT_TRUE(opened) << opened.error().what();
        held_ = std::make_unique<pool>(std::move(*opened));
    }
    template <class Handle> Handle make(const mod::place& at) {
        auto h = Handle::open(*held_, at);
        EXPECT_TRUE(h) << h.error().what();
        return *h;
    }
    static void ok(const status& s) { ASSERT_TRUE(s.ok()) << s.what(); }
    template <class T> static void ok(const result<T>& r) { ASSERT_TRUE(r) << r.error().what(); }

    std::unique_ptr<pool> held_;
};

constexpr std::pair<durability, u64> both[] = {{durability::by_next_section, 1},
                                               {durability::on_return, 2}};

template <class Map> void count_map(Map& m, const char* name) {
    const auto ok = [](const auto& outcome) {
        if constexpr (requires { outcome.ok(); }) ASSERT_TRUE(outcome.ok()) << outcome.what();
        else ASSERT_TRUE(outcome) << outcome.error().what();
    };
    golden file(name);
    ok(m.update([](auto& batch) {
        for (u64 i = 0; i < preloaded; ++i) batch.insert(key(i), value{i});
    }));
    const auto insert = [&](u64 i) { ok(m.insert(key(preloaded + i), value{i})); };
    const auto erase = [&](u64 i) { ok(m.erase(key(preloaded + i))); };
    const auto assign = [&](u64 i) { ok(m.insert_or_assign(key(i * 7), value{i})); };
    for (u64 i = 0; i < operations; ++i) insert(i), assign(i);
    for (u64 i = 0; i < operations; ++i) erase(i);
    for (const auto& [when, points] : both) {
        m.set_durability(when);
        file.count(when, "insert", points, insert);
        EXPECT_LE(file.flushes(), 18);
        file.count(when, "assign", points, assign);
        EXPECT_LE(file.flushes(), 18);
        file.count(when, "erase", points, erase);
        file.count(when, "insert-present", 0, [&](u64 i) { ok(m.insert(key(i), value{})); });
        file.count(when, "find", 0, [&](u64 i) { ASSERT_TRUE(m.contains(key(i))); });
        file.count(when, "batch-of-10", points, [&](u64 i) {
            ok(m.update([&](auto& batch) {
                for (u64 n = 0; n < 10; ++n) batch.insert_or_assign(key(i * 10 + n), value{n});
            }));
        });
        file.count(when, "version", points,
                   [&](u64 i) { ok(m.commit(m.snapshot().insert_or_assign(key(i), value{i}))); });
    }
}

TEST_F(ModGolden, Map) {
    auto m = make<mod::map<u64, value>>({"m"});
    count_map(m, "map");
}
TEST_F(ModGolden, OrderedMap) {
    auto m = make<mod::ordered_map<u64, value>>({"m"});
    count_map(m, "ordered_map");
}

/// In a medium that keeps order, or takes updates whole.
TEST_F(ModGolden, OtherModes) {
    for (const hf::mode mode : {hf::mode::process, hf::mode::power}) {
        open_pool(false, mode);
        const bool power = mode == hf::mode::power;
        golden file(power ? "power" : "process", power ? "power" : "process");
        auto m = make<mod::map<u64, value>>({"m"});
        auto v = make<mod::vector<u64>>({"v"});
        ok(m.update([](auto& batch) {
            for (u64 i = 0; i < preloaded; ++i) batch.insert(key(i), value{i});
        }));
        ok(v.append_range(std::vector<u64>(preloaded)));
        const auto insert = [&](u64 i) { ok(m.insert(key(preloaded + i), value{i})); };
        for (u64 i = 0; i < operations; ++i) insert(i);
        for (u64 i = 0; i < operations; ++i) ok(m.erase(key(preloaded + i)));
        const auto unrelated = [&](u64 i) {
            ok(mod::update(std::tie(m, v), [&](auto& in_map, auto& in_vector) {
                in_map.insert_or_assign(key(i), value{i});
                in_vector.set(i, i);
            }));
        };
        for (u64 i = 0; i < operations; ++i) unrelated(i);
        for (const auto& [when, points] : both) {
            m.set_durability(when);
            v.set_durability(when);
            const u64 each = power ? 1 : points;
            file.count(when, "insert", each, insert);
            file.count(when, "erase", each, [&](u64 i) { ok(m.erase(key(preloaded + i))); });
            file.count(when, "vector-set", each, [&](u64 i) { ok(v.set(i * 7, i)); });
            file.count(when, "unrelated", power ? 1 : 2, unrelated);
        }
        file.count(durability::on_return, "vector-swap", 1,
                   [&](u64 i) { ok(v.swap(i, preloaded - 1 - i)); });
    }
}

/// Entries with values of 100 bytes, in a cache that is full and in one that is not.
TEST_F(ModGolden, Cache) {
    golden file("cache");
    const std::string value(100, 'v');
    const auto text = [](u64 i) { return fmt::format("{:016x}", key(i)); };
    for (const auto& [when, points] : both) {
        const auto cached = [&](const char* name, u64 entries) {
            constexpr u64 entry_bytes = 160;
            auto made = mod::cache::open(
                *held_, name, {.max_bytes = entries * entry_bytes, .when_durable = when});
            EXPECT_TRUE(made) << made.error().what();
            EXPECT_EQ(made->bytes_of(16, value.size()), entry_bytes);
            for (u64 i = 0; i < preloaded; ++i) ok(made->put(text(i), value));
            return *made;
        };
        const bool returns = when == durability::on_return;
        mod::cache roomy = cached(returns ? "roomy 2" : "roomy", 2 * preloaded);
        const auto fresh = [&](u64 i) { ok(roomy.put(text(preloaded + i), value)); };
        for (u64 i = 0; i < operations; ++i) fresh(i);
        for (u64 i = 0; i < operations; ++i) ok(roomy.erase(text(preloaded + i)));
        file.count(when, "put", points, fresh);
        file.count(when, "put-again", points, [&](u64 i) { ok(roomy.put(text(i * 7), value)); });
        file.count(when, "touch", points, [&](u64 i) { ok(roomy.touch(text(i * 7))); });
        file.count(when, "add-present", 0, [&](u64 i) { ok(roomy.add(text(i), value)); });
        file.count(when, "get", 0, [&](u64 i) { ASSERT_TRUE(roomy.get(text(i))); });
        file.count(when, "miss", 0, [&](u64 i) { ASSERT_FALSE(roomy.get(text(~i))); });
        file.count(when, "erase", points, [&](u64 i) { ok(roomy.erase(text(preloaded + i))); });
        mod::cache full = cached(returns ? "full 2" : "full", preloaded / 8);
        const auto evicting = [&](u64 i) { ok(full.put(text(preloaded + i), value)); };
        for (u64 i = operations; i < 2 * operations; ++i) evicting(i);
        file.count(when, "put-evicting", points, evicting);
        EXPECT_EQ(full.size(), preloaded / 8);
    }
}

TEST_F(ModGolden, Set) {
    golden file("set");
    auto s = make<mod::set<u64>>({"s"});
    ok(s.update([](auto& batch) {
        for (u64 i = 0; i < preloaded; ++i) batch.insert(key(i));
    }));
    const auto insert = [&](u64 i) { ok(s.insert(key(preloaded + i))); };
    const auto erase = [&](u64 i) { ok(s.erase(key(preloaded + i))); };
    for (u64 i = 0; i < operations; ++i) insert(i);
    for (u64 i = 0; i < operations; ++i) erase(i);
    for (const auto& [when, points] : both) {
        s.set_durability(when);
        file.count(when, "insert", points, insert);
        EXPECT_LE(file.flushes(), 18);
        file.count(when, "erase", points, erase);
    }
}

TEST_F(ModGolden, Vector) {
    golden file("vector");
    auto v = make<mod::vector<u64>>({"v"});
    ok(v.update([](auto& batch) {
        for (u64 i = 0; i < preloaded; ++i) batch.push_back(i);
    }));
    const auto place = [](u64 i) { return key(i) % preloaded; };
    const auto set = [&](u64 i) { ok(v.set(place(i), i)); };
    const auto swap = [&](u64 i) { ok(v.swap(place(i), place(i + 1))); };
    const auto push = [&](u64 i) { ok(v.push_back(i)); };
    const auto pop = [&](u64) { ok(v.pop_back()); };
    for (u64 i = 0; i < operations; ++i) set(i), swap(i), push(i);
    for (u64 i = 0; i < operations; ++i) pop(i);
    for (const auto& [when, points] : both) {
        v.set_durability(when);
        file.count(when, "set", points, set);
        EXPECT_LE(file.flushes(), 8);
        swap(0);                           // the first one waits for the set as well
        file.count(when, "swap", 1, swap); // durable on return, and in place
        file.count(when, "push_back", points, push);
        EXPECT_LE(file.flushes(), 8);
        file.count(when, "pop_back", points, pop);
    }
}

template <class Handle> void count_sequence(Handle& h, const char* name) {
    golden file(name);
    const auto push = [&](u64 i) { ASSERT_TRUE(h.push(i).ok()); };
    const auto pop = [&](u64) { ASSERT_TRUE(h.pop()); };
    ASSERT_TRUE(h.update([](auto& batch) {
                     for (u64 i = 0; i < preloaded; ++i) batch.push(i);
                 }).ok());
    for (u64 i = 0; i < 2 * operations; ++i) push(i);
    for (u64 i = 0; i < 2 * operations; ++i) pop(i);
    for (const auto& [when, points] : both) {
        h.set_durability(when);
        file.count(when, "push", points, push);
        EXPECT_LE(file.flushes(), 3);
        file.count(when, "pop", points, pop);
        file.count(when, "push-and-pop", points, [&](u64 i) {
            ASSERT_TRUE(h.update([&](auto& batch) {
                             batch.push(i);
                             batch.pop();
                         }).ok());
        });
    }
}
TEST_F(ModGolden, Stack) {
    auto s = make<mod::stack<u64>>({"s"});
    count_sequence(s, "stack");
}
TEST_F(ModGolden, Queue) {
    auto q = make<mod::queue<u64>>({"q"});
    count_sequence(q, "queue");
}

TEST_F(ModGolden, Several) {
    golden file("several");
    using map = mod::map<u64, value>;
    map x = make<map>({"x", "f", {"x", "y"}}), y = make<map>({"y", "f", {"x", "y"}});
    map a = make<map>({"a"}), b = make<map>({"b"});
    for (map* m : {&x, &y, &a, &b})
        ok(m->update([](auto& batch) {
            for (u64 i = 0; i < preloaded / 10; ++i) batch.insert(key(i), value{i});
        }));
    const auto assign = [&](map& one, map& two, u64 i) {
        ok(mod::update(std::tie(one, two), [&](auto& first, auto& second) {
            first.insert_or_assign(key(i), value{i});
            second.insert_or_assign(key(i + 1), value{i});
        }));
    };
    const auto versions = [&](map& one, map& two, u64 i) {
        const auto first = one.snapshot().insert_or_assign(key(i), value{i});
        const auto second = two.snapshot().insert_or_assign(key(i + 1), value{i});
        ok(mod::store::in(*held_).commit({{one.its_root(), &first}, {two.its_root(), &second}}));
    };
    for (u64 i = 0; i < 3 * operations; ++i)
        assign(x, y, i % operations), assign(a, b, i % operations), versions(x, y, i % operations),
            versions(a, b, i % operations);
    for (const auto& [when, points] : both) {
        for (map* m : {&x, &y, &a, &b}) m->set_durability(when);
        file.count(when, "member", points,
                   [&](u64 i) { ok(x.insert_or_assign(key(i), value{i})); });
        file.count(when, "siblings", points, [&](u64 i) { assign(x, y, i); });
        file.count(when, "siblings-versions", points, [&](u64 i) { versions(x, y, i); });
        file.count(when, "unrelated", 2, [&](u64 i) { assign(a, b, i); });
        file.count(when, "unrelated-versions", 2, [&](u64 i) { versions(a, b, i); });
    }
}

// The cost of readers in other processes: every update is durable before one may see it, and none
// is stored in place.
TEST_F(ModGolden, Shared) {
    open_pool(true);
    golden file("shared");
    using map = mod::map<u64, value>;
    map m = make<map>({"m"}), other = make<map>({"o"});
    auto v = make<mod::vector<u64>>({"v"});
    for (map* each : {&m, &other})
        ok(each->update([](auto& batch) {
            for (u64 i = 0; i < preloaded; ++i) batch.insert(key(i), value{i});
        }));
    ok(v.update([](auto& batch) {
        for (u64 i = 0; i < preloaded; ++i) batch.push_back(i);
    }));
    const auto assign = [&](u64 i) { ok(m.insert_or_assign(key(i), value{i})); };
    const auto set = [&](u64 i) { ok(v.set(i * 7 % preloaded, i)); };
    const auto swap = [&](u64 i) { ok(v.swap(i, i + 1)); };
    const auto both_maps = [&](u64 i) {
        ok(mod::update(std::tie(m, other), [&](auto& first, auto& second) {
            first.insert_or_assign(key(i), value{i});
            second.insert_or_assign(key(i + 1), value{i});
        }));
    };
    for (u64 i = 0; i < operations; ++i) assign(i), set(i), swap(i), both_maps(i);
    for (const auto& [when, points] : both) {
        m.set_durability(when);
        v.set_durability(when);
        file.count(when, "assign", 2, assign);
        file.count(when, "set", 2, set);
        file.count(when, "swap", 2, swap);
        file.count(when, "unrelated", 2, both_maps);
        file.count(when, "find", 0, [&](u64 i) { ASSERT_TRUE(m.contains(key(i))); });
    }
}

} // namespace
