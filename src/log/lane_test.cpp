// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: what a section appended is what recovery reads, and nothing older or torn passes for it.
// Method: a lane in a small pool; records are written, cut and mixed with an older section's.
#include <base/engines.hpp>
#include <log/lane.hpp>
#include <log/left_stores.hpp>
#include <trace/trace.hpp>

#include <holdfast/sizes.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace {

using namespace hf;

class Lane : public ::testing::Test {
protected:
    void SetUp() override {
        path_ = "/dev/shm/hf_lane_test." + std::to_string(::getpid());
        ::unlink(path_.c_str());
        file_options options;
        options.layout = "lane_test/1";
        options.create_bytes = 1_MiB;
        auto opened = pool_file::open(path_, options);
        ASSERT_TRUE(opened) << opened.error().what();
        file_ = std::move(*opened);
        ASSERT_TRUE(file_->mark_open().ok());
        blocks_ = std::make_unique<heap>(*file_);
    }
    void TearDown() override {
        file_.reset();
        ::unlink(path_.c_str());
    }
    lane_writer_in<ordered_medium> begin(std::uint64_t epoch, const std::string& args) {
        lane_writer_in log{ordered_medium(medium(domain::process))};
        log.start(lane_start(*file_, 0, epoch));
        begin_payload head{epoch,          11, 22,
                           engine_clobber, 0,  static_cast<std::uint32_t>(args.size())};
        std::string payload(reinterpret_cast<const char*>(&head), sizeof head);
        payload += args;
        log.append(record_kind::begin, in_order_bit, payload.size(), payload.data(),
                   payload.size());
        return log;
    }
    bool read() {
        damage_ = {};
        return read_lane(*file_, *blocks_, 0, found_, newest_, damage_);
    }

    std::string path_;
    std::unique_ptr<pool_file> file_;
    std::unique_ptr<heap> blocks_;
    pending_section found_;
    std::uint64_t newest_ = 0;
    lane_damage damage_;
};

TEST_F(Lane, EmptyLaneHoldsNothing) {
    EXPECT_FALSE(read());
    EXPECT_EQ(newest_, 0U);
}

TEST_F(Lane, RecordsComeBackAsWritten) {
    auto log = begin(5, "arguments");
    log.append(record_kind::old_bytes, 4096 * 9, 3, "abc", 3);
    log.append(record_kind::alloc, 4096 * 10, 272, nullptr, 0);
    std::string large(1000, 'x');
    log.append(record_kind::preserve, 0, large.size(), large.data(), large.size());
    ASSERT_TRUE(read());
    EXPECT_EQ(newest_, 5U);
    EXPECT_EQ(found_.begin.function_id, 11U);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(found_.args.data()), found_.args.size()),
              "arguments");
    ASSERT_EQ(found_.records.size(), 3U);
    EXPECT_EQ(found_.records[0].offset, 4096U * 9);
    EXPECT_EQ(std::memcmp(found_.records[0].payload, "abc", 3), 0);
    EXPECT_EQ(found_.records[1].bytes, 272U);
    EXPECT_EQ(std::memcmp(found_.records[2].payload, large.data(), large.size()), 0);
}

// What only rolling back needs stays in the cache, on lines of its own.
TEST_F(Lane, KeptRecordsAreNeverWrittenBack) {
    static std::vector<std::pair<const trace::event*, const std::byte*>> seen;
    seen.clear();
    lane_writer_in log{fenced_medium(medium(domain::adr))};
    const lane_position start = lane_start(*file_, 0, 5);
    log.start(start);
    const begin_payload head{5, 11, 22, engine_clobber, 0, 0};
    {
        const trace::listening all([](const trace::event& what, const void* at, std::size_t) {
            seen.emplace_back(&what, static_cast<const std::byte*>(at));
        });
        log.append(record_kind::begin, 0, sizeof head, &head, sizeof head);
        log.keep(4096 * 9, 8, "12345678");
        log.keep(4096 * 9 + 8, 3, "abc");
        log.append(record_kind::old_bytes, 4096 * 9, 8, "87654321", 8);
    }
    const std::byte* const second = start.next + sizeof(record_head) + sizeof head;
    const std::vector<std::pair<const trace::event*, const std::byte*>> expected{
        {&trace::nt_store, start.next},
        {&trace::store, start.kept - 32},
        {&trace::store, start.kept - 64},
        {&trace::nt_store, second}};
    EXPECT_EQ(seen, expected);
}

// Restoring takes records of both kinds newest first: a word that was kept may have been logged
// before, or be logged after.
TEST_F(Lane, KeptRecordsComeBackAmongTheOthersInOrder) {
    start_lane(*file_, 0, 4);
    const std::string large(900, 'x');
    auto log = begin(5, "arguments");
    log.keep(4096, 8, "before..");
    log.append(record_kind::old_bytes, 4096, 8, "logged..", 8);
    log.append(record_kind::alloc, 4096 * 10, 272, nullptr, 0);
    log.keep(4096 + 4, 8, "after...");
    log.keep(4096 + 64, large.size(), large.data());
    log.append(record_kind::old_bytes, 4096 + 8, 3, "abc", 3);
    ASSERT_TRUE(read());
    EXPECT_EQ(damage_.what, nullptr);
    using enum record_kind;
    std::vector<record_kind> kinds;
    for (const record_view& r : found_.records) kinds.push_back(r.kind);
    EXPECT_EQ(kinds,
              (std::vector{overwritten, old_bytes, alloc, overwritten, overwritten, old_bytes}));
    EXPECT_EQ(std::memcmp(found_.records[3].payload, "after...", 8), 0);
    EXPECT_EQ(found_.records[4].bytes, large.size());
    EXPECT_EQ(std::memcmp(found_.records[4].payload, large.data(), large.size()), 0);

    ASSERT_TRUE(read_lane(*file_, *blocks_, 0, found_, newest_, damage_, false));
    EXPECT_FALSE(found_.kept_known);
    EXPECT_EQ(found_.records.size(), 3U);
    EXPECT_EQ(damage_.what, nullptr);
}

// A half is used again by the section after next, with the same records at the same places.
TEST_F(Lane, KeptRecordsOfAnotherSectionDoNotPass) {
    start_lane(*file_, 0, 4);
    for (const std::uint64_t epoch : {5U, 7U}) {
        auto log = begin(epoch, "same");
        if (epoch == 5) log.keep(4096, 8, "stale...");
    }
    ASSERT_TRUE(read());
    EXPECT_EQ(newest_, 7U);
    EXPECT_TRUE(found_.records.empty());
    EXPECT_EQ(damage_.what, nullptr);
}

TEST_F(Lane, BothEndsOfAHalfMeetAndTheLogGoesOn) {
    start_lane(*file_, 0, 4);
    const std::string payload(100, 'p');
    const lane_position start = lane_start(*file_, 0, 5);
    auto log = begin(5, "x");
    std::size_t written = 0;
    while (log.fits(payload.size())) {
        log.append(record_kind::preserve, 0, payload.size(), payload.data(), payload.size());
        ++written;
        if (!log.fits_kept(payload.size())) break;
        log.keep(4096, payload.size(), payload.data());
        ++written;
    }
    std::byte* const segment = file_->base() + file_->extents()[0].offset_bytes + 65536;
    const std::uint64_t bytes = segment_bytes_min(*file_);
    EXPECT_GT(written, 8U);
    log.continue_in(segment, static_cast<std::uint64_t>(segment - file_->base()), bytes);
    log.keep(4096, 8, "in there");
    log.append(record_kind::preserve, 0, payload.size(), payload.data(), payload.size());
    ASSERT_TRUE(read());
    EXPECT_EQ(damage_.what, nullptr);
    EXPECT_TRUE(found_.sound);
    EXPECT_EQ(found_.records.size(), written + 3);
    EXPECT_EQ(std::memcmp(found_.records[written + 1].payload, "in there", 8), 0);
    EXPECT_LT(start.next, found_.records[written - 1].payload);
}

TEST_F(Lane, CommittedSectionIsNotPending) {
    begin(5, "x");
    lane_at(*file_, 0)->committed = 5;
    EXPECT_FALSE(read());
    EXPECT_EQ(newest_, 5U);
}

TEST_F(Lane, RecordsOfAnEarlierSectionDoNotPassForThisOnes) {
    auto older = begin(5, "same");
    older.append(record_kind::old_bytes, 4096 * 9, 8, "12345678", 8);
    older.append(record_kind::old_bytes, 4096 * 9 + 8, 8, "12345678", 8);
    begin(7, "same"); // same half, same length: the older records follow directly
    ASSERT_TRUE(read());
    EXPECT_EQ(found_.begin.epoch, 7U);
    EXPECT_TRUE(found_.records.empty());
}

TEST_F(Lane, TheNewerOfTwoSectionsCountsAndTheOlderStaysWholeUntilThen) {
    auto older = begin(5, "older");
    older.append(record_kind::old_bytes, 4096 * 9, 8, "12345678", 8);
    begin(6, "a newer section with longer arguments");
    ASSERT_TRUE(read());
    EXPECT_EQ(found_.begin.epoch, 6U);
    // Torn: the newer begin record never reached PM as a whole.
    lane_start(*file_, 0, 6).next[40] ^= std::byte{1};
    ASSERT_TRUE(read());
    EXPECT_EQ(found_.begin.epoch, 5U);
    EXPECT_EQ(found_.records.size(), 1U);
}

TEST_F(Lane, AnyDamagedByteEndsTheLogThere) {
    auto log = begin(5, "x");
    log.append(record_kind::old_bytes, 4096 * 9, 8, "12345678", 8);
    log.append(record_kind::old_bytes, 4096 * 9 + 8, 8, "abcdefgh", 8);
    const auto first = lane_writer::record_bytes(sizeof(begin_payload) + 1);
    std::byte* records = lane_start(*file_, 0, 5).next + first;
    for (std::uint64_t at = 0; at < 64; ++at) {
        records[at] ^= std::byte{0x40};
        ASSERT_TRUE(read());
        EXPECT_EQ(found_.records.size(), at < 32 ? 0U : 1U) << "byte " << at;
        records[at] ^= std::byte{0x40};
    }
    ASSERT_TRUE(read());
    EXPECT_EQ(found_.records.size(), 2U);
}

TEST_F(Lane, GarbageEverywhereIsReadWithoutHarm) {
    std::uint64_t x = 88172645463325252ULL;
    for (int round = 0; round < 2000; ++round) {
        auto log = begin(5, "x");
        log.append(record_kind::old_bytes, 4096 * 9, 8, "12345678", 8);
        auto* bytes = reinterpret_cast<std::uint64_t*>(lane_at(*file_, 0));
        for (int i = 0; i < 3; ++i) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            bytes[x % (file_->shape().lane_bytes / 8)] = x * 0x9e3779b97f4a7c15ULL;
        }
        read();
    }
}

TEST_F(Lane, WrittenInOrderNoStateOfItsIsDamage) {
    start_lane(*file_, 0, 4);
    EXPECT_FALSE(read());
    EXPECT_EQ(damage_.what, nullptr);
    for (std::uint64_t epoch = 5; epoch < 8; ++epoch) {
        auto log = begin(epoch, "x");
        for (int i = 0; i < 3; ++i) {
            EXPECT_TRUE(read());
            EXPECT_EQ(damage_.what, nullptr) << epoch << " " << i;
            log.append(record_kind::old_bytes, 4096 * 9, 8, "12345678", 8);
            EXPECT_TRUE(read());
            EXPECT_EQ(damage_.what, nullptr) << epoch << " " << i;
            log.keep(4096 * 9 + 8, 8, "keptkept");
        }
        store_mark(medium(domain::process), lane_at(*file_, 0), epoch);
        EXPECT_FALSE(read());
        EXPECT_EQ(damage_.what, nullptr) << epoch;
    }
}

TEST_F(Lane, WrittenInOrderAnyFlippedBitOfItIsDamage) {
    start_lane(*file_, 0, 4);
    auto log = begin(5, "no gaps.");
    log.append(record_kind::old_bytes, 4096 * 9, 8, "12345678", 8);
    log.append(record_kind::old_bytes, 4096 * 9 + 8, 8, "abcdefgh", 8);
    log.keep(4096 * 9 + 16, 8, "keptkept");
    ASSERT_TRUE(read());
    ASSERT_EQ(damage_.what, nullptr);
    const auto flip_each = [&](std::byte* at, std::uint64_t bytes) {
        for (std::uint64_t bit = 0; bit < 8 * bytes; ++bit) {
            at[bit / 8] ^= std::byte{1} << bit % 8;
            read();
            EXPECT_NE(damage_.what, nullptr) << "bit " << bit;
            at[bit / 8] ^= std::byte{1} << bit % 8;
        }
    };
    flip_each(reinterpret_cast<std::byte*>(lane_at(*file_, 0)), 16);
    const auto records = lane_writer::record_bytes(sizeof(begin_payload) + 8) + 2 * 32;
    flip_each(lane_start(*file_, 0, 5).next, records + 8); // and the end mark
    flip_each(lane_start(*file_, 0, 5).kept - 40, 40);     // the same, downwards
    const std::vector<std::byte> header(64);
    std::memcpy(lane_at(*file_, 0), header.data(), header.size());
    read();
    EXPECT_NE(damage_.what, nullptr) << "the header's line reads as zeros";
}

TEST(LeftStores, TellOfEveryLineAndEveryPieceOfOwnMemory) {
    left_stores left;
    const auto at = [](std::uintptr_t line) { return (line + 1000) * line_bytes; };
    EXPECT_FALSE(left.touches(at(0), at(5000)));
    std::vector<std::uintptr_t> lines;
    for (std::uintptr_t i = 0; i < left_stores::lines_max; ++i) lines.push_back(at(3 * i));
    left.start(lines, lines.size() - 1);
    const auto touched = [&](std::uintptr_t line) {
        return left.touches(at(line) + 48, at(line) + 64);
    };
    for (std::uintptr_t i = 0; i + 1 < left_stores::lines_max; ++i) {
        EXPECT_TRUE(touched(3 * i));
        EXPECT_FALSE(touched(3 * i + 1));
        EXPECT_TRUE(left.touches(at(3 * i) + 63, at(3 * i) + 65));
    }
    EXPECT_FALSE(touched(3 * (left_stores::lines_max - 1))); // the allocator's
    EXPECT_TRUE(left.touches(at(0) - 16, at(100))); // longer than it is looked for line by line
    EXPECT_FALSE(left.touches(at(500), at(600)));
    for (std::uintptr_t i = 0; i < 2 * left_stores::ranges_max; ++i) {
        left.add_own(at(1000 + 4 * i) + 16, at(1000 + 4 * i) + 32);
        for (std::uintptr_t j = 0; j <= i; ++j)
            EXPECT_TRUE(left.owns(at(1000 + 4 * j) + 31, at(1000 + 4 * j) + 32));
    }
    for (std::uintptr_t i = 0; i < 2 * left_stores::ranges_max; ++i)
        EXPECT_TRUE(left.touches(at(1000 + 4 * i) + 16, at(1000 + 4 * i) + 17));
    EXPECT_FALSE(left.owns(at(1000) + 32, at(1000) + 48));
    left.start({}, 0); // another section's
    EXPECT_FALSE(left.touches(at(0), at(5000)));
}

/// Each commit notes its pieces in no time, however far apart and however long they are.
TEST(LeftStores, MemoryFarApart) {
    left_stores left;
    const auto at = [](std::uintptr_t i) { return (i + 1) << 40; };
    left.start({}, 0);
    for (std::uintptr_t i = 0; i < 2 * left_stores::ranges_max; ++i)
        left.add_own(at(i) + 16, at(i) + 32);
    for (std::uintptr_t i = 0; i < 2 * left_stores::ranges_max; ++i)
        EXPECT_TRUE(left.touches(at(i) + 16, at(i) + 17));
    left.add_own(at(100), at(200));
    EXPECT_TRUE(left.touches(at(150) + 16, at(150) + 32));
    EXPECT_TRUE(left.touches(at(200) - 1, at(200)));
    EXPECT_TRUE(left.touches(at(0) + 16, at(0) + 17));
}

} // namespace
