// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: the explorer visits exactly the states that the model allows, as deep as it is asked to,
// and reports those that recovery gets wrong. Method: protocols of a few stores, reported by hand;
// their states are counted on paper.
#include <check/explorer.hpp>
#include <check/recorder.hpp>
#include <pool/believed.hpp>
#include <trace/trace.hpp>

#include <holdfast/abi/trace_abi.h>

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>

namespace {

using namespace hf;
using namespace hf::check;

constexpr std::size_t lines = 4;
alignas(64) std::array<std::uint64_t, lines * 8> memory;

std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(memory)); }

/// Word 0 of a line.
std::uint64_t& word(std::size_t line) { return memory[line * 8]; }
void put(std::uint64_t& to, std::uint64_t value) {
    to = value;
    hf_trace_store(&to, sizeof to);
}
std::uint64_t get(const std::uint64_t& from) {
    hf_trace_load(&from, sizeof from);
    return from;
}
void flush(const std::uint64_t& w) { hf::trace::announce(hf::trace::flush, &w, sizeof w); }
void fence() { hf::trace::announce(hf::trace::fence, nullptr, 0); }

/// Failures of the power alone: what recovery reads here it does not write back.
const explore_options power_only{.first = explore_options::failure::power};

/// Explores 'protocol'; recovery returns the state, or 0 for a wrong one.
exploration explored(const std::function<void(recorder&)>& protocol,
                     const std::vector<legal_set>& legal, const std::function<outcome()>& recovery,
                     explore_options options = power_only, domain d = domain::adr) {
    memory = {};
    const std::vector<std::byte> before(bytes().begin(), bytes().end());
    event_record run;
    {
        recorder record(bytes());
        const watch watching(bytes().data(), bytes().size(), record);
        protocol(record);
        run = record.recorded();
    }
    explorer* running = nullptr;
    explorer e(
        bytes(), d,
        [&] {
            const outcome state = recovery();
            running->recovered();
            return verdict{state != 0, state, "wrong"};
        },
        options);
    running = &e;
    e.explore(before, run, legal);
    return e.result();
}

// Data in line 0, then a flag in line 1 that says that it is there.
outcome flag_and_data() {
    if (get(word(1)) == 0) return 1;
    return get(word(0)) == 7 ? 2 : 0;
}

TEST(Explorer, AcceptsDataThatIsDurableBeforeItsFlag) {
    const exploration e = explored(
        [](recorder&) {
            put(word(0), 7);
            flush(word(0));
            fence();
            put(word(1), 1);
        },
        {{1, 2}}, flag_and_data);
    EXPECT_TRUE(e.violations.empty());
    EXPECT_TRUE(e.complete);
    EXPECT_EQ(e.states, 2U); // no flag; flag and data. Without the flag nobody reads the data.
}

TEST(Explorer, FindsTheMissingFenceFlushAndOrder) {
    const auto refused = [](const std::function<void()>& protocol) {
        return !explored([&](recorder&) { protocol(); }, {{1, 2}}, flag_and_data)
                    .violations.empty();
    };
    EXPECT_TRUE(refused([] {
        put(word(0), 7);
        flush(word(0));
        put(word(1), 1);
    })) << "no fence";
    EXPECT_TRUE(refused([] {
        put(word(0), 7);
        fence();
        put(word(1), 1);
    })) << "no flush";
    EXPECT_TRUE(refused([] {
        flush(word(0));
        put(word(0), 7);
        fence();
        put(word(1), 1);
    })) << "flush before store";
    EXPECT_TRUE(refused([] {
        put(word(1), 1);
        put(word(0), 7);
    })) << "flag first";
}

TEST(Explorer, SaysWhichStoreWasLost) {
    const exploration e = explored(
        [](recorder&) {
            put(word(0), 7);
            flush(word(0));
            put(word(1), 1);
        },
        {{1, 2}}, flag_and_data);
    ASSERT_EQ(e.violations.size(), 1U);
    ASSERT_EQ(e.violations[0].missing.size(), 1U);
    EXPECT_EQ(e.violations[0].missing[0].line, 0U);
    EXPECT_TRUE(e.violations[0].missing[0].flushed);
    EXPECT_EQ(e.violations[0].last_event, 2U);
}

TEST(Explorer, WantsAcknowledgedResults) {
    const auto protocol = [](bool durable) {
        return [durable](recorder& r) {
            put(word(1), 1);
            if (durable) {
                flush(word(1));
                fence();
            }
            r.legal(1);
        };
    };
    const auto recovery = [] { return get(word(1)) == 0 ? outcome{1} : outcome{2}; };
    EXPECT_TRUE(explored(protocol(true), {{1, 2}, {2}}, recovery).violations.empty());
    EXPECT_FALSE(explored(protocol(false), {{1, 2}, {2}}, recovery).violations.empty());
}

TEST(Explorer, VisitsEveryCombinationThatIsRead) {
    const exploration e = explored(
        [](recorder&) {
            for (std::size_t l = 0; l < 3; ++l) put(word(l), 1);
        },
        {{1}},
        [] {
            for (std::size_t l = 0; l < 3; ++l) get(word(l));
            return outcome{1};
        });
    EXPECT_EQ(e.states, 8U); // each line old or new
    EXPECT_EQ(e.images, 8);
}

TEST(Explorer, LinesThatAreNotReadMakeNoStates) {
    const exploration e = explored(
        [](recorder&) {
            for (std::size_t l = 0; l < 4; ++l) put(word(l), 1);
        },
        {{1}},
        [] {
            get(word(3));
            return outcome{1};
        });
    EXPECT_EQ(e.states, 2U);
    EXPECT_EQ(e.images, 1 + 8); // at the start; and the last line new, the others either
    EXPECT_GT(e.merged, 0U);
}

// Recovery doubles line 0 and notes in line 1 that it has: right only when it is not failed itself.
outcome doubling(bool careful) {
    if (get(word(1)) == 0 && get(word(2)) == 1) {
        if (careful) {
            put(word(0), 6); // a value, not a function of what it overwrites
            flush(word(0));
            fence();
        } else put(word(0), get(word(0)) * 2);
        put(word(1), 1);
        flush(word(0));
        flush(word(1));
        fence();
    }
    const std::uint64_t value = get(word(0));
    return value == 3 ? 1 : value == 6 ? 2 : 0;
}
void three_then_wanted(recorder&) {
    put(word(0), 3);
    flush(word(0));
    fence();
    put(word(2), 1);
    flush(word(2));
    fence();
}

TEST(Explorer, DepthTwoFindsRecoveryThatIsNotIdempotent) {
    explore_options one, two;
    one.depth = 1;
    two.depth = 2;
    const std::vector<legal_set> legal{{1, 2, 0}};
    const auto start = [](recorder& r) { three_then_wanted(r); };
    const auto careless = [] {
        const std::uint64_t value = get(word(0));
        if (value == 0) return outcome{1};
        return doubling(false);
    };
    const auto careful = [] {
        const std::uint64_t value = get(word(0));
        if (value == 0) return outcome{1};
        return doubling(true);
    };
    EXPECT_TRUE(explored(start, legal, careless, one).violations.empty());
    EXPECT_FALSE(explored(start, legal, careless, two).violations.empty());
    EXPECT_TRUE(explored(start, legal, careful, two).violations.empty());
}

TEST(Explorer, RecoveredStatesStay) {
    // Recovery shows a state that it has not made durable.
    const auto recovery = [] {
        if (get(word(2)) == 1) {
            put(word(0), 9);
            put(word(2), 0);
            flush(word(2));
            fence();
        }
        return get(word(0)) == 9 ? outcome{2} : outcome{1};
    };
    const auto start = [](recorder&) { put(word(2), 1); };
    explore_options one;
    one.depth = 1;
    EXPECT_TRUE(explored(start, {{1, 2}}, recovery, one).violations.empty());
    EXPECT_FALSE(explored(start, {{1, 2}}, recovery).violations.empty());
}

TEST(Explorer, WhatAKillLeftTheNextPowerFailureMayLose) {
    const auto put_only = [](recorder&) { put(word(0), 7); };
    const auto sees = [] { return outcome{get(word(0)) == 7 ? 2U : 1U}; };
    const auto writes_back = [&] {
        flush(word(0));
        fence();
        return sees();
    };
    // Recovery saw the value, and did nothing for it.
    const exploration seen = explored(put_only, {{1, 2}}, sees, {});
    ASSERT_EQ(seen.violations.size(), 1U);
    ASSERT_EQ(seen.violations[0].at.size(), 2U);
    EXPECT_TRUE(seen.violations[0].at[0].killed);
    ASSERT_EQ(seen.violations[0].missing.size(), 1U);
    EXPECT_EQ(seen.violations[0].missing[0].level, 0U);
    EXPECT_FALSE(seen.violations[0].missing[0].flushed);
    EXPECT_TRUE(explored(put_only, {{1, 2}}, sees, {.depth = 1}).violations.empty());
    EXPECT_TRUE(explored(put_only, {{1, 2}}, writes_back, {}).violations.empty());
}

TEST(Explorer, AKillCompletesWhatWasFlushed) {
    // Data, then a flag that recovery writes back, and believes where the data are there.
    const auto found = [](bool flushed) {
        return explored(
                   [&](recorder&) {
                       put(word(0), 7);
                       if (flushed) flush(word(0));
                       put(word(1), 1);
                   },
                   {{1, 2}},
                   [] {
                       if (get(word(1)) == 0) return outcome{1};
                       flush(word(1));
                       fence();
                       return outcome{get(word(0)) == 7 ? 2U : 1U};
                   },
                   {})
            .violations.size();
    };
    EXPECT_EQ(found(true), 0U)
        << "a killed thread ends in the kernel, whose locked operations fence";
    EXPECT_EQ(found(false), 1U);
}

TEST(Explorer, AKillIsOfTheNewestMemoryWhereverAStoreStands) {
    // 7 and back again: the second store makes no new content, but what a kill leaves is another.
    const auto there_and_back = [](recorder&) {
        put(word(1), 1);
        flush(word(1));
        fence();
        put(word(0), 7);
        put(word(0), 0);
    };
    // If recovery finds nothing, it makes a mark. If it finds the data later, the mark is wrong.
    const auto marks = [] {
        if (get(word(1)) == 0) return outcome{1};
        if (get(word(0)) == 7) return outcome{get(word(2)) == 0 ? 1U : 0U};
        put(word(2), 1);
        flush(word(2));
        fence();
        return outcome{1};
    };
    const exploration e = explored(there_and_back, {{1}}, marks, {});
    ASSERT_EQ(e.violations.size(), 1U);
    EXPECT_TRUE(e.violations[0].at[0].killed);
}

// --- recovered, closed, and the power fails (explorer.hpp, 8)

struct closing_protocol {
    std::function<void()> run;        // what is failed
    std::function<outcome()> recover; // of a pool that was not closed; a look at one that was
    std::function<void()> close;      // before its flag, in line 3, is stored and made durable
    std::function<void()> go_on = [] {};
};

constexpr std::size_t closed_flag = 3;

exploration explored_closing(const closing_protocol& of, explore_options options,
                             const std::vector<legal_set>& legal = {{1, 2}}) {
    memory = {};
    const std::vector<std::byte> before(bytes().begin(), bytes().end());
    event_record run;
    {
        recorder record(bytes());
        const watch watching(bytes().data(), bytes().size(), record);
        of.run();
        run = record.recorded();
    }
    explorer* running = nullptr;
    explorer e(
        bytes(), domain::adr,
        [&] {
            if (running->found_closed() && get(word(closed_flag)) == 0)
                return verdict{false, 0, "it does not say that it was closed"};
            const outcome state = of.recover();
            running->recovered();
            if (running->closes() == closing::never) return verdict{state != 0, state, "wrong"};
            const bool more = running->closes() == closing::after_more;
            if (more) of.go_on();
            running->wants({more ? 2 : state});
            of.close();
            put(word(closed_flag), 1);
            flush(word(closed_flag));
            fence();
            running->closed();
            return verdict{state != 0, state, "wrong"};
        },
        options);
    running = &e;
    e.explore(before, run, legal);
    return e.result();
}

/// Line 1 is the double of line 0, and is found again after every failure.
closing_protocol double_found_again(bool always_stored, bool flushed) {
    return {[] {
                put(word(0), 7);
                flush(word(0));
                fence();
                put(word(1), 14); // nobody flushes it: it can be found again
            },
            [=] {
                const std::uint64_t wanted = 2 * get(word(0)), there = get(word(1));
                if (get(word(closed_flag)) != 0)
                    return outcome{there == wanted ? wanted == 0 ? 1U : 2U : 0U};
                flush(word(0));
                fence();
                if (always_stored || there != wanted) put(word(1), wanted);
                if (flushed && (always_stored || there != wanted)) flush(word(1));
                return outcome{wanted == 0 ? 1U : 2U};
            },
            [] { fence(); }};
}

TEST(Explorer, WhatWasRightByTheCachesOfADeadProcessIsLostBehindAClose) {
    for (const unsigned depth : {1U, 2U}) {
        explore_options open{.depth = depth}, closes{.depth = depth, .close_one_in = 1};
        const closing_protocol seen_only = double_found_again(false, true);
        EXPECT_TRUE(explored_closing(seen_only, open).violations.empty()) << depth;
        if (depth == 2) continue; // after one failure it is closed in a pass of its own
        const exploration e = explored_closing(seen_only, closes);
        ASSERT_EQ(e.violations.size(), 1U);
        const violation& v = e.violations[0];
        ASSERT_EQ(v.at.size(), 2U);
        EXPECT_TRUE(v.at[0].killed);
        EXPECT_EQ(v.at[1].close, closing::at_once);
        ASSERT_EQ(v.missing.size(), 1U);
        EXPECT_EQ(v.missing[0].line, 1U);
        EXPECT_EQ(v.missing[0].level, 0U) << "it was stored before the kill";
        EXPECT_TRUE(explored_closing(double_found_again(true, true), closes).violations.empty());
    }
}

TEST(Explorer, WhatRecoveryStoredIsLostBehindACloseThatDoesNotFlushIt) {
    const explore_options closes{
        .depth = 1, .first = explore_options::failure::power, .close_one_in = 1};
    const exploration e = explored_closing(double_found_again(true, false), closes);
    ASSERT_EQ(e.violations.size(), 1U);
    EXPECT_FALSE(e.violations[0].at[0].killed);
    EXPECT_TRUE(explored_closing(double_found_again(true, true), closes).violations.empty());
}

TEST(Explorer, MoreFailuresInARowAreClosedToo) {
    // Found again, and right, only by a recovery that follows a recovery.
    closing_protocol twice = double_found_again(true, true);
    twice.recover = [] {
        const std::uint64_t wanted = 2 * get(word(0)), there = get(word(1));
        if (get(word(closed_flag)) != 0)
            return outcome{there == wanted ? wanted == 0 ? 1U : 2U : 0U};
        flush(word(0));
        put(word(1), wanted);
        if (get(word(2)) == 0) flush(word(1));
        put(word(2), 1);
        flush(word(2));
        fence();
        return outcome{wanted == 0 ? 1U : 2U};
    };
    EXPECT_TRUE(explored_closing(twice, {.depth = 1, .close_one_in = 1}).violations.empty());
    EXPECT_TRUE(explored_closing(twice, {.depth = 2}).violations.empty());
    const exploration e = explored_closing(twice, {.depth = 2, .close_one_in = 1});
    ASSERT_EQ(e.violations.size(), 1U);
    EXPECT_EQ(e.violations[0].at.size(), 3U);
}

TEST(Explorer, WhatWentOnBeforeTheCloseIsVouchedForToo) {
    closing_protocol used = double_found_again(true, true);
    used.go_on = [] { // as a program would that leaves line 1 to the close
        put(word(0), 9);
        flush(word(0));
        fence();
        put(word(1), 18);
    };
    explore_options options{.depth = 1, .close_one_in = 1};
    EXPECT_TRUE(explored_closing(used, options).violations.empty()) << "closed at once only";
    options.goes_on = true;
    const exploration e = explored_closing(used, options);
    ASSERT_EQ(e.violations.size(), 1U);
    EXPECT_EQ(e.violations[0].at.back().close, closing::after_more);
    used.close = [] { flush(word(1)), fence(); };
    EXPECT_TRUE(explored_closing(used, options).violations.empty());
}

TEST(Explorer, ClosesChangeNothingOfWhatElseIsExplored) {
    const closing_protocol of = double_found_again(true, true);
    for (const unsigned depth : {1U, 2U}) {
        const exploration without = explored_closing(of, {.depth = depth});
        const exploration all = explored_closing(of, {.depth = depth, .close_one_in = 1});
        const exploration some = explored_closing(of, {.depth = depth, .close_one_in = 3});
        EXPECT_EQ(without.closes, 0U);
        EXPECT_GT(all.closes, some.closes);
        EXPECT_GT(some.closes, 0U);
        for (const exploration& e : {all, some}) {
            EXPECT_EQ(e.states, without.states);
            EXPECT_EQ(e.merged, without.merged);
            EXPECT_EQ(e.failures, without.failures);
            EXPECT_EQ(e.images, without.images);
        }
    }
}

TEST(Explorer, AFailureBehindACloseIsReplayed) {
    const closing_protocol of = double_found_again(false, true);
    const explore_options options{.depth = 1, .close_one_in = 1};
    const exploration e = explored_closing(of, options);
    ASSERT_EQ(e.violations.size(), 1U);
    memory = {};
    const std::vector<std::byte> before(bytes().begin(), bytes().end());
    event_record run;
    {
        recorder record(bytes());
        const watch watching(bytes().data(), bytes().size(), record);
        of.run();
        run = record.recorded();
    }
    explorer* running = nullptr;
    bool found_closed = false;
    explorer again(
        bytes(), domain::adr,
        [&] {
            found_closed = running->found_closed();
            const outcome state = of.recover();
            running->recovered();
            if (running->closes() != closing::never) {
                running->wants({state});
                of.close();
                put(word(closed_flag), 1);
                flush(word(closed_flag));
                fence();
                running->closed();
            }
            return verdict{state != 0, state, "wrong"};
        },
        options);
    running = &again;
    EXPECT_FALSE(again.replay(before, run, e.violations[0].at).recovered);
    EXPECT_TRUE(found_closed);
}

TEST(Explorer, ARunThatEndsWithACloseIsFoundClosed) {
    const auto found = [](bool flushed) {
        return explored(
            [=](recorder& r) {
                put(word(0), 7);
                flush(word(0));
                fence();
                r.legal(1);
                if (flushed) flush(word(0));
                r.closed();
            },
            {{1, 2}, {2}}, [] { return outcome{get(word(0)) == 7 ? 2U : 1U}; });
    };
    EXPECT_TRUE(found(true).violations.empty());
    EXPECT_EQ(found(true).failures, 4U)
        << "at the start, behind the store, where it counts, and behind the close";
}

TEST(Explorer, ARecoveryThatDiesOrHangsIsAViolation) {
    const auto start = [](recorder&) { put(word(0), 1); };
    const auto died = explored(start, {{1}}, [] {
        if (get(word(0)) == 1) *reinterpret_cast<volatile int*>(8) = 1;
        return outcome{1};
    });
    ASSERT_EQ(died.violations.size(), 1U);
    EXPECT_NE(died.violations[0].what.find("SIGSEGV at 0x8"), std::string::npos)
        << died.violations[0].what;
    explore_options impatient;
    impatient.recovery_seconds_max = 0.3;
    const auto hung = explored(
        start, {{1}},
        [] {
            while (get(word(0)) == 1) {}
            return outcome{1};
        },
        impatient);
    ASSERT_EQ(hung.violations.size(), 1U);
    EXPECT_NE(hung.violations[0].what.find("did not end"), std::string::npos);
}

TEST(Explorer, WhatRecoveryMayDoInSeveralWaysIsTriedInAll) {
    explorer* running = nullptr;
    const auto recovered_as = [&](std::uint32_t wrong) {
        memory = {};
        const std::vector<std::byte> before(bytes().begin(), bytes().end());
        const auto recovery = [&] {
            const std::uint32_t first = running->pick(3), second = running->pick(2);
            return verdict{first * 2 + second != wrong, 1, std::to_string(first * 2 + second)};
        };
        explorer e(bytes(), domain::adr, recovery, {});
        running = &e;
        e.explore(before, {}, {{1}});
        if (e.result().violations.empty()) return std::to_string(e.result().states) + " states";
        return e.replay(before, {}, e.result().violations[0].at).text;
    };
    EXPECT_EQ(recovered_as(6), "6 states");
    for (std::uint32_t wrong = 0; wrong < 6; ++wrong)
        EXPECT_EQ(recovered_as(wrong), std::to_string(wrong));
}

TEST(Explorer, WorkOnARecoveredPoolIsFailedAndJudged) {
    // It goes on from 1 to 2; a second failure must find either while it does, and 2 afterwards.
    const auto going_on = [](bool durable) {
        explorer* running = nullptr;
        memory = {};
        const std::vector<std::byte> before(bytes().begin(), bytes().end());
        explorer e(bytes(), domain::adr,
                   [&] {
                       const outcome seen = get(word(0)) + 1;
                       running->recovered();
                       if (running->failures_before() == 1) {
                           running->wants({1});
                           running->wants({1, 2});
                           put(word(0), 1);
                           if (durable) {
                               flush(word(0));
                               fence();
                           }
                           running->wants({2});
                       }
                       return verdict{true, seen, ""};
                   },
                   {});
        running = &e;
        e.explore(before, {}, {{1}});
        return e.result().violations.empty();
    };
    EXPECT_TRUE(going_on(true));
    EXPECT_FALSE(going_on(false));
}

TEST(Explorer, WhatIsReadUnseenIsSaid) {
    const exploration e = explored([](recorder&) { put(word(0), 7); }, {{1, 8}},
                                   [] { return outcome{1 + memory[0]}; });
    ASSERT_EQ(e.violations.size(), 1U);
    EXPECT_NE(e.violations[0].what.find("read unseen"), std::string::npos) << e.violations[0].what;
}

TEST(Explorer, WhatAStateCostsDoesNotGrowWithMemory) {
    constexpr std::size_t large_lines = std::size_t{1} << 14;
    alignas(64) static std::array<std::uint64_t, large_lines * 8> large;
    const auto all = std::as_writable_bytes(std::span(large));
    const std::vector<std::byte> before(all.begin(), all.end());
    event_record run;
    {
        recorder record(all);
        const watch watching(all.data(), all.size(), record);
        put(large[0], 1);
        put(large[large.size() - 8], 1);
        run = record.recorded();
    }
    const auto sum = [] {
        std::uint64_t seen = 1;
        for (std::size_t line = 0; line < large_lines; line += 64) seen += get(large[line * 8]);
        return seen + get(large[large.size() - 8]);
    };
    explorer e(all, domain::adr, [&] { return verdict{true, sum(), ""}; }, power_only);
    e.explore(before, run, {{1, 2, 3}});
    EXPECT_TRUE(e.result().violations.empty());
    EXPECT_EQ(e.result().states, 4U);
    EXPECT_EQ(e.touched_lines(), (std::vector<std::size_t>{0, large_lines - 1}));
}

TEST(Explorer, BudgetsAreHonest) {
    explore_options options = power_only;
    options.states_max = 3;
    const exploration e = explored(
        [](recorder&) {
            for (std::size_t l = 0; l < 3; ++l) put(word(l), 1);
        },
        {{1}},
        [] {
            for (std::size_t l = 0; l < 3; ++l) get(word(l));
            return outcome{1};
        },
        options);
    EXPECT_FALSE(e.complete);
    EXPECT_EQ(e.states, 3U);
}

// A record of two lines with a checksum in its first word.
void write_record() {
    std::uint64_t sum = 0;
    for (std::size_t i = 1; i < 16; ++i) {
        memory[i] = i;
        sum += i * i;
    }
    memory[0] = sum;
    hf_trace_store(memory.data(), 128);
}
outcome read_record() {
    hf::trace::announce(hf::believed::checked, memory.data(), 128);
    std::uint64_t sum = 0;
    for (std::size_t i = 1; i < 16; ++i) sum += get(memory[i]) * memory[i];
    return sum != 0 && sum == get(memory[0]) ? 2 : 1;
}

TEST(Explorer, ChecksummedRangesAreTriedByParts) {
    explore_options all = power_only;
    all.every_combination = true;
    const auto write = [](recorder&) { write_record(); };
    const exploration parts = explored(write, {{1, 2}}, read_record);
    const exploration every = explored(write, {{1, 2}}, read_record, all);
    EXPECT_TRUE(parts.violations.empty());
    EXPECT_TRUE(every.violations.empty());
    EXPECT_LT(parts.states, every.states / 4);
    // A checksum that leaves a word out is found either way.
    const auto careless = [] {
        hf::trace::announce(hf::believed::checked, memory.data(), 128);
        std::uint64_t sum = 0;
        for (std::size_t i = 1; i < 16; ++i) sum += get(memory[i]) * memory[i];
        const bool valid = sum + 64 - memory[8] * memory[8] == get(memory[0]) && memory[1] == 1;
        return valid ? (memory[8] == 8 ? outcome{2} : outcome{0}) : outcome{1};
    };
    EXPECT_FALSE(explored(write, {{1, 2}}, careless).violations.empty());
    EXPECT_FALSE(explored(write, {{1, 2}}, careless, all).violations.empty());
}

// Records in a row, read as long as their checksums hold: the missing parts of each are tried
// behind the whole ones before it, and not beside missing parts of those.
TEST(Explorer, ChainsOfRecordsAreTriedOneMissingPartAtATime) {
    constexpr std::size_t count = 4;
    const auto write = [](recorder&) {
        for (std::size_t r = 0; r < count; ++r) {
            put(memory[8 * r + 1], r + 1);
            put(memory[8 * r], 77 * (r + 1));
        }
    };
    const auto read = [](const hf::trace::event& behind, std::size_t believed) {
        return [=, &behind]() -> outcome {
            std::size_t whole = 0;
            for (; whole < count; ++whole) {
                hf::trace::announce(whole == 0 ? hf::believed::checked : behind, &memory[8 * whole],
                                    64);
                const std::uint64_t value = get(memory[8 * whole + 1]);
                const bool holds = get(memory[8 * whole]) == 77 * value && value != 0;
                if (whole == believed)
                    return value == whole + 1 ? 1 : 9; // without a look at the check
                if (!holds) break;
            }
            return 1;
        };
    };
    const exploration chain = explored(write, {{1}}, read(hf::believed::checked_on, count));
    const exploration each = explored(write, {{1}}, read(hf::believed::checked, count));
    EXPECT_TRUE(chain.violations.empty());
    EXPECT_LE(chain.states, each.states);
    for (std::size_t believed = 0; believed < count; ++believed)
        EXPECT_FALSE(
            explored(write, {{1}}, read(hf::believed::checked_on, believed)).violations.empty())
            << believed;
}

TEST(Explorer, ReplaysWhatItReports) {
    const auto protocol = [](recorder&) {
        put(word(0), 7);
        flush(word(0));
        put(word(1), 1);
    };
    const exploration e = explored(protocol, {{1, 2}}, flag_and_data);
    ASSERT_EQ(e.violations.size(), 1U);
    memory = {};
    const std::vector<std::byte> before(bytes().begin(), bytes().end());
    recorder record(bytes());
    {
        const watch watching(bytes().data(), bytes().size(), record);
        protocol(record);
    }
    explorer again(bytes(), domain::adr,
                   [] {
                       const outcome state = flag_and_data();
                       return verdict{state != 0, state, "wrong again"};
                   },
                   {});
    EXPECT_EQ(again.replay(before, record.recorded(), e.violations[0].at).text, "wrong again");
}

TEST(Explorer, ProcessCrashesKeepProgramOrder) {
    const auto unordered = [](recorder&) {
        put(word(0), 7); // no flush, no fence: a killed process keeps both, in order
        put(word(1), 1);
    };
    EXPECT_TRUE(
        explored(unordered, {{1, 2}}, flag_and_data, {}, domain::process).violations.empty());
    const auto wrong = [](recorder&) {
        put(word(1), 1);
        put(word(0), 7);
    };
    EXPECT_FALSE(explored(wrong, {{1, 2}}, flag_and_data, {}, domain::process).violations.empty());
}

} // namespace
