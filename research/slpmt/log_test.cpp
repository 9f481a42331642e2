// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: records join, drain and pack as Fig. 6 says, and reading a log that was cut at any line
// gives a prefix of its batches, never a torn record. Method: known sequences, then every cut.
#include <slpmt/log_area.hpp>
#include <slpmt/log_buffer.hpp>
#include <slpmt/signature.hpp>

#include <gtest/gtest.h>

#include <cstring>

namespace {

using namespace hf;
using namespace hf::slpmt;

record word_record(std::uint64_t word) { return {word, 0, {word + 1000}}; }
const auto never = [](unsigned, const std::vector<record>&) { FAIL() << "nothing drains here"; };

TEST(LogBuffer, NeighboursJoinUpToAWholeLine) {
    log_buffer buffer;
    for (std::uint64_t word = 8; word < 16; ++word) {
        buffer.add(word_record(word), never);
        EXPECT_EQ(buffer.tier(0).size(), (word + 1) & 1);
        EXPECT_EQ(buffer.tier(1).size(), (word + 1) >> 1 & 1);
        EXPECT_EQ(buffer.tier(2).size(), (word + 1) >> 2 & 1);
    }
    ASSERT_EQ(buffer.tier(3).size(), 1U);
    EXPECT_EQ(buffer.tier(3)[0].word, 8U);
    for (unsigned i = 0; i < 8; ++i) EXPECT_EQ(buffer.tier(3)[0].values[i], 1008 + i);
}

TEST(LogBuffer, WordsJoinInAnyOrderAndOnlyWithTheirBuddy) {
    log_buffer buffer;
    for (std::uint64_t word : {3, 2, 0, 1}) buffer.add(word_record(word), never);
    ASSERT_EQ(buffer.tier(2).size(), 1U);
    for (unsigned i = 0; i < 4; ++i) EXPECT_EQ(buffer.tier(2)[0].values[i], 1000 + i);
    buffer.add(word_record(13), never);
    buffer.add(word_record(14), never); // next to 13, but not its other half
    EXPECT_EQ(buffer.tier(0).size(), 2U);
}

TEST(LogBuffer, TheNinthRecordOfATierDrainsTheEight) {
    log_buffer buffer;
    std::vector<std::pair<unsigned, std::size_t>> drained;
    const auto note = [&](unsigned tier, const std::vector<record>& records) {
        drained.emplace_back(tier, records.size());
    };
    buffer.add(word_record(500), note);
    buffer.add(word_record(501), note); // of two words, and stays
    for (std::uint64_t i = 0; i < 8; ++i) buffer.add(word_record(16 * i), note);
    EXPECT_TRUE(drained.empty());
    buffer.add(word_record(1), note); // joins instead
    EXPECT_TRUE(drained.empty());
    buffer.add(word_record(200), note);
    EXPECT_TRUE(drained.empty());
    buffer.add(word_record(300), note);
    ASSERT_EQ(drained.size(), 1U);
    EXPECT_EQ(drained[0], (std::pair<unsigned, std::size_t>{0, 8}));
    EXPECT_EQ(buffer.tier(0).size(), 1U);
    EXPECT_EQ(buffer.tier(1).size(), 2U);
}

TEST(LogBuffer, EightRecordsOfATierFillItsLines) {
    for (unsigned tier = 0; tier < tiers; ++tier) {
        std::vector<record> records(8, record{64, tier, {}});
        EXPECT_EQ(pack(records, 1, false).size(), tier_lines(tier)) << tier;
        EXPECT_EQ(8 * record_bytes(tier), 64 * tier_lines(tier)) << tier;
    }
}

TEST(Signature, HoldsWhatItWasGivenAndLittleElse) {
    slpmt::signature set;
    for (std::uint64_t line = 0; line < 60; ++line) set.add(line * 977);
    for (std::uint64_t line = 0; line < 60; ++line) EXPECT_TRUE(set.may_hold(line * 977));
    unsigned others = 0;
    for (std::uint64_t line = 0; line < 10'000; ++line) others += set.may_hold(1'000'000 + line);
    EXPECT_LT(others, 20U); // 2048 bits, 240 set: one in five thousand
    set.clear();
    EXPECT_FALSE(set.may_hold(977));
}

struct written_log {
    log_layout where{0, 32};
    std::vector<std::byte> image = std::vector<std::byte>(where.bytes() + 4096);
    void put(std::uint64_t line, const line_image& bytes) {
        std::memcpy(&image[line * 64], bytes.data(), 64);
    }
};

std::vector<std::vector<record>> batches() {
    std::vector<std::vector<record>> all;
    all.push_back({{1, 0, {11}}, {2, 1, {12, 13}}});                  // 40 bytes, padded
    all.push_back({{8, 3, {1, 2, 3, 4, 5, 6, 7, 8}}, {100, 0, {9}}}); // over a line's end
    all.push_back(std::vector<record>(4, record{7, 0, {77}}));        // exactly one line
    all.push_back(std::vector<record>(8, record{16, 3, {8, 7, 6, 5, 4, 3, 2, 1}})); // exactly nine
    return all;
}

/// Every state that acceptances leave, in the order in which they come: the batches complete until
/// there, or the last one without its first line. An older transaction's records lie below.
TEST(Log, CutAnywhereItReadsAsItsCompleteBatches) {
    for (const std::uint64_t start : {0U, 5U, 25U}) { // the last one round the circle's end
        written_log log;
        for (std::uint64_t line = 0; line < log.where.lines; ++line)
            log.put(log.where.line_at(line),
                    pack(std::vector<record>(4, record{3, 0, {1}}), 6, false)[0]);
        std::uint64_t place = start;
        std::size_t complete = 0;
        for (const auto& batch : batches()) {
            const auto lines = pack(batch, 7, false);
            for (std::size_t i = lines.size(); i-- > 0;) {
                auto got = read_log(log.image, log.where, start, 7);
                ASSERT_TRUE(got) << got.error().what();
                ASSERT_EQ(got->size(), complete);
                log.put(log.where.line_at(place + i), lines[i]);
            }
            place += lines.size();
            complete += batch.size();
        }
        auto got = read_log(log.image, log.where, start, 7);
        ASSERT_TRUE(got);
        ASSERT_EQ(got->size(), complete);
        EXPECT_EQ((*got)[2].what.values, (std::array<std::uint64_t, 8>{1, 2, 3, 4, 5, 6, 7, 8}));
    }
}

TEST(Log, RecordsThatAreNoneAreRefusedWithWhatWasExpected) {
    written_log log;
    log.put(log.where.line_at(0), pack(std::vector<record>{{1 << 20, 0, {1}}}, 7, false)[0]);
    const auto beyond = read_log(log.image, log.where, 0, 7);
    ASSERT_FALSE(beyond);
    EXPECT_EQ(beyond.error().code(), errc::corrupt);
    EXPECT_NE(beyond.error().what().find("expected a record of transaction 7"), std::string::npos);
}

/// Bytes of any kind are read, or refused, and never reached past.
TEST(Log, AnyBytesAreReadOrRefused) {
    written_log log;
    std::uint64_t state = 3, refused = 0;
    for (int round = 0; round < 3000; ++round) {
        const auto good = pack(batches()[static_cast<std::size_t>(round) % 4], 7, false);
        for (std::size_t i = 0; i < good.size(); ++i) log.put(log.where.line_at(i), good[i]);
        for (int flips = 0; flips < 3; ++flips) {
            state = state * 6364136223846793005 + 1442695040888963407;
            log.image[4096 + (state >> 33) % (64 * good.size())] ^=
                std::byte(1 << (state >> 60 & 7));
        }
        refused += !read_log(log.image, log.where, 0, 7);
        const log_layout whole = log.where;
        (void)newest(log.image, whole);
    }
    EXPECT_GT(refused, 0U);
}

TEST(Log, TheNewestMarkOfResolutionCounts) {
    written_log log;
    EXPECT_EQ(newest(log.image, log.where).tag, 0U);
    for (std::uint64_t tag = 1; tag < 40; ++tag) {
        log.put(log.where.slot_line(tag), resolution{tag, tag * 2, tag * 3}.image());
        EXPECT_EQ(newest(log.image, log.where).tag, tag);
        EXPECT_EQ(newest(log.image, log.where).next, tag * 3);
    }
}

} // namespace
