// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a report names the line at fault. Method: programs with one fault each, explored as any
// other; the report must name the guilty store's line in the program.
#include <base/symbols.hpp>
#include <check/pool_program.hpp>
#include <check/program.hpp>
#include <check/recorder.hpp>
#include <check/report.hpp>

#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/undo.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace {

using namespace hf::crash;
using hf::check::recorder;

struct record {
    std::uint64_t valid;
    std::uint64_t other_line[7];
    std::uint64_t value;
    std::uint64_t value_neighbour;
    std::uint64_t third_line[6];
    std::uint64_t last;
    std::uint64_t fourth_line[7];
    std::uint64_t logged;
    std::uint64_t fifth_line[7];
    std::uint64_t number;
};

int guilty_line = 0; // set by the program under test, on the line at fault

/// One operation that sets 'value' and lets 'valid' say so.
class one_fault : public pool_program {
public:
    one_fault() : pool_program({.layout = "crash/one fault", .engines = {hf::undo::engine()}}) {}
    void setup(hf::pool& p) override { p.root<record>(); }
    unsigned operations(unsigned) const override { return 1; }
    void run(hf::pool& p, unsigned, unsigned) override { change(p, *p.root<record>()); }
    void describe(hf::pool& p, state& s) override {
        const auto* r = p.root<record>();
        s.add(r->valid);
        s.add(r->valid != 0 ? r->value : 0);
    }
    /// A plain store may have been in the caches only.
    void recover(hf::pool& p) override {
        hf::persist::persist(p.domain(), p.root<record>(), sizeof(record));
    }

protected:
    virtual void change(hf::pool& p, record& r) = 0;
    static void keep(hf::pool& p, const std::uint64_t& word) {
        hf::persist::persist(p.domain(), &word, sizeof word);
    }
};

struct correct final : one_fault {
    void change(hf::pool& p, record& r) override {
        r.value = 7;
        keep(p, r.value);
        r.valid = 1;
        keep(p, r.valid);
    }
};

struct missing_flush final : one_fault {
    void change(hf::pool& p, record& r) override {
        r.value = 7, guilty_line = __LINE__;
        hf::persist::fence(p.domain());
        r.valid = 1;
        keep(p, r.valid);
    }
};

/// Reports a wrong state by an expectation alone: its values are the same.
struct unexpected final : one_fault {
    void change(hf::pool& p, record& r) override {
        r.value = 7;
        hf::persist::fence(p.domain());
        r.valid = 1;
        keep(p, r.valid);
    }
    void describe(hf::pool& p, state& s) override {
        const auto* r = p.root<record>();
        s.add(r->valid);
        s.expect(r->valid == 0 || r->value == 7, "what is valid has a value");
    }
};

struct missing_fence final : one_fault {
    void change(hf::pool& p, record& r) override {
        r.value = 7, guilty_line = __LINE__;
        hf::persist::flush(p.domain(), &r.value, sizeof r.value);
        r.valid = 1;
        keep(p, r.valid);
    }
};

struct missing_last_fence final : one_fault {
    void change(hf::pool& p, record& r) override {
        r.value = 7;
        keep(p, r.value);
        r.valid = 1, guilty_line = __LINE__;
        hf::persist::flush(p.domain(), &r.valid, sizeof r.valid);
    }
};

struct wrong_order final : one_fault {
    void change(hf::pool& p, record& r) override {
        r.valid = 1, guilty_line = __LINE__;
        keep(p, r.valid);
        r.value = 7;
        keep(p, r.value);
    }
};

struct unlogged_word final : one_fault {
    void change(hf::pool&, record& r) override {
        static constexpr hf_arg argument{0, sizeof(void*), HF_ARG_POOL_POINTER};
        static const hf_txfunc section{HF_ABI_VERSION, sizeof(void*), 1, 1,      "unlogged_word",
                                       "here",         &argument,     1, nullptr};
        static const bool registered = (hf_txfunc_register(&section), true);
        const record* const arguments[] = {&r};
        if (registered) hf_undo_begin(&section, arguments);
        hf_undo_log(&r.valid, sizeof r.valid);
        r.valid = 1;
        hf_note_store(&r.value, sizeof r.value);
        r.value = 7;
        r.other_line[0] = 1, guilty_line = __LINE__;
        hf_note_store(&r.other_line[0], sizeof r.other_line[0]);
        hf_undo_commit();
    }
    void describe(hf::pool& p, state& s) override {
        one_fault::describe(p, s);
        s.add(p.root<record>()->other_line[0]);
    }
};

/// Stores a word at a time, flushed at once and fenced before the next 'every'th one.
struct counted_late final : one_fault {
    explicit counted_late(unsigned every_) : every(every_) {}
    unsigned operations(unsigned) const override { return 4; }
    bool buffered(unsigned, unsigned) const override { return true; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        auto* r = p.root<record>();
        if (i % every == 0) hf::persist::fence(p.domain());
        r->value = i + 1;
        hf::persist::flush(p.domain(), &r->value, sizeof r->value);
    }
    void change(hf::pool&, record&) override {}
    void describe(hf::pool& p, state& s) override { s.add(p.root<record>()->value); }
    unsigned every;
};

/// Two threads that count without a lock.
struct lost_update final : one_fault {
    unsigned threads() const override { return 2; }
    void change(hf::pool& p, record& r) override {
        r.value = r.value + 1;
        keep(p, r.value);
    }
    void describe(hf::pool& p, state& s) override { s.add(p.root<record>()->value); }
};

/// Three threads; wrong when the third one comes between the two stores of the first.
struct third_in_between final : one_fault {
    third_in_between() { options_.max_threads = 4; }
    unsigned threads() const override { return 3; }
    void run(hf::pool& p, unsigned thread, unsigned) override {
        auto& r = *p.root<record>();
        if (thread == 0) {
            r.other_line[0] = 1;
            keep(p, r.other_line[0]);
            r.other_line[0] = 2;
        }
        if (thread == 2 && r.other_line[0] == 1) {
            r.valid = 1;
            keep(p, r.valid);
        }
    }
    void change(hf::pool&, record&) override {}
    void describe(hf::pool& p, state& s) override { s.add(p.root<record>()->valid); }
};

/// Two threads and a lock that they spin for, in volatile memory or in the pool.
struct spinning final : one_fault {
    explicit spinning(bool in_pool_) : in_pool(in_pool_) {}
    unsigned threads() const override { return 2; }
    void run(hf::pool& p, unsigned, unsigned) override {
        auto& r = *p.root<record>();
        std::uint64_t* lock = in_pool ? &r.other_line[0] : &own_lock;
        while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE) != 0) {}
        r.value = r.value + 1;
        keep(p, r.value);
        __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
    }
    void change(hf::pool&, record&) override {}
    void describe(hf::pool& p, state& s) override { s.add(p.root<record>()->value); }
    bool in_pool;
    std::uint64_t own_lock = 0;
};
/// It ends when the other thread does.
struct hangs final : one_fault {
    unsigned threads() const override { return 2; }
    void change(hf::pool&, record&) override {
        for (volatile bool go_on = true; go_on;) {}
    }
};

/// Makes things durable by instructions of its own.
struct own_instructions final : one_fault {
    explicit own_instructions(bool fenced_) : fenced(fenced_) {}
    void change(hf::pool&, record& r) override {
        r.value = 7;
        asm volatile("clflush %0" : "+m"(r.value));
        if (fenced) asm volatile("sfence" ::: "memory");
        __builtin_nontemporal_store(std::uint64_t{7}, &r.last);
        if (fenced) asm volatile("sfence" ::: "memory");
        asm volatile("movnti %1, %0" : "=m"(r.logged) : "r"(std::uint64_t{7}));
        if (fenced) asm volatile("sfence" ::: "memory");
        r.valid = 1;
        asm volatile("clflush %0" : "+m"(r.valid));
        asm volatile("mfence" ::: "memory");
    }
    void describe(hf::pool& p, state& s) override {
        const auto* r = p.root<record>();
        s.add(r->valid);
        if (r->valid == 0) return;
        for (const std::uint64_t value : {r->value, r->last, r->logged}) s.add(value);
    }
    bool fenced;
};

/// Two words that change together: an intention first, which recover() carries out.
struct own_recovery : one_fault {
    void change(hf::pool& p, record& r) override {
        r.other_line[0] = 7;
        keep(p, r.other_line[0]);
        carry_out(p, r);
    }
    void recover(hf::pool& p) override {
        one_fault::recover(p);
        if (auto& r = *p.root<record>(); r.other_line[0] != 0) carry_out(p, r);
    }
    void describe(hf::pool& p, state& s) override {
        const auto* r = p.root<record>();
        s.add(r->value);
        s.add(r->last);
    }
    virtual void carry_out(hf::pool& p, record& r) {
        r.value = r.other_line[0];
        keep(p, r.value);
        r.last = r.other_line[0];
        keep(p, r.last);
        r.other_line[0] = 0;
        keep(p, r.other_line[0]);
    }
};
struct no_own_recovery final : own_recovery {
    void recover(hf::pool&) override {}
};
/// Its recovery holds as long as nothing fails in it.
struct careless_recovery final : own_recovery {
    void recover(hf::pool& p) override {
        one_fault::recover(p);
        auto& r = *p.root<record>();
        const std::uint64_t meant = r.other_line[0];
        if (meant == 0) return;
        r.other_line[0] = 0;
        keep(p, r.other_line[0]);
        r.value = r.last = meant;
        keep(p, r.value);
        keep(p, r.last);
    }
};

/// A log of one entry, that counts when its number is the next one. Both go with one fence: where
/// the value is still zero the entry is torn, and that is enough as long as no entry came before.
struct number_again : one_fault {
    explicit number_again(bool goes_on) : after(goes_on ? 1 : 0) {}
    void change(hf::pool& p, record& r) override { set(p, r, 5); }
    unsigned operations_after() const override { return after; }
    void run_after(hf::pool& p, unsigned) override { set(p, *p.root<record>(), 6); }
    void recover(hf::pool& p) override {
        one_fault::recover(p);
        auto& r = *p.root<record>();
        if (r.number == r.valid + 1 && r.logged != 0) apply(p, r);
    }
    void describe(hf::pool& p, state& s) override {
        const auto* r = p.root<record>();
        s.add(r->valid);
        s.add(r->value);
    }
    static void set(hf::pool& p, record& r, std::uint64_t to) {
        r.logged = to;
        r.number = r.valid + 1;
        hf::persist::flush(p.domain(), &r.logged, sizeof r.logged);
        keep(p, r.number);
        apply(p, r);
    }
    static void apply(hf::pool& p, record& r) {
        r.value = r.logged;
        keep(p, r.value);
        r.valid = r.number;
        keep(p, r.valid);
    }
    unsigned after;
};

/// The sum in 'last' is found again after every failure, and nothing makes it durable but that, if
/// it does.
struct found_again : one_fault {
    found_again(bool when_wrong_only, bool goes_on)
        : wrong_only(when_wrong_only), after(goes_on ? 1 : 0) {}
    void change(hf::pool& p, record& r) override {
        r.value = 7;
        keep(p, r.value);
        r.last = 8, guilty_line = __LINE__;
    }
    unsigned operations(unsigned) const override { return 2; }
    void run(hf::pool& p, unsigned thread, unsigned i) override {
        if (i == 0) one_fault::run(p, thread, i);
        else keep(p, p.root<record>()->last);
    }
    void recover(hf::pool& p) override {
        auto& r = *p.root<record>();
        if (r.value == 0) return;
        // By the caches of a dead process it may be right already.
        if (!wrong_only || r.last != r.value + 1) r.last = r.value + 1, keep(p, r.last);
        keep(p, r.value);
    }
    unsigned operations_after() const override { return after; }
    void run_after(hf::pool& p, unsigned) override {
        auto& r = *p.root<record>();
        r.value = 20;
        keep(p, r.value);
        r.last = 21;
    }
    void describe(hf::pool& p, state& s) override {
        const auto* r = p.root<record>();
        s.add(r->value);
        s.expect(r->value == 0 || r->last == r->value + 1, "the sum is there");
    }
    bool wrong_only;
    unsigned after;
};

/// Shows text that may be lost while the word that says it is there is not.
struct text_in_pool final : one_fault {
    void change(hf::pool& p, record& r) override {
        r.logged = 0x6f6c6c6568;
        r.valid = 1;
        keep(p, r.valid);
    }
    void describe(hf::pool& p, state& s) override {
        const auto* r = p.root<record>();
        const auto* text = reinterpret_cast<const char*>(&r->logged);
        s.add(std::string_view(text, r->valid != 0 ? 5 : 0));
    }
};
/// Looks where trace mode cannot see it.
struct unseen_look final : one_fault {
    void change(hf::pool& p, record& r) override {
        r.logged = 1;
        r.number = 1;
        hf::persist::flush(p.domain(), &r.logged, sizeof r.logged);
        keep(p, r.number);
    }
    void describe(hf::pool& p, state& s) override {
        const auto* r = p.root<record>();
        std::uint64_t seen;
        asm volatile("movq (%1), %0" : "=r"(seen) : "r"(&r->logged));
        (void)seen;
        s.add(seen + r->number > 0 ? r->number : 0);
        s.add(seen);
    }
};

/// Nothing is wrong but that recovery believes the caches.
struct believes_caches final : one_fault {
    void recover(hf::pool&) override {}
    void change(hf::pool& p, record& r) override {
        r.value = 7;
        keep(p, r.value);
        r.valid = 1, guilty_line = __LINE__;
        keep(p, r.valid);
    }
};

/// The guilty store, then one that stores what is there already.
struct same_again final : one_fault {
    void change(hf::pool& p, record& r) override {
        r.value = 7, guilty_line = __LINE__;
        *const_cast<volatile std::uint64_t*>(&r.value_neighbour) = 0;
        r.valid = 1;
        keep(p, r.valid);
    }
};
struct reported {
    checked_program checked;
    std::string text, json;
};

reported report_of(program& given) {
    guilty_line = 0;
    check_options options;
    options.closes = true;
    reported out{check_for_report("it", given, options), {}, {}};
    out.text = for_people(out.checked, recorder::last(), "holdfast crash it");
    out.json = for_programs(out.checked, recorder::last());
    return out;
}

/// The report names the guilty store's line, and suggests 'mend'.
void expect_guilty(program& given, const std::string& mend) {
    const reported r = report_of(given);
    ASSERT_EQ(r.checked.found.violations.size(), 1U) << r.text;
    const std::string place = fmt::format("src/check/report_test.cpp:{}\n", guilty_line);
    const auto guilty = r.text.find("guilty:");
    ASSERT_NE(guilty, std::string::npos) << r.text;
    const std::string first_call = r.text.substr(r.text.find('\n', guilty) + 1);
    EXPECT_EQ(first_call.substr(first_call.find(" at ") + 4, place.size()), place) << r.text;
    EXPECT_NE(r.text.find("mend: " + mend), std::string::npos) << r.text;
    EXPECT_NE(r.text.find("replay: holdfast crash it --replay "), std::string::npos) << r.text;
    EXPECT_NE(r.json.find(fmt::format("report_test.cpp:{}\"", guilty_line)), std::string::npos)
        << r.json;
}

/// The violation's replay comes to the same.
void expect_same_replay(program& given, const reported& r) {
    const auto& v = r.checked.found.violations.front();
    check_options options;
    options.replay = parse_replay(replay_text(r.checked, v)).failures;
    const checked_program again = check("it", given, options);
    ASSERT_EQ(again.trouble.size(), 1U);
    const std::string seen = again.trouble[0].substr(again.trouble[0].find(": ") + 2);
    EXPECT_FALSE(seen.empty());
    EXPECT_NE(v.what.find(seen), std::string::npos) << v.what << "\n" << again.trouble[0];
}

TEST(Report, FindsNothingInACorrectProgram) {
    correct given;
    const reported r = report_of(given);
    EXPECT_TRUE(r.checked.passed()) << r.text;
    EXPECT_EQ(r.text.find("guilty"), std::string::npos);
}

TEST(Report, ABufferedOperationMayBeLostButNotTwo) {
    counted_late one(1), two(2);
    EXPECT_TRUE(report_of(one).checked.passed()) << report_of(one).text;
    const reported r = report_of(two);
    ASSERT_EQ(r.checked.found.violations.size(), 1U) << r.text;
    EXPECT_NE(r.text.find("fence after that flush"), std::string::npos) << r.text;
}

TEST(Report, NamesTheStoreThatNothingFlushed) {
    missing_flush given;
    expect_guilty(given, "flush its line and fence");
}

TEST(Report, WhatADescriptionExpectsIsJudged) {
    unexpected given;
    const reported r = report_of(given);
    ASSERT_EQ(r.checked.found.violations.size(), 1U) << r.text;
    EXPECT_NE(r.text.find("what is valid has a value"), std::string::npos) << r.text;
}

TEST(Report, NamesTheStoreWhoseFlushNoFenceCompleted) {
    missing_fence fence;
    expect_guilty(fence, "fence after that flush");
    missing_last_fence last;
    expect_guilty(last, "fence after that flush");
}

TEST(Report, NamesTheStoreThatCameTooEarly) {
    wrong_order given;
    expect_guilty(given, "log it before it is stored");
}

TEST(Report, NamesTheWordThatIsNotLogged) {
    unlogged_word given;
    expect_guilty(given, "log it before it is stored");
}

TEST(Report, AStoreOfWhatIsThereHidesNoGuiltyOne) {
    same_again given;
    expect_guilty(given, "flush its line and fence");
}

TEST(Report, WhatAKillLeftInTheCachesIsWrittenBackByWhoBelievesIt) {
    believes_caches given;
    expect_guilty(given, "flush its line where it is stored");
    const reported r = report_of(given);
    EXPECT_NE(r.text.find("the process was killed after event"), std::string::npos) << r.text;
    EXPECT_NE(r.text.find(" --replay k"), std::string::npos) << r.text;
    expect_same_replay(given, r);
}

TEST(Report, ARecoveryOfTheProgramsOwnIsRunAndFailed) {
    own_recovery right;
    EXPECT_TRUE(report_of(right).checked.passed()) << report_of(right).text;
    no_own_recovery none;
    EXPECT_FALSE(report_of(none).checked.passed());
    careless_recovery careless;
    const reported r = report_of(careless);
    ASSERT_EQ(r.checked.found.violations.size(), 1U) << r.text;
    EXPECT_EQ(r.checked.found.violations[0].at.size(), 2U) << r.text;
}

TEST(Report, WhatGoesOnAfterARecoveryIsFailedToo) {
    number_again ends(false), goes_on(true);
    EXPECT_TRUE(report_of(ends).checked.passed()) << report_of(ends).text;
    const reported r = report_of(goes_on);
    ASSERT_EQ(r.checked.found.violations.size(), 1U) << r.text;
    EXPECT_EQ(r.checked.found.violations[0].at.size(), 2U) << r.text;
    expect_same_replay(goes_on, r);
}

TEST(Report, WhatACloseVouchedForMustSurviveIt) {
    found_again right(false, false), trusts_caches(true, false), works_on(false, true);
    EXPECT_TRUE(report_of(right).checked.passed()) << report_of(right).text;
    EXPECT_GT(report_of(right).checked.found.closes, 0U);
    for (auto* given : {&trusts_caches, &works_on}) {
        const reported r = report_of(*given);
        ASSERT_EQ(r.checked.found.violations.size(), 1U) << r.text;
        EXPECT_NE(r.checked.found.violations[0].at.back().close, hf::check::closing::never)
            << r.text;
        EXPECT_NE(r.text.find("closed, and power failed"), std::string::npos) << r.text;
        expect_same_replay(*given, r);
        const check_options open; // closes nothing
        const checked_program without = check("it", *given, open);
        EXPECT_TRUE(without.passed()) << for_people(without, recorder::last(), "");
        EXPECT_EQ(without.found.closes, 0U);
    }
    expect_guilty(trusts_caches, "flush its line where it is stored");
}

TEST(Report, TextInThePoolIsReadAsItMayBeLeft) {
    text_in_pool given;
    const reported r = report_of(given);
    ASSERT_EQ(r.checked.found.violations.size(), 1U) << r.text;
    EXPECT_NE(r.text.find("no completed or pending operation leaves"), std::string::npos) << r.text;
}

TEST(Report, WhatIsReadUnseenIsSaid) {
    unseen_look given;
    const reported r = report_of(given);
    ASSERT_EQ(r.checked.found.violations.size(), 1U) << r.text;
    EXPECT_NE(r.text.find("memory is read unseen"), std::string::npos) << r.text;
}

TEST(Report, ALossSeenAtTheReturnIsReplayed) {
    missing_last_fence given;
    const reported r = report_of(given);
    ASSERT_EQ(r.checked.found.violations.size(), 1U) << r.text;
    expect_same_replay(given, r);
}

TEST(Report, AFewStatesAreSpentOnFewFailures) {
    correct given;
    missing_last_fence late; // the last event of the run
    check_options options;
    options.explore.depth = 1;
    const std::uint64_t alone = check("it", given, options).found.states;
    options.explore.depth = 2;
    options.explore.states_max = alone + 1;
    EXPECT_FALSE(check("it", late, options).passed());
    const checked_program cut = check("it", given, options);
    EXPECT_FALSE(cut.found.complete);
    EXPECT_EQ(cut.depth_complete, 1U);
    EXPECT_NE(for_people(cut, {}, "").find("NOT COMPLETE: the budget ran out; every failure alone"),
              std::string::npos);
}

TEST(Report, TellsStoresOfRecoveryFromThoseOfTheProgram) {
    checked_program c;
    hf::check::violation v;
    v.at = {{3, {}}, {1, {}}};
    v.missing = {{1, 1, {}, 64, 8, true}};
    c.found.violations = {v};
    std::string text = for_people(c, {}, "holdfast crash it");
    EXPECT_NE(text.find("8 bytes at offset 0x40, made by recovery"), std::string::npos) << text;
    EXPECT_NE(text.find("and again after event 1 of the recovery"), std::string::npos) << text;
    EXPECT_NE(text.find("--replay 3:/1:"), std::string::npos) << text;

    c.found.violations[0].missing.clear();
    text = for_people(c, {}, "holdfast crash it");
    EXPECT_NE(text.find("guilty: recovery"), std::string::npos) << text;
}

TEST(Report, ItsReplayFailsTheSameWay) {
    missing_fence given;
    const reported r = report_of(given);
    ASSERT_EQ(r.checked.found.violations.size(), 1U);
    expect_same_replay(given, r);
}

TEST(Report, AReplayKnowsTheScheduleOfItsThreads) {
    lost_update given;
    check_options options;
    options.explore.depth = 1;
    const checked_program found = check_for_report("it", given, options);
    ASSERT_EQ(found.found.violations.size(), 1U);
    const auto& v = found.found.violations.front();
    const replay_asked asked = parse_replay(replay_text(found, v));
    EXPECT_FALSE(asked.by.switches.empty());
    options.replay = asked.failures;
    options.replay_schedule = asked.by;
    const checked_program again = check("it", given, options);
    ASSERT_EQ(again.trouble.size(), 1U);
    const std::string seen = again.trouble[0].substr(again.trouble[0].find(": ") + 2);
    EXPECT_TRUE(v.what.ends_with(seen)) << v.what << "\n" << seen;
}

TEST(Report, ThreeThreadsTakeTurnsInEveryOrder) {
    third_in_between given;
    check_options options;
    options.explore.depth = 1;
    options.preemptions = 1;
    const checked_program found = check_for_report("it", given, options);
    ASSERT_EQ(found.found.violations.size(), 1U);
    const replay_asked asked = parse_replay(replay_text(found, found.found.violations.front()));
    options.replay = asked.failures;
    options.replay_schedule = asked.by;
    const checked_program again = check("it", given, options);
    ASSERT_EQ(again.trouble.size(), 1U);
    EXPECT_EQ(again.trouble[0], "replayed: [1]");
}

TEST(Report, ALockThatIsSpunForChangesTheTurn) {
    for (const bool in_pool : {false, true}) {
        spinning given(in_pool);
        check_options options;
        options.explore.depth = 1;
        options.preemptions = in_pool ? 1 : 0;
        const checked_program found = check_for_report("it", given, options);
        EXPECT_TRUE(found.passed()) << for_people(found, recorder::last(), "");
        EXPECT_TRUE(found.found.complete);
    }
}

TEST(Report, AThreadThatNeverEndsIsSaid) {
    hangs given;
    check_options options;
    options.explore.seconds_max = 0.5;
    const checked_program found = check("it", given, options);
    ASSERT_EQ(found.trouble.size(), 1U);
    EXPECT_NE(found.trouble[0].find("did not end within"), std::string::npos) << found.trouble[0];
}

TEST(Report, WriteBacksAndFencesOfTheProgramCount) {
    own_instructions right(true), unfenced(false);
    EXPECT_TRUE(report_of(right).checked.passed()) << report_of(right).text;
    EXPECT_FALSE(report_of(unfenced).checked.passed());
}

/// Flushes what is flushed, and waits for nothing.
struct redundant final : one_fault {
    void change(hf::pool& p, record& r) override {
        r.value = 7;
        keep(p, r.value);
        hf::persist::flush(p.domain(), &r.value, sizeof r.value), guilty_line = __LINE__;
        hf::persist::fence(p.domain());
        hf::persist::fence(p.domain());
    }
};

TEST(Report, RedundantFlushesAndFencesAreToldWithTheirLines) {
    redundant given;
    const reported r = report_of(given);
    EXPECT_TRUE(r.checked.passed()) << r.text;
    for (const int line : {guilty_line, guilty_line + 2})
        EXPECT_NE(r.text.find(fmt::format("report_test.cpp:{}", line)), std::string::npos)
            << r.text;
    EXPECT_EQ(r.text.find(fmt::format("report_test.cpp:{}", guilty_line + 1)), std::string::npos);
}

TEST(Report, ReplaysAreReadAsTheyAreWritten) {
    for (const char* text :
         {"17:0,2/5:1", "3:", "0,12,40@17:0", "1@2:0/3:", "0.8:1", "7.2:/3.1:0", "k17:0/5:1",
          "0,12@k7.1:", "0.1,12.2,40@17:0", "k17:0/c120:", "3:/m9:0", "3:/s9:"}) {
        const replay_asked asked = parse_replay(text);
        ASSERT_FALSE(asked.failures.empty()) << text;
        checked_program c;
        c.last_schedule = asked.by;
        hf::check::violation v;
        v.at = asked.failures;
        EXPECT_EQ(replay_text(c, v), text);
    }
    for (const char* wrong : {"", "x", "17", "17:a", "1,2:0", "@17:0", "17:0,", "17.:0", "17.x:0",
                              "k:0", "3:/k5:", "c3:", "3:/c:"})
        EXPECT_TRUE(parse_replay(wrong).failures.empty()) << wrong;
}

} // namespace

// hf_crash has a main() too, which this one keeps out.
int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
