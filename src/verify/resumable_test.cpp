// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: the report on engine justdo's threads from a file's bytes agrees with the result of opening
// that file.
// Method: pools whose process was killed in a section; then every word of the section's log changed
// in turn: if the report calls it damaged, open must refuse it.
#include <justdo/room.hpp>
#include <justdo/test_support.hpp>
#include <open/pool_impl.hpp>
#include <verify/test_pools.hpp>

#include <holdfast/justdo.hpp>

namespace {

using namespace hf;
using namespace hf::test;
namespace by_hand = hf::justdo::by_hand;
using verify::depth;
using verify::examine;
using verify::verdict;

struct root {
    by_hand::account accounts[2];
    by_hand::list nodes;
    by_hand::table words;
    by_hand::shelf locks;
};

class Resumable : public Pools {
protected:
    void SetUp() override {
        Pools::SetUp();
        options.engines = {justdo::engine({.open_waits = true})};
    }
    /// The file as a process leaves it that dies in 'section', at its n-th point.
    bytes cut_short(std::uint32_t points, void (*section)(root&)) {
        static thread_local std::uint32_t left;
        std::filesystem::remove(path);
        EXPECT_TRUE(in_child([&] {
            pool p = open_good();
            auto* r = p.root<root>();
            by_hand::push(&r->nodes, 1);
            left = points;
            by_hand::at_point = [](const char*, std::uint32_t) {
                if (left-- == 0) ::_exit(0);
            };
            section(*r);
        }));
        return read_all(path);
    }
    /// Changes each word in turn.
    void expect_damage_is_refused(const bytes& file, const std::vector<std::uint64_t>& words,
                                  unsigned at_least) {
        unsigned damaged = 0, refused = 0;
        for (const std::uint64_t word : words)
            for (const std::uint64_t mask : {std::uint64_t{1} << 40, std::uint64_t{1} << 60,
                                             ~std::uint64_t{0}, std::uint64_t{1} << 20}) {
                bytes changed = file;
                store(changed, word, load<std::uint64_t>(file, word) ^ mask);
                const auto report = examine(changed, depth::tables);
                if (report.outcome != verdict::damaged) continue;
                ++damaged;
                write_all(path, changed);
                auto opened = pool::open(path, options);
                EXPECT_FALSE(opened) << std::hex << word << " ^ " << mask << lines_of(report);
                refused += !opened;
                if (opened) pool::impl::abandon(std::move(*opened));
            }
        EXPECT_GT(damaged, at_least);
        EXPECT_EQ(damaged, refused);
    }
};

TEST_F(Resumable, AnOpenSectionIsToldAndResumesWhereThatSays) {
    const struct {
        std::uint32_t points;
        std::uint64_t locks;
    } cases[] = {{0, 1}, {1, 2}, {2, 2}, {3, 2}, {4, 1}};
    for (const auto& c : cases) {
        const bytes file = cut_short(
            c.points, [](root& r) { by_hand::transfer(&r.accounts[0], &r.accounts[1], 5); });
        const auto report = examine(file, depth::deep);
        EXPECT_EQ(report.outcome, verdict::not_verifiable) << lines_of(report);
        ASSERT_EQ(report.resumable.size(), 1U) << lines_of(report);
        EXPECT_EQ(report.resumable[0].function_id, by_hand::transfer_function.id);
        EXPECT_EQ(report.resumable[0].function_version, by_hand::transfer_function.version);
        EXPECT_EQ(report.resumable[0].depth, 1U);
        EXPECT_EQ(report.resumable[0].point, c.points + 1);
        EXPECT_EQ(report.resumable[0].locks, c.locks) << c.points;
        {
            pool p = open_good();
            EXPECT_EQ(p.recovered().resumed, 1U);
        }
        const auto after = examine(read_all(path), depth::deep);
        EXPECT_EQ(after.outcome, verdict::good) << lines_of(after);
        EXPECT_TRUE(after.resumable.empty());
    }
}

/// These let a lock log, and frames, grow by further blocks.
void grip_few(root& r) {
    justdo::places_in_use = {.own = 2, .more = 1};
    by_hand::grip(&r.locks);
}
void plunge(root& r) { by_hand::plunge(&r.words); }

TEST_F(Resumable, LocksAndFramesInFurtherBlocksAreCounted) {
    const auto gripped = examine(cut_short(1, grip_few), depth::deep);
    ASSERT_EQ(gripped.resumable.size(), 1U) << lines_of(gripped);
    EXPECT_EQ(gripped.resumable[0].locks, 3U);
    EXPECT_EQ(gripped.outcome, verdict::not_verifiable) << lines_of(gripped);
    {
        pool p = open_good();
        EXPECT_EQ(p.recovered().resumed, 1U);
    }
    EXPECT_EQ(examine(read_all(path), depth::deep).outcome, verdict::good);
    const auto plunged = examine(cut_short(3, plunge), depth::deep);
    ASSERT_EQ(plunged.resumable.size(), 1U) << lines_of(plunged);
    EXPECT_EQ(plunged.resumable[0].depth, 4U);
    {
        pool p = open_good();
        EXPECT_EQ(p.recovered().resumed, 1U);
    }
    EXPECT_EQ(examine(read_all(path), depth::deep).outcome, verdict::good);
}

/// The words of the first block of a chain, and the word that names it.
void add_chain(const bytes& file, std::uint64_t named_at, std::vector<std::uint64_t>& words) {
    words.push_back(named_at);
    const auto at = load<std::uint64_t>(file, named_at);
    ASSERT_NE(at, 0U);
    for (std::uint64_t i = 0; i < sizeof(justdo::more_head); i += 8) words.push_back(at + i);
}

TEST_F(Resumable, WhatIsCalledDamagedOfFurtherBlocksIsRefused) {
    struct {
        void (*section)(root&);
        std::uint32_t points;
        std::uint64_t word;
    } const cases[] = {{grip_few, 1, offsetof(justdo::thread_block, more_locks)},
                       {plunge, 3, offsetof(justdo::thread_block, more_frames)}};
    for (const auto& c : cases) {
        const bytes file = cut_short(c.points, c.section);
        const std::uint64_t thread = examine(file, depth::structure).resumable.at(0).thread;
        std::vector<std::uint64_t> words;
        add_chain(file, thread + c.word, words);
        expect_damage_is_refused(file, words, 20);
    }
}

TEST_F(Resumable, WhatIsCalledDamagedIsRefused) {
    const bytes file = cut_short(2, [](root& r) { by_hand::push(&r.nodes, 2); });
    const std::uint64_t thread = examine(file, depth::structure).resumable.at(0).thread;
    std::vector<std::uint64_t> words;
    for (std::uint64_t at = 0; at < sizeof(justdo::thread_log) + 8; at += 8)
        words.push_back(thread + at);
    words.push_back(thread + offsetof(justdo::thread_block, locks));
    words.push_back(thread + offsetof(justdo::thread_block, locks) + 8);
    for (std::uint64_t at = 0; at < 32; at += 8)
        words.push_back(thread + sizeof(justdo::thread_block) + at);
    const auto roots = load<root_words>(file, root_words_offset);
    for (std::uint64_t at = 0; at < 24; at += 8) words.push_back(roots.anchor(engine_justdo) + at);
    words.push_back(root_words_offset + root_words::place_of_anchor(engine_justdo));
    expect_damage_is_refused(file, words, 30);
}

} // namespace
