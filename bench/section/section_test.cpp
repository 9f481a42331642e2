// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The floor of mode process keeps that mode's promise, or ratios to it would mean nothing: killed
// at any instruction, a section by hand is whole, or its log undoes it. Each section is stepped;
// behind every instruction the log's words are put back into a copy of the memory, newest first, as
// a recovery would.
#include "../peers/floor_sections.hpp"
#include "instructions.hpp"
#include "plain_sections.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>

namespace hf::bench {
namespace {

section_object object, before, after;
in_order::undo_log undo;
std::uint64_t torn = 0;   // moments at which a kill would leave neither
std::uint64_t undone = 0; // at which the log had words to put back

void recover_a_copy() {
    section_object found = object;
    std::uint64_t used = undo.used.load(std::memory_order_relaxed);
    if (used != 0) ++undone;
    while (used != 0) {
        const in_order::old_word last = undo.entries[--used];
        const auto offset =
            reinterpret_cast<std::byte*>(last.where) - reinterpret_cast<std::byte*>(&object);
        std::memcpy(reinterpret_cast<std::byte*>(&found) + offset, &last.value, sizeof last.value);
    }
    if (std::memcmp(&found, &before, sizeof found) != 0 &&
        std::memcmp(&found, &after, sizeof found) != 0)
        ++torn;
}

/// How many moments of a call are torn.
std::uint64_t torn_moments(section_call* by_hand, section_call* plain) {
    in_order::own = &undo;
    torn = undone = 0;
    before = after = object;
    plain(&after);
    step(by_hand, &object, recover_a_copy);
    EXPECT_EQ(std::memcmp(&object, &after, sizeof object), 0);
    return torn;
}

TEST(SectionByHand, IsWholeOrUndoneAtEveryInstruction) {
    map_options small;
    small.keys = 1;
    small.prefault = false;
    const auto by_hand = make_sections("by-hand", small);
    const section_calls& calls = by_hand->calls;
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(torn_moments(calls.nothing, plain_sections::nothing), 0U);
        EXPECT_EQ(undone, 0U);
        EXPECT_EQ(torn_moments(calls.one, plain_sections::one), 0U);
        EXPECT_GT(undone, 0U);
        EXPECT_EQ(torn_moments(calls.four, plain_sections::four), 0U);
        EXPECT_EQ(torn_moments(calls.many, plain_sections::many), 0U);
        EXPECT_GT(undone, 64U);
        EXPECT_EQ(torn_moments(calls.loop, plain_sections::loop), 0U);
    }
}

void log_late(section_object* o) {
    in_order::section s;
    s.keep(&o->lines[0].word);
    o->lines[0].word += 1;
    o->lines[1].word += o->lines[0].word;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    s.keep(&o->lines[1].word);
    o->lines[2].word ^= o->lines[1].word;
    s.keep(&o->lines[3].word);
    o->lines[3].word += 3;
    s.commit();
}

TEST(SectionByHand, IsTornWhereAWordChangesBeforeItIsLogged) {
    EXPECT_GT(torn_moments(log_late, plain_sections::four), 0U);
}

#if defined(NDEBUG) && !defined(HF_SLOW_ASSERTIONS) // optimised
/// A section asks for nothing that has not happened in it. A node that was made and freed took 1900
/// instructions when each commit looked through lists of blocks.
TEST(SectionsOfUndo, PayForWhatTheyDo) {
    map_options small;
    small.keys = 1;
    small.prefault = false;
    const auto undo = make_sections("undo", small);
    section_object* const own = &undo->root()->of_thread[0];
    for (int i = 0; i < 100; ++i) undo->calls.node(own);
    EXPECT_LT(instructions_of(undo->calls.node, own, 2), 900);
    EXPECT_LT(instructions_of(undo->calls.one, own, 2), 200);
}
#endif

} // namespace
} // namespace hf::bench
