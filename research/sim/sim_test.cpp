// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: caches hold the lines that caches of that shape hold; the write queue and the banks take
// their specified times; the core waits only when it has to. Method: short sequences whose outcome
// can be worked out by hand.
#include <sim/core_clock.hpp>
#include <sim/hierarchy.hpp>
#include <sim/persistent_memory.hpp>

#include <gtest/gtest.h>

#include <array>
#include <map>

namespace {

using namespace hf::sim;

struct noting_client : line_client {
    std::vector<std::string> log;
    bool still_dirty = true;
    std::uint16_t to_second(unsigned, std::uint64_t line, std::uint16_t marks) override {
        log.push_back("down " + std::to_string(line));
        return static_cast<std::uint16_t>(marks >> 4);
    }
    std::uint16_t to_first(std::uint16_t marks) override {
        return static_cast<std::uint16_t>(marks << 4);
    }
    bool leaves(unsigned core, std::uint64_t line, std::uint16_t, bool dirty) override {
        log.push_back("core " + std::to_string(core) + " leaves " + std::to_string(line) +
                      (dirty ? " dirty" : ""));
        return dirty && still_dirty;
    }
    void asked_for(unsigned core, std::uint64_t line, bool to_write) override {
        log.push_back((to_write ? "write " : "read ") + std::to_string(line) + " of " +
                      std::to_string(core));
    }
    void write_back(std::uint64_t line) override { log.push_back("back " + std::to_string(line)); }
};

parameters tiny(unsigned cores = 1) {
    parameters how;
    how.l1 = {128, 1, 4}; // two sets of one line
    how.l2 = {256, 2, 12};
    how.l3 = {512, 4, 40};
    how.cores = cores;
    return how;
}

TEST(Caches, ALineComesFromTheNearestLevelThatHoldsIt) {
    noting_client client;
    hierarchy caches{tiny(), client};
    EXPECT_EQ(caches.reach(0, 0, false).latency, 40 * ticks_per_cycle + 150 * ticks_per_ns);
    EXPECT_EQ(caches.reach(0, 0, false).latency, 4 * ticks_per_cycle);
    caches.reach(0, 2, false); // takes the place of line 0 in the first level
    EXPECT_EQ(caches.reach(0, 0, false).latency, 12 * ticks_per_cycle);
    caches.reach(0, 4, false); // of line 2, in the second: it was used before line 0
    EXPECT_EQ(caches.reach(0, 2, false).latency, 40 * ticks_per_cycle);
    EXPECT_EQ(caches.counted().first_misses, 5U);
    EXPECT_EQ(caches.counted().second_misses, 4U);
    EXPECT_EQ(caches.counted().third_misses, 3U);
}

TEST(Caches, MarksGoDownAndUpWithTheirLine) {
    noting_client client;
    hierarchy caches{tiny(), client};
    caches.reach(0, 0, true).line->marks = 0xa0;
    caches.reach(0, 2, false);
    EXPECT_EQ(caches.held_by(0, 0)->marks, 0xa);
    EXPECT_EQ(caches.reach(0, 0, false).line->marks, 0xa0);
}

TEST(Caches, DirtyLinesReachMemoryThroughEveryLevel) {
    noting_client client;
    hierarchy caches{tiny(), client};
    caches.reach(0, 0, true);
    for (std::uint64_t line = 2; line < 20; line += 2) caches.reach(0, line, false);
    EXPECT_EQ(std::ranges::count(client.log, "core 0 leaves 0 dirty"), 1);
    EXPECT_EQ(std::ranges::count(client.log, "back 0"), 1);
}

TEST(Caches, ALineThatWasWrittenWhileItLeftIsNotWrittenAgain) {
    noting_client client;
    client.still_dirty = false;
    hierarchy caches{tiny(), client};
    caches.reach(0, 0, true);
    for (std::uint64_t line = 2; line < 20; line += 2) caches.reach(0, line, false);
    EXPECT_EQ(std::ranges::count(client.log, "back 0"), 0);
}

TEST(Caches, OneCoreAtMostMayWriteALine) {
    noting_client client;
    hierarchy caches{tiny(2), client};
    caches.reach(0, 1, false);
    EXPECT_EQ(caches.held_by(0, 1)->state, mesi::exclusive);
    caches.reach(1, 1, false);
    EXPECT_EQ(caches.held_by(0, 1)->state, mesi::shared);
    EXPECT_EQ(caches.held_by(1, 1)->state, mesi::shared);
    EXPECT_TRUE(caches.reach(1, 1, true).asked);
    EXPECT_EQ(caches.held_by(0, 1), nullptr);
    EXPECT_EQ(caches.held_by(1, 1)->state, mesi::modified);
    EXPECT_FALSE(caches.reach(1, 1, true).asked); // it is its own now
    caches.reach(0, 1, false);                    // its dirt goes to the third level
    EXPECT_EQ(caches.held_by(1, 1)->state, mesi::shared);
    EXPECT_EQ(client.log.back(), "read 1 of 1");
}

/// Random accesses of three cores: no line is ever modified or exclusive in one and held by
/// another, and what a first level holds, the second does (hierarchy.hpp, 3).
TEST(Caches, RandomAccessesKeepTheStatesApart) {
    noting_client client;
    hierarchy caches{tiny(3), client};
    std::uint64_t state = 1;
    for (int i = 0; i < 20'000; ++i) {
        state = state * 6364136223846793005 + 1442695040888963407;
        caches.reach(state >> 60 & 3 ? 0 : 1 + (state >> 50 & 1), state >> 40 & 15,
                     (state >> 33 & 1) != 0);
        for (std::uint64_t line = 0; line < 16; ++line) {
            unsigned holders = 0, owners = 0;
            for (unsigned core = 0; core < 3; ++core)
                if (const held* at = caches.held_by(core, line)) {
                    ++holders;
                    owners += at->state != mesi::shared;
                }
            ASSERT_TRUE(owners == 0 || holders == 1) << "line " << line << " after " << i;
        }
    }
}

memory_parameters two_entries() {
    memory_parameters how;
    how.queue_lines = 2;
    how.banks = 2;
    how.interleave_bytes = 64;
    return how;
}
constexpr ticks ns = ticks_per_ns;

TEST(WriteQueue, AnEntryIsHeldUntilItsMediaWriteEnds) {
    persistent_memory memory{two_entries(), 4096};
    const std::array<std::byte, 64> line{};
    EXPECT_EQ(memory.write(0, line.data(), 0), 4 * ns);
    EXPECT_EQ(memory.write(1, line.data(), 0), 8 * ns);
    EXPECT_EQ(memory.write(2, line.data(), 0), (4 + 500 + 4) * ns); // the first entry is free then
}

TEST(WriteQueue, WritesOfOneBankFollowEachOther) {
    persistent_memory memory{two_entries(), 4096};
    const std::array<std::byte, 64> line{};
    memory.write(0, line.data(), 0);
    memory.write(2, line.data(), 0);                             // until 4 + 500 + 500 ns
    EXPECT_EQ(memory.write(4, line.data(), 0), (504 + 4) * ns);  // the first entry
    EXPECT_EQ(memory.write(1, line.data(), 0), (1004 + 4) * ns); // the second
}

TEST(WriteQueue, ALineIsDurableWhenItIsAccepted) {
    persistent_memory memory{{}, 4096};
    std::array<std::byte, 64> line{};
    line[5] = std::byte{7};
    unsigned observed = 0;
    memory.on_acceptance([&] {
        ++observed;
        EXPECT_EQ(memory.durable()[3 * 64 + 5], std::byte{7});
    });
    memory.write(3, line.data(), 0);
    EXPECT_EQ(observed, 1U);
    EXPECT_EQ(memory.lines_written(), 1U);
    EXPECT_EQ(memory.wear()[3], 1U);
    EXPECT_EQ(memory.wear()[2], 0U);
}

TEST(Core, LoadsThatDoNotDependOnEachOtherOverlap) {
    core_clock clock{{}};
    const ticks miss = 190 * ns;
    for (int i = 0; i < 8; ++i) clock.end_load(clock.start_load(0) + miss);
    EXPECT_LT(clock.settled(), miss + 20 * ns);
    ticks ready = clock.settled();
    const ticks before = ready;
    for (int i = 0; i < 8; ++i) clock.end_load(ready = clock.start_load(ready) + miss);
    EXPECT_GE(clock.settled() - before, 8 * miss);
}

TEST(Core, TheReorderBufferBoundsWhatOverlaps) {
    core_clock clock{{}};
    const ticks miss = 1000 * ns;
    for (int i = 0; i < 128; ++i) clock.end_load(clock.start_load(0) + miss); // two buffers' worth
    EXPECT_GE(clock.settled(), 2 * miss);
    EXPECT_LT(clock.settled(), 3 * miss);
}

TEST(Core, StoreMissesDoNotHoldUpTheCoreUntilTheQueueIsFull) {
    core_clock clock{{}};
    const ticks miss = 190 * ns;
    for (int i = 0; i < 16; ++i) clock.end_store(clock.start_store(true) + miss, true);
    EXPECT_LT(clock.now(), miss);
    EXPECT_GE(clock.settled(), miss);
    EXPECT_LT(clock.settled(), 2 * miss); // sixteen at once
    for (int i = 0; i < 32; ++i) clock.end_store(clock.start_store(true) + miss, true);
    EXPECT_GE(clock.now(), miss); // thirty-two wait: the next one waits for the first
}

} // namespace
