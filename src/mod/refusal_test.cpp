// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: what cannot be done is refused with its reason, and nothing committed is lost by it: an
// update inside another one, memory that runs out at any allocation, damage that is met in use, a
// child of fork(). Method: each of them is made to happen beside lists of blocks that are compared
// with a model, before the pool is closed and when it is open again.
#include <mod/block_list.hpp>
#include <mod/store_impl.hpp>
#include <mod/test_support.hpp>

#include <holdfast/mod/map.hpp>
#include <holdfast/mod/update.hpp>
#include <holdfast/mod/vector.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <new>
#include <set>
#include <span>
#include <string>
#include <sys/wait.h>
#include <tuple>
#include <unistd.h>
#include <vector>

namespace {

thread_local long allocations_left = -1; // then each fails; -1: no end

void* allocate(std::size_t bytes) {
    if (allocations_left == 0) throw std::bad_alloc();
    if (allocations_left > 0) --allocations_left;
    if (void* made = std::malloc(bytes == 0 ? 1 : bytes)) return made;
    throw std::bad_alloc();
}

} // namespace

void* operator new(std::size_t bytes) { return allocate(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

using namespace hf;
using namespace hf::literals;
namespace list = hf::mod::block_list;
using mod::shadow;
using numbers = std::vector<std::uint64_t>;

[[maybe_unused]] const bool kind_known = (mod::add_kind(list::kind), true);

class mod_refusal : public testing::Test {
protected:
    mod_refusal() {
        own_.how.create_bytes = 4_MiB;
        own_.make_new(mode::pmem, 4_MiB);
    }
    void close_and_open() {
        own_.open();
        EXPECT_TRUE(store().wait_for_trace().ok());
    }
    mod::store& store() { return own_.store(); }
    mod::root& root(std::string_view name) { return **store().open({name}, list::kind, 0); }
    numbers in(std::string_view name) {
        numbers out;
        const mod::root& of = root(name);
        EXPECT_TRUE(list::values(of.base(), of.word(), out)) << name;
        return out;
    }
    void push(std::string_view to, std::uint64_t value) {
        const status done = list::updated(
            root(to), [&](shadow& s, std::uint64_t word) { return list::push(s, word, value); });
        EXPECT_TRUE(done.ok()) << done.what();
    }
    std::uint64_t nodes_in_use() { return own_.nodes_in_use(); }

    mod::test::test_pool own_;
};

TEST_F(mod_refusal, an_update_inside_its_own_callback) {
    auto ages = own_.get<mod::map<std::string, std::uint32_t>>({"ages"});
    auto list = own_.get<mod::vector<std::uint32_t>>({"list"});
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(list.push_back(7).ok()); // biases its lock too
    for (int again = 0; again < 20; ++again) {
        const status outer = list.update([&](auto& batch) {
            batch.push_back(8);
            EXPECT_EQ(list.push_back(9).code(), errc::bad_argument);
            EXPECT_EQ(list.set(0, 9).code(), errc::bad_argument);
            EXPECT_EQ(list.pop_back().code(), errc::bad_argument);
            EXPECT_EQ(list.commit(list.snapshot().clear()).code(), errc::bad_argument);
            EXPECT_EQ(ages.insert("a", 1).error().code(), errc::bad_argument);
            EXPECT_EQ(store().collect().code(), errc::bad_argument);
            EXPECT_EQ(store().verify().code(), errc::bad_argument);
            EXPECT_EQ(mod::update(std::tie(ages, list),
                                  [](auto& ages, auto& list) {
                                      ages.insert_or_assign("b", 2);
                                      list.clear();
                                  })
                          .code(),
                      errc::bad_argument);
            batch.push_back(10);
        });
        ASSERT_TRUE(outer.ok()) << outer.what();
        EXPECT_EQ(list.size(), 20U + 2 * (again + 1));
        EXPECT_EQ(list.back(), 10U);
        EXPECT_EQ(list.front(), 7U);
    }
    EXPECT_TRUE(ages.empty());
    EXPECT_TRUE(ages.insert("a", 1)) << "the thread is in no update any more";
    EXPECT_TRUE(store().verify().ok());
}

TEST_F(mod_refusal, an_update_inside_one_of_several) {
    auto one = own_.get<mod::vector<std::uint32_t>>({"one"});
    auto two = own_.get<mod::vector<std::uint32_t>>({"two"});
    auto three = own_.get<mod::vector<std::uint32_t>>({"three"});
    const status done = mod::update(std::tie(one, two), [&](auto& first, auto& second) {
        first.push_back(1);
        EXPECT_EQ(three.push_back(3).code(), errc::bad_argument);
        EXPECT_EQ(
            mod::update(std::tie(two, one), [](auto& a, auto& b) { a.clear(), b.clear(); }).code(),
            errc::bad_argument);
        second.push_back(2);
    });
    EXPECT_TRUE(done.ok()) << done.what();
    EXPECT_EQ(one.size() + two.size(), 2U);
    EXPECT_EQ(
        mod::update(std::tie(one, one), [](auto& a, auto& b) { a.clear(), b.clear(); }).code(),
        errc::bad_argument)
        << "one twice";
    EXPECT_TRUE(three.push_back(3).ok());
}

TEST_F(mod_refusal, an_update_of_another_pool_may_stand_inside) {
    auto here = own_.get<mod::vector<std::uint32_t>>({"v"});
    mod::test::test_pool other;
    other.make_new(mode::pmem);
    auto there = other.get<mod::vector<std::uint32_t>>({"v"});
    EXPECT_TRUE(here.update([&](auto& batch) {
                        EXPECT_TRUE(there.push_back(1).ok());
                        batch.push_back(2);
                    })
                    .ok());
    EXPECT_EQ(there.size() + here.size(), 2U);
}

/// The state of the lists "a" and "b" after an operation.
struct lists {
    numbers a, b;
    bool operator==(const lists&) const = default;
};

/// Every allocation of an operation fails once, with all later ones: the operation is done, or it
/// reports that it is not. Everything works afterwards, in this opening and in the next.
TEST_F(mod_refusal, memory_runs_out_in_a_commit) {
    const auto done = [](const status& s) { return s.ok(); };
    const std::vector<std::function<bool()>> operations{
        [&] {
            return done(list::updated(
                root("a"), [](shadow& s, std::uint64_t w) { return list::set(s, w, 2, 50); }));
        },
        [&] {
            return done(list::updated(
                root("b"), [](shadow& s, std::uint64_t w) { return list::set(s, w, 1, 51); }));
        },
        [&] { return done(list::updated(root("a"), list::clear)); },
        [&] { return done(root("b").commit(list::taken_over(root("a").read(), root("b")))); },
        [&] {
            const mod::version from = root("a").read();
            const mod::version to = list::taken_over(from, root("b"));
            const mod::version none = from.updated(list::clear);
            return done(store().commit({{&root("a"), &none}, {&root("b"), &to}}));
        },
        [&] {
            mod::root* both[] = {&root("a"), &root("b")};
            mod::joint_writing joint(both);
            for (std::size_t i = 0; i < 2; ++i)
                joint.set_word(i, list::set(joint.work(i), joint.word(i), 0, 60 + i));
            return done(joint.commit());
        },
    };
    for (std::size_t which = 0; which < operations.size(); ++which)
        for (long at = 0, failed = 1; failed != 0; ++at) {
            for (const char* name : {"a", "b"}) {
                ASSERT_TRUE(list::updated(root(name), list::clear).ok());
                for (std::uint64_t i = 0; i < 3; ++i) push(name, i);
            }
            ASSERT_TRUE(root("b").commit(list::taken_over(root("a").read(), root("b"))).ok());
            push("b", 7);
            const lists before{in("a"), in("b")};
            allocations_left = at;
            bool said = false;
            try {
                said = operations[which]();
            } catch (const std::bad_alloc&) { // thrown by the update itself
            }
            failed = allocations_left == 0;
            allocations_left = -1;
            const lists after{in("a"), in("b")};
            ASSERT_EQ(said, after != before) << which << ", allocation " << at;
            ASSERT_TRUE(said || failed != 0);
            for (std::uint64_t i = 0; i < 4; ++i) push("a", 80 + i), push("b", 90 + i);
            lists later{in("a"), in("b")};
            ASSERT_TRUE(std::ranges::equal(std::span(later.a).subspan(4), after.a));
            ASSERT_TRUE(std::ranges::equal(std::span(later.b).subspan(4), after.b));
            close_and_open();
            ASSERT_EQ((lists{in("a"), in("b")}), later) << which << ", allocation " << at;
            std::set<mod::ref> reached;
            for (const char* name : {"a", "b"})
                for (mod::ref n = list::first_of(root(name).word()); n != 0;
                     n = list::at(root(name).base(), n)->next)
                    reached.insert(n);
            ASSERT_EQ(nodes_in_use(), reached.size()) << which << ", allocation " << at;
        }
}

/// The child of a process that has the pool open writes nothing, and says why; what it lets go of
/// leaves the parent's pool as it is, also when the parent ends without closing it.
TEST_F(mod_refusal, a_child_of_fork) {
    for (std::uint64_t i = 0; i < 50; ++i) push("a", i);
    mod::root& a = root("a");
    mod::version version = a.read();
    const ::pid_t child = ::fork();
    ASSERT_NE(child, -1);
    if (child == 0) {
        const auto refused = [](const status& s) { return s.code() == errc::in_use; };
        const auto pushed = [](shadow& s, std::uint64_t w) { return list::push(s, w, 1000); };
        mod::root* both[] = {&a};
        mod::joint_writing joint(both);
        joint.set_word(0, 0);
        mod::store& in = a.its_store();
        const bool ok = refused(list::updated(a, pushed)) && refused(joint.commit()) &&
                        refused(a.commit(version)) && refused(in.collect()) &&
                        refused(in.verify()) && refused(in.wait_for_trace()) &&
                        refused(in.open({"c"}, list::kind, 0).error()) && in.account().nodes == 0;
        in.settle();
        own_.close();
        ::_exit(ok ? 0 : 1);
    }
    int ended = 0;
    ASSERT_EQ(::waitpid(child, &ended, 0), child);
    EXPECT_TRUE(WIFEXITED(ended) && WEXITSTATUS(ended) == 0) << ended;
    version = {};
    for (std::uint64_t i = 0; i < 500; ++i) push("a", 50 + i);
    const numbers before = in("a");
    EXPECT_EQ(before.size(), 550U);
    own_.crash_and_open();
    for (std::uint64_t i = 0; i < 500; ++i) push("b", i);
    EXPECT_EQ(in("a"), before);
    EXPECT_EQ(nodes_in_use(), 1050U);
}

/// A structure that gives up what is no node, or a node twice: the pool is not changed any more.
TEST_F(mod_refusal, damage_that_is_met_in_use) {
    push("b", 3);
    for (const mod::ref wrong : {mod::ref{1}, mod::ref_max, mod::ref{0}}) {
        push("a", 1);
        const mod::ref own = list::first_of(root("a").word());
        const status given_up = list::updated(root("a"), [&](shadow& s, std::uint64_t word) {
            s.replaced(wrong == 0 ? own : wrong);
            if (wrong == 0) s.replaced(own);
            return list::push(s, word, 10);
        });
        EXPECT_TRUE(given_up.ok()) << "it is looked at when it serves again";
        EXPECT_EQ(store().collect().code(), errc::corrupt);
        for (const char* name : {"a", "b"})
            EXPECT_EQ(list::updated(root(name), list::clear).code(), errc::corrupt);
        EXPECT_EQ(in("b"), numbers{3}) << "it can be read";
        close_and_open(); // and is traced: what words lead to is in use
        EXPECT_EQ(in("a").size(), 2U);
        EXPECT_EQ(in("b"), numbers{3});
        EXPECT_TRUE(list::updated(root("a"), list::clear).ok());
        EXPECT_EQ(nodes_in_use(), 1U);
    }
}

} // namespace
