// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a section of engine redo that is left by an exception, wherever it is thrown, or that calls
// hf::abort_section, has not happened; one that catches its exceptions has. Method: one section that does
// everything a section can do throws at its n-th point, for every n, and the pool is compared with what it was;
// sections that find no room; the same in processes that die.
#include "support.hpp"

#include <holdfast/alloc.hpp>
#include <holdfast/allocator.hpp>
#include <holdfast/tx.hpp>

#include <csignal>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace language_test {
namespace {

using vector = std::vector<long, hf::allocator<long>>;

struct node {
    node* next;
    long value;
};
struct root {
    node* head;
    vector* all;
    long count, sum;
    char text[40];
};

struct stop { // thrown
    int point;
};
struct named : std::runtime_error {
    explicit named(int at) : std::runtime_error("named"), point(at) {}
    int point;
};

// Volatile, and not taken back: which point throws, and how many there were.
int armed = 0, passed = 0, cleaned = 0, kind = 0;

void point() {
    if (++passed != armed) return;
    if (kind == 0) throw stop{passed};
    if (kind == 1) throw named(passed);
    throw std::out_of_range("a point");
}

struct cleanup { // runs when the exception passes
    root* r;
    explicit cleanup(root* of) : r(of) { r->count += 1; }
    ~cleanup() {
        r->count -= 1;
        ++cleaned;
    }
};

__attribute__((noinline)) long deep(root* r, int levels) {
    const cleanup here(r);
    point();
    r->sum += levels;
    if (levels > 0) return deep(r, levels - 1);
    std::strcpy(r->text, "the bottom");
    point();
    return r->sum;
}

HF_TXFUNC void joined(root* r, long value) {
    node* const n = hf::make<node>(r->head, value);
    if (n == nullptr) throw std::bad_alloc();
    r->head = n;
    point();
}

HF_TXFUNC long change(root* r, void* staged) {
    point();
    for (long i = 0; i < 3; ++i) joined(r, i);
    auto* const given = static_cast<node*>(staged);
    hf_adopt(given);
    given->next = r->head;
    given->value = 99;
    r->head = given;
    point();
    node* const gone = r->head->next;
    r->head->next = gone->next;
    hf::destroy(gone);
    point();
    for (long i = 0; i < 20; ++i) r->all->push_back(i);
    point();
    r->all->erase(r->all->begin(), r->all->begin() + 5);
    (*r->all)[0] = -1;
    point();
    deep(r, 3);
    try {
        joined(r, 7);
        throw stop{0};
    } catch (const stop& s) {
        if (s.point != 0) throw; // not ours
        r->count += 10;
    }
    point();
    return r->sum;
}

HF_TXFUNC void create(root* r) noexcept {
    r->all = hf::make<vector>();
    r->head = hf::make<node>(nullptr, 1L);
}

std::string picture(const root& r) {
    std::string all(reinterpret_cast<const char*>(&r), sizeof r);
    for (const node* n = r.head; n != nullptr; n = n->next)
        all.append(reinterpret_cast<const char*>(n), sizeof *n);
    all.append(reinterpret_cast<const char*>(r.all), sizeof *r.all);
    for (const long value : *r.all) all += std::to_string(value) + ' ';
    return all;
}

/// Runs it so that the n-th point throws.
void run(root* r, void* staged, int n) {
    armed = n;
    passed = cleaned = 0;
    try {
        change(r, staged);
    } catch (const stop& s) {
        EXPECT_EQ(s.point, n);
    } catch (const named& e) {
        EXPECT_EQ(e.point, n);
        EXPECT_STREQ(e.what(), "named");
    } catch (const std::out_of_range& e) {
        EXPECT_STREQ(e.what(), "a point");
    }
}

using aborts = pools;

TEST_F(aborts, AnExceptionThrownAtAnyPointTakesTheSectionBack) {
    hf::pool pool = open(first);
    root* r = pool.root<root>();
    create(r);
    auto staged = hf::stage(pool, sizeof(node));
    ASSERT_TRUE(staged);
    const std::string before = picture(*r);
    const std::uint64_t blocks = hf::account(pool).blocks;
    constexpr int points = 15;
    for (kind = 0; kind < 3; ++kind)
        for (int n = 1; n <= points; ++n) {
            run(r, *staged, n);
            ASSERT_EQ(passed, n) << "it went on";
            ASSERT_EQ(picture(*r), before) << "point " << n << " kind " << kind;
            ASSERT_EQ(hf::account(pool).blocks, blocks) << "point " << n << " kind " << kind;
        }
    // The same section, undisturbed, with all that it was given before.
    run(r, *staged, -1);
    EXPECT_EQ(passed, points);
    EXPECT_EQ(cleaned, 4);
    EXPECT_EQ(r->count, 10);
    EXPECT_EQ(r->sum, 6);
    EXPECT_STREQ(r->text, "the bottom");
    EXPECT_EQ(r->all->size(), 15U);
    EXPECT_EQ(r->head->value, 7);
    EXPECT_EQ(hf::account(pool).blocks,
              blocks + 3 + 1 - 1 + 1 + 1); // nodes, staged, gone, array, another
}

HF_TXFUNC bool add(root* r, long value, long most) noexcept {
    r->sum += value;
    r->head = hf::make<node>(r->head, value);
    if (r->sum > most) {
        hf::abort_section();
        r->count = r->sum; // goes on, and sees what it has stored
        return r->count > most && r->head->value == value ? false : true;
    }
    return true;
}
HF_TXFUNC bool add_twice(root* r, long value, long most) noexcept {
    const bool first = add(r, value, most);
    return add(r, value, most) && first;
}

TEST_F(aborts, ASectionThatAbortsReturnsAndHasNotHappened) {
    hf::pool pool = open(first);
    root* r = pool.root<root>();
    create(r);
    EXPECT_TRUE(add(r, 5, 10));
    const std::string before = picture(*r);
    EXPECT_FALSE(add(r, 6, 10));
    EXPECT_EQ(picture(*r), before);
    EXPECT_FALSE(add_twice(r, 3, 10)) << "the second of its calls takes back the first";
    EXPECT_EQ(picture(*r), before);
    EXPECT_TRUE(add_twice(r, 2, 10));
    EXPECT_EQ(r->sum, 9);
}

TEST_F(aborts, AClosureMayDoBoth) {
    hf::pool pool = open(first);
    root* r = pool.root<root>();
    EXPECT_THROW(hf::tx(pool,
                        [=] {
                            r->sum = 1;
                            if (r->sum == 1) throw stop{1};
                        }),
                 stop);
    EXPECT_EQ(r->sum, 0);
    EXPECT_EQ(hf::tx(pool,
                     [=]() noexcept {
                         r->sum = 2;
                         hf::abort_section();
                         return r->sum;
                     }),
              2);
    EXPECT_EQ(r->sum, 0);
}

TEST_F(aborts, AKillBehindAnAbortFindsWhatWasThere) {
    for (const bool thrown : {false, true}) {
        EXPECT_EXIT(
            {
                hf::pool pool = open(first);
                root* r = pool.root<root>();
                create(r);
                kind = 0;
                auto staged = hf::stage(pool, sizeof(node));
                if (thrown) run(r, *staged, 15);
                else add(r, 50, 10);
                ::kill(::getpid(), SIGKILL);
            },
            testing::KilledBySignal(SIGKILL), "");
        {
            hf::pool pool = open(first);
            const root* r = pool.root<root>();
            EXPECT_EQ(r->sum, 0);
            EXPECT_EQ(r->count, 0);
            EXPECT_EQ(r->all->size(), 0U);
            EXPECT_EQ(r->head->next, nullptr);
            EXPECT_EQ(hf::account(pool).blocks, 3U);
        }
        ::unlink(first.c_str());
    }
}

HF_TXFUNC void ends(root* r) noexcept {
    r->sum = 1;
    point();
}

TEST_F(aborts, AnExceptionThatANoexceptSectionLetsOutEndsTheProcess) {
    armed = 1;
    passed = kind = 0;
    EXPECT_DEATH(
        {
            hf::pool pool = open(first);
            ends(pool.root<root>());
        },
        "");
    hf::pool pool = open(first);
    EXPECT_EQ(pool.root<root>()->sum, 0);
}

HF_TXFUNC void push(root* r) {
    r->sum += 1;
    r->all->push_back(r->sum);
}

TEST_F(aborts, AFullPoolIsAnExceptionAndThePoolGoesOn) {
    {
        hf::pool pool = open(first);
        root* r = pool.root<root>();
        create(r);
        EXPECT_THROW(
            {
                for (;;) push(r);
            },
            std::bad_alloc);
        EXPECT_EQ(r->all->size(), std::size_t(r->sum));
        EXPECT_GE(r->sum, 64);
        EXPECT_EQ(hf::account(pool).blocks, 4U); // root, vector, node, array: nothing leaks
        hf::tx(pool, [=] { r->all->pop_back(), r->sum -= 1; });
        push(r);
        EXPECT_THROW(push(r), std::bad_alloc);
    }
    hf::pool pool = open(first);
    EXPECT_EQ(pool.recovered().sections_pending, 0U);
    const root* r = pool.root<root>();
    EXPECT_EQ(r->all->size(), std::size_t(r->sum));
}

/// More new bytes than the pool has room for in its log.
struct large {
    long* words;
    long marker;
};
constexpr std::size_t words = (3 << 20) / sizeof(long);

HF_TXFUNC bool take(large* l) noexcept {
    l->words = hf::make_array<long>(words);
    return l->words != nullptr;
}
HF_TXFUNC void overwrite(large* l, std::size_t count, long with) {
    l->marker = with;
    for (std::size_t i = 0; i < count; ++i) l->words[i] = with;
}
HF_TXFUNC void overwrite_or_end(large* l, std::size_t count, long with) noexcept {
    l->marker = with;
    for (std::size_t i = 0; i < count; ++i) l->words[i] = with;
}

TEST_F(aborts, ALogWithoutRoomIsAnExceptionAndThePoolGoesOn) {
    constexpr std::uint64_t bytes = 4 << 20;
    long old = 0;
    {
        hf::pool pool = open(first, bytes);
        large* l = pool.root<large>();
        ASSERT_TRUE(take(l));
        old = l->words[words - 1];
        EXPECT_THROW(overwrite(l, words, 1), std::bad_alloc);
        EXPECT_EQ(l->marker, 0);
        EXPECT_EQ(l->words[0], old);
        overwrite(l, 100, 2);
        EXPECT_EQ(l->marker, 2);
    }
    EXPECT_DEATH(
        {
            hf::pool pool = open(first, bytes);
            overwrite_or_end(pool.root<large>(), words, 3);
        },
        "no room for the log of .*overwrite_or_end.*nothing of the section has happened");
    hf::pool pool = open(first, bytes);
    const large* l = pool.root<large>();
    EXPECT_EQ(l->marker, 2);
    EXPECT_EQ(l->words[99], 2);
    EXPECT_EQ(l->words[words - 1], old);
}

} // namespace
} // namespace language_test
