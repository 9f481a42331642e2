// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: the paper's text, taken literally, loses data in some places; this shows that it does, and
// that our replacement does not. Method: each hole as the text has it, which has to fail, and as
// ours, which has to pass: on a few stores, where one can see why, and on a structure. The letters
// are those of docs/internals/slpmt.md.
#include <slpmt/crash_proof.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <ranges>

namespace {

using namespace hf;
using namespace hf::slpmt;

class random_numbers {
public:
    explicit random_numbers(std::uint64_t seed) : state_(seed) {}
    std::uint64_t below(std::uint64_t bound) {
        state_ = state_ * 6364136223846793005 + 1442695040888963407;
        return (state_ >> 33) % bound;
    }

private:
    std::uint64_t state_;
};

// (a) Half-logged halves of a line lose their log bits when they go down to the second level.

enum class on_loss { nothing, sequence_numbers, drop_buffered, speculate };

/// Random stores of a transaction, log bits lost now and then. Returns whether the log restores the
/// old bytes.
bool log_restores(std::uint64_t seed, on_loss how) {
    random_numbers random{seed};
    std::array<std::uint64_t, 64> words{};
    for (std::uint64_t& word : words) word = random.below(1 << 30);
    const auto before = words;
    std::array<bool, 64> bits{};
    log_buffer buffer;
    std::vector<record> log;
    std::uint64_t order = 0;
    const auto drain = [&](unsigned, const std::vector<record>& records) {
        log.insert(log.end(), records.begin(), records.end());
    };
    const auto log_word = [&](std::uint64_t word) {
        if (how != on_loss::drop_buffered || buffer.covering(word) == nullptr)
            buffer.add({word, 0, {words[word]}, ++order}, drain);
        bits[word] = true;
    };
    for (int step = 0; step < 400; ++step) {
        const std::uint64_t word = random.below(words.size());
        if (!bits[word]) log_word(word);
        words[word] = random.below(1 << 30);
        if (random.below(4) != 0) continue;
        const std::uint64_t first =
            random.below(words.size() / 4) * 4; // this half goes down, and comes up again
        const auto half = std::span(bits).subspan(first, 4);
        if (std::ranges::all_of(half, std::identity{}) ||
            std::ranges::none_of(half, std::identity{}))
            continue;
        for (std::uint64_t i = first; i < first + 4; ++i)
            if (how == on_loss::speculate && !bits[i]) log_word(i);
            else if (how != on_loss::speculate) bits[i] = false;
    }
    std::ranges::copy(buffer.take([](const record&) { return true; }), std::back_inserter(log));
    if (how == on_loss::sequence_numbers) std::ranges::sort(log, {}, &record::order);
    for (const record& one : std::views::reverse(log))
        std::copy_n(one.values.begin(), one.words(),
                    words.begin() + static_cast<std::ptrdiff_t>(one.word));
    return words == before;
}

unsigned wrong_of_300(on_loss how) {
    unsigned wrong = 0;
    for (std::uint64_t seed = 0; seed < 300; ++seed) wrong += !log_restores(seed, how);
    return wrong;
}

TEST(HoleA, DuplicateRecordsOvertakeTheOlderOnes) {
    EXPECT_GT(wrong_of_300(on_loss::nothing), 0U);
    EXPECT_GT(wrong_of_300(on_loss::sequence_numbers), 0U);
    EXPECT_EQ(wrong_of_300(on_loss::drop_buffered), 0U);
    EXPECT_EQ(wrong_of_300(on_loss::speculate), 0U);
    RecordProperty("by_the_text", static_cast<int>(wrong_of_300(on_loss::nothing)));
    RecordProperty("sequence_numbers", static_cast<int>(wrong_of_300(on_loss::sequence_numbers)));
}

/// A whole machine's transaction that never commits: after any acceptance, recovery ends with the
/// state before it.
bool transaction_vanishes(std::uint64_t seed, const technique& how) {
    layout where;
    where.log_lines = 1024;
    where.bytes = where.heap() + 4096;
    sim::parameters parts = small_caches();
    parts.l2 = {4 << 10, 4, 12}; // everything stays in the second level
    machine on{how, parts, where};
    random_numbers random{seed};
    on.begin();
    for (std::uint64_t i = 0; i < 128; ++i) on.store(where.heap() + 8 * i, i + 1);
    on.commit();
    bool good = true;
    on.memory().on_acceptance([&] {
        image of{{on.memory().durable().begin(), on.memory().durable().end()}};
        good &= static_cast<bool>(recover(of, where, how.redo, [](image&) {}));
        for (std::uint64_t i = 0; i < 128; ++i)
            good &= of.word(where.heap() + 8 * i).value == i + 1;
    });
    on.begin();
    for (int step = 0; step < 600; ++step)
        on.store(where.heap() + 8 * random.below(128), random.below(1 << 30));
    on.switch_context();
    on.memory().on_acceptance({});
    return good;
}

TEST(HoleA, OfAMachineTakenLiterallySomeTransactionsDoNotVanish) {
    technique text = slpmt::slpmt;
    text.speculates = false;
    unsigned wrong_text = 0, wrong_ours = 0;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        wrong_text += !transaction_vanishes(seed, text);
        wrong_ours += !transaction_vanishes(seed, slpmt::slpmt);
    }
    EXPECT_GT(wrong_text, 0U);
    EXPECT_EQ(wrong_ours, 0U);
}

// (b) After a lazy move only the old table is durable, and nothing names it.

TEST(HoleB, AResizeByTheTextLosesTheTable) {
    proof_case what{.workload = hashtable_by_the_text,
                    .insertions = 160,
                    .interrupt_every = 0,
                    .continue_every = 0};
    const proof text = prove(what);
    EXPECT_GT(text.violations, 0U);
    what.workload = "hashtable";
    EXPECT_EQ(prove(what).violations, 0U);
    RecordProperty("unrecoverable_points", static_cast<int>(text.violations));
}

/// A lazy line that depends on another, and its fate when that one is changed.
struct dependent : ::testing::Test {
    static constexpr std::uint64_t source = 4, lazy = 0;
    layout where = [] {
        layout one;
        one.log_lines = 64;
        one.bytes = one.heap() + (64 << 10);
        return one;
    }();
    std::uint64_t at(std::uint64_t line) const { return where.heap() + 64 * line; }
    /// The value that a crash after both transactions leaves of the lazy line.
    std::uint64_t after(const technique& how, sim::parameters parts, std::uint64_t lines_between) {
        machine on{how, parts, where};
        on.begin();
        on.store(at(source), 1);
        on.store(at(lazy), 1, lazy_log_free); // as the source is: recovery could compute it
        on.commit();
        for (std::uint64_t i = 0; i < lines_between; ++i) on.load(at(16 + i));
        on.begin();
        on.store(at(source), 2); // and now it could not
        on.commit();
        std::uint64_t value = 0;
        std::memcpy(&value, &on.memory().durable()[at(lazy)], 8);
        return value;
    }
};

// (c) A store to a line that the core may write already makes no coherence request.

TEST_F(dependent, HoleCAStoreThatAsksNobodyIsNotLookedUp) {
    technique text = slpmt::slpmt;
    text.checks_hits = false;
    EXPECT_EQ(after(text, {}, 0), 0U);
    EXPECT_EQ(after(slpmt::slpmt, {}, 0), 1U);
}

// (d) A lazy line that leaves the private caches is found by no later conflict.

TEST_F(dependent, HoleDALazyLineThatHasLeftIsForgotten) {
    technique text = slpmt::slpmt;
    text.persists_leaving = false;
    EXPECT_EQ(after(text, small_caches(), 40), 0U);
    EXPECT_EQ(after(slpmt::slpmt, small_caches(), 40), 1U);
}

TEST(HoleD, OfAStructure) {
    technique text = slpmt::slpmt;
    text.persists_leaving = false;
    proof_case what{.workload = "hashtable",
                    .how = text,
                    .parts = small_caches(),
                    .insertions = 160,
                    .interrupt_every = 0,
                    .continue_every = 0};
    EXPECT_GT(prove(what).violations, 0U);
    what.how = slpmt::slpmt;
    EXPECT_EQ(prove(what).violations, 0U);
}

// (e) Redo: a logged line that leaves the caches in mid-transaction overwrites what the log cannot
// restore.

TEST(HoleE, ALoggedLineThatLeavesUnderRedoCannotBeTakenBack) {
    technique text = with_redo(fg, "FG, redo");
    text.guards_overflow = false;
    proof_case what{.workload = "rbtree",
                    .how = text,
                    .parts = small_caches(),
                    .interrupt_every = 0,
                    .continue_every = 0};
    EXPECT_GT(prove(what).violations, 0U);
    what.how = with_redo(fg, "FG, redo");
    EXPECT_EQ(prove(what).violations, 0U);
}

// (f) Redo: a line with logged words follows the mark; its log-free words are in no record.

TEST(HoleF, LogFreeWordsOfALoggedLineAreLostUnderRedo) {
    technique text = with_redo(slpmt::slpmt, "SLPMT, redo");
    text.logs_mixed_lines = false;
    proof_case what{.workload = "rbtree", .how = text, .interrupt_every = 0, .continue_every = 0};
    EXPECT_GT(prove(what).violations, 0U);
    what.how = with_redo(slpmt::slpmt, "SLPMT, redo");
    EXPECT_EQ(prove(what).violations, 0U);
}

// Annotations that are wrong are found, and named.

proof_case wrongly(std::string_view workload, std::string_view site, operands how) {
    return {.workload = workload,
            .interrupt_every = 0,
            .continue_every = 0,
            .annotations = {{site, how}}};
}

TEST(Annotations, AWrongOneIsNamedWithFileAndLine) {
    struct wrong {
        std::string_view workload, site;
        operands how;
    };
    for (const wrong& one :
         {wrong{"hashtable", "chain first", log_free}, wrong{"rbtree", "child", lazy_log_free},
          wrong{"heap", "element", lazy_log_free}, wrong{"avl", "child", log_free},
          wrong{"kv-btree", "count", lazy_logged}, wrong{"kv-ctree", "entry", lazy_logged}}) {
        const proof_case what = wrongly(one.workload, one.site, one.how);
        EXPECT_GT(prove(what).violations, 0U) << one.site;
        const auto names = blame(what);
        ASSERT_EQ(names.size(), 1U) << one.site;
        const std::string file(one.workload.substr(one.workload.starts_with("kv-") ? 3 : 0));
        EXPECT_EQ(names[0].find(file + ".cpp:"), 0U) << names[0];
        EXPECT_NE(names[0].find("store '" + std::string(one.site) + "' is "), std::string::npos)
            << names[0];
    }
}

} // namespace
