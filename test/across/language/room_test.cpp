// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A container in a pool that runs full: the process ends and says why, and the next open finds the
// container as it was before the section.
#include "support.hpp"

#include <holdfast/alloc.hpp>
#include <holdfast/allocator.hpp>
#include <holdfast/author/blocks.hpp>
#include <holdfast/author/staged.hpp>
#include <holdfast/tx.hpp>

#include <new>
#include <sys/wait.h>
#include <vector>

namespace language_test {
namespace {

using vector = std::vector<long, hf::allocator<long>>;

struct root {
    vector* all;
    long pushed;
    long* words;
};

HF_TXFUNC void create(root* r) noexcept { r->all = hf::make<vector>(); }

/// Room first: nothing is stored in place before push_back has its new block.
HF_TXFUNC void push(root* r) noexcept {
    r->all->push_back(r->pushed);
    r->pushed += 1;
}
/// Counts first.
HF_TXFUNC void count_and_push(root* r) noexcept {
    r->pushed += 1;
    r->all->push_back(r->pushed - 1);
}

constexpr long words_count = 20000;
HF_TXFUNC void take_words(root* r) noexcept { r->words = hf::make_array<long>(words_count); }
/// Overwrites more than a pool of 256 KiB has room for in a log.
HF_TXFUNC void add_to_all(root* r) noexcept {
    for (long i = 0; i < words_count; ++i) r->words[i] += i + 1;
}

/// Uses what it gets without a look at it.
HF_TXFUNC void use_blindly(root* r) noexcept {
    r->pushed += 1;
    r->words = hf::make_array<long>(1 << 20);
    r->words[7] = r->pushed;
}
/// Looks, and goes on. What it does wrong then has another cause.
HF_TXFUNC void look_and_go_on(root* r) noexcept {
    if (hf::make_array<long>(1 << 20) == nullptr) r->pushed += 1;
}

template <class Push> void fill(const std::string& path, Push push) {
    hf::pool pool = open(path, 256 << 10);
    root* r = pool.root<root>();
    create(r);
    for (;;) push(r);
}

bool whole(const root& r) {
    for (long i = 0; i < r.pushed; ++i)
        if ((*r.all)[static_cast<std::size_t>(i)] != i) return false;
    return r.pushed >= 64 && std::size_t(r.pushed) == r.all->size();
}

/// The sections here are noexcept: if hf::allocator throws, the process ends, too.
std::string no_room(const std::string& message) { return takes_back() ? "bad_alloc" : message; }

using room = pools;

TEST_F(room, FullPoolEndsTheProcessAndLeavesTheContainerAsItWas) {
    EXPECT_DEATH(
        fill(first, push),
        no_room("no room for [0-9]+ bytes of hf::allocator in section .*push.*the pool has"));
    hf::pool pool = open(first, 256 << 10);
    EXPECT_EQ(pool.recovered().discarded, clobber() ? 1U : 0U); // redo logs at its end
    EXPECT_EQ(pool.recovered().rolled_back, 0U);                // undo has stored nothing by then
    const root* r = pool.root<root>();
    EXPECT_TRUE(whole(*r));
    EXPECT_EQ(hf::account(pool).blocks, 3U); // root, vector, its array: nothing leaks
}

TEST_F(room, NullThatIsUsedAsABlockIsExplainedBeforeItKills) {
    EXPECT_DEATH(
        {
            hf::pool pool = open(first, 256 << 10);
            use_blindly(pool.root<root>());
        },
        "pool_full: section .*use_blindly.*room_test.cpp:[0-9]+.* uses null as a block: it asked "
        "for 8388608 bytes");
    // A fault behind the section has another cause.
    testing::internal::CaptureStderr();
    const pid_t child = ::fork();
    if (child == 0) {
        hf::pool pool = open(second, 256 << 10);
        look_and_go_on(pool.root<root>());
        *const_cast<volatile long*>(static_cast<long*>(nullptr)) = 1;
        ::_exit(0);
    }
    int how = 0;
    ASSERT_EQ(::waitpid(child, &how, 0), child);
    EXPECT_FALSE(WIFEXITED(how) && WEXITSTATUS(how) == 0) << how;
    EXPECT_EQ(testing::internal::GetCapturedStderr().find("uses null"), std::string::npos);
}

TEST_F(room, AfterAStoreTheSectionIsRolledBack) {
    EXPECT_DEATH(fill(first, count_and_push), no_room("no room for"));
    hf::open_options o;
    o.layout = "language/1";
    o.engines = hf::engines_of_build();
    auto pool = hf::pool::open(first, o);
    ASSERT_TRUE(pool) << pool.error().what();
    const auto& done = pool->recovered();
    EXPECT_EQ(done.rolled_back, redo() ? 0U : 1U);
    EXPECT_EQ(pool->recovered().no_room, clobber() ? 1U : 0U);
    EXPECT_TRUE(whole(*pool->root<root>()));
}

/// A log that finds no room in the middle of a section: it is as if that had never begun, and the
/// pool opens.
TEST_F(room, ALogWithoutRoomLeavesNothingOfItsSection) {
    const auto overflow = [&] {
        hf::pool pool = open(first, 256 << 10);
        take_words(pool.root<root>());
        add_to_all(pool.root<root>());
    };
    EXPECT_DEATH(overflow(), "no room for the log of .*add_to_all");
    hf::pool pool = open(first, 256 << 10);
    EXPECT_EQ(pool.recovered().rolled_back, 0U); // the first entry found no room
    const root* r = pool.root<root>();
    ASSERT_NE(r->words, nullptr);
    for (long i = 0; i < words_count; ++i) ASSERT_EQ(r->words[i], 0) << i;
}

TEST_F(room, StagingTellsWhetherThereIsRoom) {
    hf::pool pool = open(first, 256 << 10);
    auto some = hf::staged::in(pool, 1 << 10);
    ASSERT_TRUE(some);
    some->reset();
    const auto more = hf::staged::in(pool, 1 << 20);
    ASSERT_FALSE(more);
    EXPECT_EQ(more.error().what(),
              first + ": pool_full: no room for 1048576 bytes: the pool has 262144 of at most "
                      "262144 bytes; that is more than the pool may ever hold: open it with a "
                      "larger open_options::max_bytes");
}

} // namespace
} // namespace language_test
