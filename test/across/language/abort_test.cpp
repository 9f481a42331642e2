// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a section of engine redo, or auto, leaves no trace if an exception leaves it, wherever it
// is thrown, or if it calls hf::abort_section. A section that catches its exceptions is complete.
// Method: one section that does everything a section can do throws at its n-th point, for every n,
// and the pool is compared with its earlier contents; sections that find no room; the same in
// processes that die.
#include "support.hpp"

#include <holdfast/alloc.hpp>
#include <holdfast/allocator.hpp>
#include <holdfast/author/blocks.hpp>
#include <holdfast/author/staged.hpp>
#include <holdfast/tx.hpp>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>
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
    auto staged = hf::staged::in(pool, sizeof(node));
    ASSERT_TRUE(staged);
    const std::string before = picture(*r);
    const std::uint64_t blocks = hf::account(pool).blocks;
    constexpr int points = 15;
    for (kind = 0; kind < 3; ++kind)
        for (int n = 1; n <= points; ++n) {
            run(r, staged->get(), n);
            ASSERT_EQ(passed, n) << "it went on";
            ASSERT_EQ(picture(*r), before) << "point " << n << " kind " << kind;
            ASSERT_EQ(hf::account(pool).blocks, blocks) << "point " << n << " kind " << kind;
        }
    // The same section, undisturbed, with all that it was given before.
    run(r, staged->release(), -1);
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

HF_TXFUNC void abort_and_throw(root* r) {
    r->sum += 1;
    hf::abort_section();
    throw stop{1};
}

TEST_F(aborts, ASectionThatAbortsAndThrowsTakesNoLaterOneWithIt) {
    hf::pool pool = open(first);
    root* r = pool.root<root>();
    create(r);
    EXPECT_THROW(abort_and_throw(r), stop);
    EXPECT_EQ(r->sum, 0);
    EXPECT_TRUE(add(r, 3, 10)) << "it takes a block, and commits";
    EXPECT_EQ(r->sum, 3);
    EXPECT_THROW(abort_and_throw(r), stop);
    EXPECT_EQ(r->sum, 3);
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

HF_TXFUNC void joined_in(root* one, root* two) { one->sum = two->sum; }

HF_TXFUNC void take_from(root* r, const std::string& from, long* taken) {
    std::memcpy(r->text, from.data(), from.size() + 1);
    *taken += long(from.size());
    if (from.size() > 20) throw stop{int(from.size())};
}

TEST_F(aborts, AClosureMayCaptureWhatIsVolatile) {
    hf::pool pool = open(first);
    root* r = pool.root<root>();
    long all = 0;
    const std::vector<long> values{1, 2, 3};
    hf::tx(pool, [&] {
        for (const long value : values) r->sum += value;
        all = r->sum;
        r->count = static_cast<long>(values.size());
    });
    EXPECT_EQ(r->sum, 6);
    EXPECT_EQ(r->count, 3);
    EXPECT_EQ(all, 6);
    const auto kept = std::make_unique<std::string>("a short text");
    const auto left = std::make_unique<std::string>("longer than what it may be");
    all = 0;
    take_from(r, *kept, &all);
    EXPECT_THROW(take_from(r, *left, &all), stop);
    EXPECT_EQ(*kept, r->text);
    EXPECT_EQ(std::size_t(all), kept->size() + left->size()) << "volatile memory is not taken back";
    EXPECT_DEATH(
        {
            hf::pool one = open(first + ".child");
            hf::pool two = open(second + ".child");
            joined_in(one.root<root>(), two.root<root>());
        },
        "expected an address in the pool of the arguments before it");
    ::unlink((first + ".child").c_str());
    ::unlink((second + ".child").c_str());
}

TEST_F(aborts, AKillBehindAnAbortFindsWhatWasThere) {
    for (const bool thrown : {false, true}) {
        EXPECT_EXIT(
            {
                hf::pool pool = open(first);
                root* r = pool.root<root>();
                create(r);
                kind = 0;
                auto staged = hf::staged::in(pool, sizeof(node));
                if (thrown) run(r, staged->get(), 15);
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

/// Finds no room at the armed point.
template <class T> struct scarce : hf::allocator<T> {
    using value_type = T;
    scarce() = default;
    template <class U> scarce(const scarce<U>&) noexcept {}
    template <class U> struct rebind {
        using other = scarce<U>;
    };
    T* allocate(std::size_t count) {
        if (++passed == armed) throw std::bad_alloc();
        return hf::allocator<T>::allocate(count);
    }
};
using text = std::basic_string<char, std::char_traits<char>, scarce<char>>;
using entry = std::pair<const long, text>;
struct library {
    std::vector<text, scarce<text>>* texts;
    std::deque<long, scarce<long>>* numbers;
    std::unordered_map<long, text, std::hash<long>, std::equal_to<long>, scarce<entry>>* named;
};

HF_TXFUNC void create_library(library* l) {
    l->texts = hf::make<std::vector<text, scarce<text>>>();
    // Their constructors allocate, and hf::make lets no exception out.
    l->numbers = static_cast<decltype(l->numbers)>(hf_alloc(sizeof *l->numbers));
    new (l->numbers) std::deque<long, scarce<long>>();
    l->named = static_cast<decltype(l->named)>(hf_alloc(sizeof *l->named));
    new (l->named) std::remove_reference_t<decltype(*l->named)>();
}

HF_TXFUNC void fill_library(library* l, long from) {
    for (long i = from; i < from + 4; ++i) {
        l->texts->push_back(text("longer than what fits into the object itself"));
        l->texts->front() += " and longer";
        for (long n = 0; n < 40; ++n) l->numbers->push_back(n);
        (*l->named)[i] = l->texts->back();
        l->texts->insert(l->texts->begin(), text("first of all, for the time being, at least"));
    }
    l->named->erase(from);
    if (l->named->at(from + 1).empty()) l->texts->clear();
}

std::string picture(const library& l) {
    std::string all(reinterpret_cast<const char*>(&l), sizeof l);
    for (const text& t : *l.texts) all.append(t.begin(), t.end()) += '\n';
    for (const long n : *l.numbers) all += std::to_string(n) + ' ';
    for (const auto& [number, t] : *l.named)
        all += std::to_string(number).append(t.begin(), t.end());
    return all;
}

TEST_F(aborts, ContainersThatFindNoRoomAnywhereAreAsTheyWere) {
    hf::pool pool = open(first);
    auto* const l = pool.root<library>();
    armed = -1;
    create_library(l);
    fill_library(l, 100);
    const std::string before = picture(*l);
    const std::uint64_t blocks = hf::account(pool).blocks;
    int refused = 0;
    for (;; ++refused) {
        armed = refused + 1;
        passed = 0;
        try {
            fill_library(l, 200);
            break;
        } catch (const std::bad_alloc&) {
            ASSERT_EQ(picture(*l), before) << "allocation " << armed;
            ASSERT_EQ(hf::account(pool).blocks, blocks) << "allocation " << armed;
        }
    }
    EXPECT_EQ(passed, refused);
    EXPECT_GE(refused, 20);
    EXPECT_EQ(l->texts->size(), 16U);
    EXPECT_EQ(l->numbers->size(), 320U);
    EXPECT_EQ(l->named->size(), 6U);
    EXPECT_THROW(hf::tx(pool, [=] { (void)l->named->at(7), l->texts->clear(); }),
                 std::out_of_range);
    EXPECT_EQ(l->texts->size(), 16U);
}

// [exception]
struct account {
    long cents;
};

HF_TXFUNC void transfer(account* from, account* to, long cents) {
    to->cents += cents;
    from->cents -= cents;
    if (from->cents < 0) throw std::runtime_error("not enough"); // and nothing has been transferred
}
// [/exception]
// [abort]
HF_TXFUNC bool try_transfer(account* from, account* to, long cents) noexcept {
    to->cents += cents;
    from->cents -= cents;
    if (from->cents >= 0) return true;
    hf::abort_section(); // returns: the section goes on to its end, and then it has not happened
    return false;
}
// [/abort]

TEST_F(aborts, NothingIsTransferredThatIsNotThere) {
    hf::pool pool = open(first);
    account* const both = *pool.root<account[2]>();
    transfer(both, both + 1, 0);
    EXPECT_THROW(transfer(both, both + 1, 1), std::runtime_error);
    EXPECT_FALSE(try_transfer(both, both + 1, 1));
    EXPECT_TRUE(try_transfer(both, both + 1, -3));
    EXPECT_EQ(both[0].cents, 3);
    EXPECT_EQ(both[1].cents, -3);
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
// Memory outside of the pool: what is taken, and how much of it there is now.
long alive = 0, largest = 0;
struct counted {
    counted() { largest = std::max(largest, ++alive); }
    counted(const counted&) : counted() {}
    ~counted() { --alive; }
};
HF_TXFUNC void fails_with_a_text(root* r, bool abort) {
    const std::vector<counted> some(10);
    const auto one = std::make_unique<counted>();
    std::string text = "a text that is too long for the object itself";
    r->sum += 1;
    text += ", " + std::to_string(r->sum);
    std::strcpy(r->text, text.c_str() + 30);
    if (!abort) throw std::runtime_error(text);
    hf::abort_section();
}
TEST_F(aborts, ASectionThatIsTakenBackFreesItsScratchMemory) {
    hf::pool pool = open(first);
    root* const r = pool.root<root>();
    for (const bool abort : {false, true}) {
        alive = largest = 0;
        std::string said;
        try {
            fails_with_a_text(r, abort);
        } catch (const std::runtime_error& e) {
            said = e.what();
        }
        EXPECT_EQ(said, abort ? "" : "a text that is too long for the object itself, 1");
        EXPECT_EQ(largest, 11);
        EXPECT_EQ(alive, 0);
        EXPECT_EQ(r->sum, 0);
        EXPECT_STREQ(r->text, "");
    }
}

HF_TXFUNC void adds_and_fails(root* r, std::vector<std::string>* seen) {
    r->sum += 1;
    seen->push_back("seen by the section, and longer than the object: " + std::to_string(r->sum));
    if (seen->size() > 1) throw stop{1};
}
TEST_F(aborts, WhatTheCallersMemoryHasGotStays) {
    hf::pool pool = open(first);
    root* const r = pool.root<root>();
    std::vector<std::string> seen;
    adds_and_fails(r, &seen);
    EXPECT_THROW(adds_and_fails(r, &seen), stop);
    EXPECT_EQ(r->sum, 1);
    ASSERT_EQ(seen.size(), 2U);
    EXPECT_EQ(seen[1], "seen by the section, and longer than the object: 2");
}

HF_TXFUNC void overwrite_or_end(large* l, std::size_t count, long with) noexcept {
    l->marker = with;
    for (std::size_t i = 0; i < count; ++i) l->words[i] = with;
}

/// Old words are logged when they are overwritten, where the function cannot be left: its process
/// ends. New ones are logged at the commit.
TEST_F(aborts, ALogWithoutRoomIsAnExceptionOrTheEndAndThePoolGoesOn) {
    constexpr std::uint64_t bytes = 4 << 20;
    long old = 0;
    {
        hf::pool pool = open(first, bytes);
        large* l = pool.root<large>();
        ASSERT_TRUE(take(l));
        old = l->words[words - 1];
        if (redo()) {
            EXPECT_THROW(overwrite(l, words, 1), std::bad_alloc);
        }
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
        chooses()
            ? "no room for the log of .*overwrite_or_end.*rolls the section back"
            : "no room for the log of .*overwrite_or_end.*nothing of the section has happened");
    hf::pool pool = open(first, bytes);
    const large* l = pool.root<large>();
    EXPECT_EQ(l->marker, 2);
    EXPECT_EQ(l->words[99], 2);
    EXPECT_EQ(l->words[words - 1], old);
}

} // namespace
} // namespace language_test
