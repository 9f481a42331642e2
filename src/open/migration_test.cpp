// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a pool of another layout comes to this one whole, whenever it is cut short, or is refused
// with both layouts named and no byte changed. Method: sections instrumented by hand. The function
// that migrates returns errors, throws, or is killed at each of its stages, and the results of the
// next opens are compared.
#include <open/pool_impl.hpp>
#include <section/section.hpp>

#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/alloc.hpp>
#include <holdfast/author/blocks.hpp>
#include <holdfast/migration.hpp>
#include <holdfast/selective.hpp>
#include <holdfast/undo.hpp>

#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace hf;

constexpr std::uint64_t elements = 5;

struct node {
    std::uint64_t value;
    node* next;
};
struct old_root {
    node* first;
};
struct new_root {
    node* first;
    std::uint64_t sum, room[64];
};

const hf_arg schema[] = {{0, 8, HF_ARG_POOL_POINTER}};
const hf_txfunc function{HF_ABI_VERSION, 8, 5001, 1, "migrate", "here", schema, 1, nullptr};

template <class T> void store(T* to, T value) {
    hf_undo_log(to, sizeof *to);
    *const_cast<volatile T*>(to) = value;
}
template <class F> void section(void* about, F&& stores) {
    hf_undo_begin(&function, &about);
    stores();
    hf_undo_commit();
}
void push(old_root* to, std::uint64_t value) {
    section(to, [&] {
        auto* n = static_cast<node*>(hf_alloc(sizeof(node)));
        store(&n->value, value);
        store(&n->next, to->first);
        store(&to->first, n);
    });
}
void move_one(old_root* from, new_root* to, std::uint64_t* cursor) {
    section(to, [&] {
        node* n = from->first;
        store(&from->first, n->next);
        store(&n->next, to->first);
        store(&to->first, n);
        store(&to->sum, to->sum + n->value);
        store(cursor, *cursor + 1);
    });
}

class Migration : public testing::TestWithParam<mode> {
protected:
    // On tmpfs, for mode pmem.
    std::string path_ = "/dev/shm/migration_test." + std::to_string(::getpid()) + ".hf";
    open_options old_, new_;
    std::uint64_t stop_after_ = UINT64_MAX; // elements, counted by the cursor
    std::function<status()> stopped_ = [] { return status{}; };

    void SetUp() override {
        std::remove(path_.c_str());
        old_.layout = "list/1";
        old_.create_bytes = old_.max_bytes = 1_MiB;
        old_.mode = GetParam();
        old_.engines = {undo::engine()};
        new_ = old_;
        new_.layout = "list/2";
        new_.layout_hash = 7;
        new_.root_bytes = sizeof(new_root);
        new_.migrate = [this](migration& m) { return migrate(m); };
        auto made = pool::open(path_, old_);
        ASSERT_TRUE(made) << made.error().what();
        for (std::uint64_t i = 1; i <= elements; ++i) push(made->root<old_root>(), i);
        blocks_ = account(*made).blocks;
    }
    void TearDown() override { std::remove(path_.c_str()); }

    status migrate(migration& m) const {
        EXPECT_EQ(m.from_layout(), "list/1");
        EXPECT_EQ(m.from_hash(), 0);
        auto* from = m.in().root<old_root>();
        auto to = m.new_root<new_root>();
        if (!to) return to.error();
        while (true) {
            if (*m.cursor() == stop_after_)
                if (status s = stopped_(); !s.ok()) return s;
            if (from->first == nullptr) return {};
            move_one(from, *to, m.cursor());
            m.report(*m.cursor(), elements);
        }
    }
    /// Leaves the pool as a process does that runs 'work' and is killed in it.
    template <class F> void killed(F&& work) const {
        const pid_t child = ::fork();
        if (child == 0) {
            work();
            ::_exit(1);
        }
        int ended = 0;
        ::waitpid(child, &ended, 0);
        ASSERT_TRUE(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGKILL) << ended;
    }
    std::string bytes() const {
        std::ifstream file(path_, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    /// Opened by the new program: everything is there, once, and nothing else.
    void expect_whole() const {
        auto p = pool::open(path_, new_);
        ASSERT_TRUE(p) << p.error().what();
        const auto* r = p->root<new_root>();
        ASSERT_NE(r, nullptr);
        std::uint64_t sum = 0, count = 0;
        for (const node* n = r->first; n != nullptr && count <= elements; n = n->next, ++count)
            sum += n->value;
        EXPECT_EQ(count, elements);
        EXPECT_EQ(sum, elements * (elements + 1) / 2);
        EXPECT_EQ(r->sum, sum);
        EXPECT_EQ(account(*p).blocks, blocks_); // the new root for the old one, and no record
    }
    void expect_refused(const open_options& how, errc code, const std::string& says) const {
        const std::string before = bytes();
        auto p = pool::open(path_, how);
        ASSERT_FALSE(p);
        EXPECT_EQ(p.error().code(), code);
        EXPECT_NE(p.error().what().find(says), std::string::npos) << p.error().what();
        EXPECT_EQ(bytes(), before);
    }
    std::uint64_t blocks_ = 0;
};

TEST_P(Migration, BringsAPoolToItsNewLayoutOnce) {
    expect_whole();
    bool called = false;
    new_.migrate = [&](migration&) { return called = true, status{}; };
    expect_whole();
    EXPECT_FALSE(called);
    expect_refused(old_, errc::wrong_layout, "expected layout \"list/1\", found \"list/2\"");
}

TEST_P(Migration, IsNotBegunUnasked) {
    new_.migrate = {};
    expect_refused(new_, errc::wrong_layout, "expected layout \"list/2\", found \"list/1\"");
    new_.migrate = [this](migration& m) { return migrate(m); };
    new_.read_only = true;
    expect_refused(new_, errc::wrong_layout, "expected layout \"list/2\", found \"list/1\"");
}

TEST_P(Migration, ThatReturnsAnErrorGoesOnAtTheNextOpen) {
    stop_after_ = 2;
    stopped_ = [] { return status{errc::io_error, "no more today"}; };
    auto p = pool::open(path_, new_);
    ASSERT_FALSE(p);
    EXPECT_EQ(p.error().what(), "no more today");

    const char* under_way =
        R"(a migration from layout "list/1" (hash 0x0) to "list/2" (hash 0x7) is under way)";
    expect_refused(old_, errc::wrong_layout, under_way);
    open_options other = new_;
    other.layout = "list/3";
    expect_refused(other, errc::wrong_layout, under_way);
    open_options without = new_;
    without.migrate = {};
    expect_refused(without, errc::wrong_layout, under_way);
    open_options look = old_;
    look.read_only = true;
    expect_refused(look, errc::wrong_layout, under_way);
    look.salvage = true;
    {
        auto seen = pool::open(path_, look);
        ASSERT_TRUE(seen) << seen.error().what();
        EXPECT_EQ(seen->root<old_root>()->first->value, 3); // 5 and 4 have moved
    }
    stopped_ = [] { return status{}; };
    expect_whole();
}

TEST_P(Migration, ThatThrowsLeavesThePoolClosed) {
    stop_after_ = 3;
    stopped_ = []() -> status { throw std::runtime_error("enough"); };
    EXPECT_THROW((void)pool::open(path_, new_), std::runtime_error);
    stopped_ = [] { return status{}; };
    expect_whole();
}

TEST_P(Migration, KilledAtEachStageGoesOn) {
    for (stop_after_ = 0; stop_after_ <= elements; ++stop_after_) {
        SCOPED_TRACE(stop_after_);
        SetUp();
        stopped_ = [] { return ::kill(::getpid(), SIGKILL), status{}; };
        killed([&] { (void)pool::open(path_, new_); });
        // Again, one element later, by what has recovered from the first.
        ++stop_after_;
        if (stop_after_ <= elements) killed([&] { (void)pool::open(path_, new_); });
        --stop_after_;
        stopped_ = [] { return status{}; };
        expect_whole();
    }
}

TEST_P(Migration, FindsTheNewRootAsTheLastTryLeftIt) {
    stop_after_ = 2;
    stopped_ = [] { return status{errc::io_error, "later"}; };
    EXPECT_FALSE(pool::open(path_, new_));
    new_.migrate = [](migration& m) {
        auto wrong = m.new_root<old_root>();
        EXPECT_FALSE(wrong);
        auto found = m.new_root<new_root>();
        EXPECT_TRUE(found && (*found)->sum == 9);
        EXPECT_EQ(*m.cursor(), 2);
        return wrong ? status{} : wrong.error();
    };
    auto p = pool::open(path_, new_);
    ASSERT_FALSE(p);
    EXPECT_EQ(p.error().code(), errc::wrong_layout);
    EXPECT_NE(p.error().what().find("of an earlier try"), std::string::npos) << p.error().what();
    stopped_ = [] { return status{}; };
    new_.migrate = [this](migration& m) { return migrate(m); };
    expect_whole();
}

TEST_P(Migration, WithoutANewRootKeepsTheOldOne) {
    new_.root_bytes = sizeof(old_root);
    new_.migrate = [](migration& m) {
        auto* r = m.in().root<old_root>();
        section(r, [&] { store(&r->first->value, std::uint64_t{50}); });
        return status{};
    };
    auto p = pool::open(path_, new_);
    ASSERT_TRUE(p) << p.error().what();
    EXPECT_EQ(p->root<old_root>()->first->value, 50);
    EXPECT_EQ(account(*p).blocks, blocks_);
}

TEST_P(Migration, ToARootThatTheProgramDoesNotExpectStaysUnderWay) {
    new_.migrate = [](migration&) { return status{}; };
    auto p = pool::open(path_, new_);
    ASSERT_FALSE(p);
    EXPECT_EQ(p.error().code(), errc::wrong_layout);
    EXPECT_NE(p.error().what().find("expected 528 bytes, found 8"), std::string::npos)
        << p.error().what();
    new_.migrate = [this](migration& m) { return migrate(m); };
    expect_whole();
}

TEST_P(Migration, TakesTheOrderingPointsThatItSays) {
    const auto points = [] { return persist::thread_counters().ordering_points; };
    new_.migrate = [&](migration& m) {
        const auto before = points();
        EXPECT_TRUE(m.new_root<new_root>());
        EXPECT_EQ(points(), before + 3);
        EXPECT_TRUE(m.new_root<new_root>());
        EXPECT_EQ(points(), before + 3);
        return status{};
    };
    EXPECT_TRUE(pool::open(path_, new_));
}

TEST_P(Migration, OfAPoolWithoutARoot) {
    std::remove(path_.c_str());
    ASSERT_TRUE(pool::open(path_, old_));
    new_.migrate = [](migration& m) {
        auto to = m.new_root<new_root>();
        return to ? status{} : to.error();
    };
    auto p = pool::open(path_, new_);
    ASSERT_TRUE(p) << p.error().what();
    EXPECT_EQ(p->root<new_root>()->sum, 0);
    EXPECT_EQ(account(*p).blocks, 1);
}

TEST_P(Migration, OfAFullPoolIsAnErrorThatMoreRoomCures) {
    {
        auto p = pool::open(path_, old_);
        ASSERT_TRUE(p);
        for (const std::size_t bytes : {65536, 4096, 512, 64})
            while (hf_alloc(bytes) != nullptr) ++blocks_;
    }
    auto full = pool::open(path_, new_);
    ASSERT_FALSE(full);
    EXPECT_EQ(full.error().code(), errc::pool_full);
    new_.max_bytes = 4_MiB;
    expect_whole();
}

TEST_P(Migration, ThatLeavesASectionOpenIsNoSuccess) {
    killed([&] {
        new_.migrate = [](migration& m) {
            void* about = m.in().root<old_root>();
            hf_undo_begin(&function, &about);
            store(&static_cast<old_root*>(about)->first, static_cast<node*>(nullptr));
            return status{};
        };
        auto p = pool::open(path_, new_);
        if (!p && p.error().code() == errc::in_use) ::kill(::getpid(), SIGKILL);
    });
    expect_whole();
}

TEST_P(Migration, UnderWayIsShownToWhoReadsTheOldRootAndToWhoReadsTheNewOne) {
    stop_after_ = 2;
    stopped_ = [] { return status{errc::io_error, "later"}; };
    EXPECT_FALSE(pool::open(path_, new_));
    for (open_options look : {old_, new_}) {
        look.read_only = look.salvage = true;
        look.root_bytes = sizeof(old_root); // the root, until the migration has ended
        {
            auto seen = pool::open(path_, look);
            ASSERT_TRUE(seen) << seen.error().what();
            EXPECT_EQ(seen->root<old_root>()->first->value, 3);
        }
        look.root_bytes = sizeof(new_root);
        auto wrong = pool::open(path_, look);
        ASSERT_FALSE(wrong);
        EXPECT_EQ(wrong.error().code(), errc::wrong_layout);
    }
}

TEST_P(Migration, OfALayoutThatTheFunctionRefusesLeavesThePoolToWhomItWas) {
    new_.engines = {undo::engine(), selective::engine({.rebuild = [](pool&) { FAIL(); }})};
    const auto known = new_.migrate;
    new_.migrate = [](migration& m) { return m.refuse(); };
    // The same after a program that was killed before it could say so.
    open_options cut = new_;
    cut.migrate = [](migration& m) { return ::kill(::getpid(), SIGKILL), m.refuse(); };
    for (const bool was_cut : {false, true}) {
        if (was_cut) killed([&] { (void)pool::open(path_, cut); });
        auto p = pool::open(path_, new_);
        ASSERT_FALSE(p);
        EXPECT_EQ(p.error().code(), errc::wrong_layout);
        EXPECT_NE(p.error().what().find("expected layout \"list/2\", found \"list/1\""),
                  std::string::npos)
            << p.error().what();
        auto before = pool::open(path_, old_);
        ASSERT_TRUE(before) << before.error().what();
        EXPECT_EQ(before->root<old_root>()->first->value, elements);
        EXPECT_EQ(account(*before).blocks, blocks_);
    }
    // Too late: what has been changed is not forgotten.
    new_.engines = old_.engines;
    stop_after_ = 1;
    stopped_ = [] { return status{errc::io_error, "later"}; };
    new_.migrate = known;
    EXPECT_FALSE(pool::open(path_, new_));
    new_.migrate = [](migration& m) { return m.refuse(); };
    EXPECT_FALSE(pool::open(path_, new_));
    expect_refused(old_, errc::wrong_layout, "is under way");
    stopped_ = [] { return status{}; };
    new_.migrate = known;
    expect_whole();
}

TEST_P(Migration, OfAParentIsNoneOfItsChilds) {
    stop_after_ = elements;
    pid_t child = -1;
    int ended = -1;
    stopped_ = [&] {
        child = ::fork();
        if (child != 0) ::waitpid(child, &ended, 0);
        return child == 0 ? status{errc::conflict, "in the child"} : status{};
    };
    new_.migrate = [this, &child](migration& m) {
        const status s = migrate(m);
        return child == 0 ? status{} : s;
    };
    auto p = pool::open(path_, new_);
    if (child == 0) ::_exit(!p && p.error().code() == errc::in_use ? 0 : 1);
    EXPECT_TRUE(WIFEXITED(ended) && WEXITSTATUS(ended) == 0) << ended;
    ASSERT_TRUE(p) << p.error().what();
    EXPECT_EQ(p->root<new_root>()->sum, elements * (elements + 1) / 2);
}

INSTANTIATE_TEST_SUITE_P(In, Migration, testing::Values(mode::process, mode::pmem, mode::power),
                         [](const auto& of) { return std::string(name(of.param)); });

} // namespace
