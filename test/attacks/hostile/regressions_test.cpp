// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What mutated pools have found, each as small as it can be.
#include <alloc/allocator.hpp>
#include <log/flush_set.hpp>
#include <log/lane.hpp>
#include <open/pool_impl.hpp>
#include <pool/header.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/clobber.hpp>
#include <holdfast/undo.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <unistd.h>

namespace {

using namespace hf;

class Regressions : public ::testing::Test {
protected:
    void SetUp() override {
        path_ = "/dev/shm/hf_regressions_test." + std::to_string(::getpid());
        ::unlink(path_.c_str());
        options_.layout = "regressions_test/1";
        options_.create_bytes = 256_KiB;
        options_.engines = {clobber::engine(), undo::engine()};
        {
            const auto p = pool::open(path_, options_);
            ASSERT_TRUE(p) << p.error().what();
        }
        auto file = pool_file::open(path_, file_options_of(options_));
        ASSERT_TRUE(file) << file.error().what();
        file_ = std::move(*file);
        ASSERT_TRUE(file_->mark_open().ok()); // closed, it would have nothing pending
    }
    void TearDown() override {
        file_ = nullptr;
        ::unlink(path_.c_str());
    }

    /// Appends to the first half of lane 0.
    void put(lane_position& at, record_kind kind, std::uint64_t offset, std::uint64_t bytes,
             std::uint64_t payload_bytes) {
        record_head head{0, static_cast<std::uint64_t>(kind) << 56 | offset, bytes};
        head.check = record_check(head.what, bytes, at.next + sizeof head, payload_bytes, at.chain);
        std::memcpy(at.next, &head, sizeof head);
        at.chain = head.check;
        at.next += lane_writer::record_bytes(payload_bytes);
        const std::uint64_t end_mark = ~at.chain;
        if (kind != record_kind::segment && at.next != at.limit)
            std::memcpy(at.next, &end_mark, sizeof end_mark);
    }
    lane_position begin_undo(std::uint64_t epoch) {
        lane_position at = lane_start(*file_, 0, epoch);
        const begin_payload begin{epoch, 0, 0, engine_undo, 0, 0};
        std::memcpy(at.next + sizeof(record_head), &begin, sizeof begin);
        put(at, record_kind::begin, 0, sizeof begin, sizeof begin);
        return at;
    }
    std::uint64_t next_epoch() const { return lane_at(*file_, 0)->committed / 2 * 2 + 2; }

    errc opened_again(std::string* said = nullptr) {
        pool_file::abandon(std::move(file_));
        const auto p = pool::open(path_, options_);
        if (said != nullptr && !p) *said = p.error().what();
        return p ? errc::ok : p.error().code();
    }

    std::string path_;
    open_options options_;
    std::unique_ptr<pool_file> file_;
};

// A section that resumed behind such a record wrote the segment record past the end of its half. If
// the log was in the pool's last block, that was past the end of the pool.
TEST_F(Regressions, LogWithoutRoomForASegmentRecordEndsBeforeThatRecord) {
    lane_position at = begin_undo(next_epoch());
    const auto room = static_cast<std::uint64_t>(at.limit - at.next);
    const lane_position before = at;
    put(at, record_kind::preserve, 0, room - sizeof(record_head), room - sizeof(record_head));
    ASSERT_EQ(at.next, at.limit);
    pending_section found;
    std::uint64_t newest = 0;
    heap blocks(*file_);
    lane_damage damage;
    ASSERT_TRUE(read_lane(*file_, blocks, 0, found, newest, damage));
    EXPECT_TRUE(found.records.empty());
    EXPECT_EQ(found.end.next, before.next);
}

TEST_F(Regressions, SegmentTooSmallForALogIsRefused) {
    lane_position at = begin_undo(next_epoch());
    heap blocks(*file_);
    put(at, record_kind::segment, blocks.extent_at(0).data_offset, 16, 0);
    std::string said;
    EXPECT_EQ(opened_again(&said), errc::corrupt);
    EXPECT_NE(said.find("record of kind 7"), std::string::npos) << said;
}

// Both were released, one block was handed out twice, and a count that had become too high made the
// next refill look for a free slot for ever.
TEST_F(Regressions, BlockNamedTwiceByALogIsRefused) {
    heap blocks(*file_);
    lane_position at = begin_undo(next_epoch());
    const std::uint64_t offset = blocks.extent_at(0).data_offset;
    put(at, record_kind::alloc, offset, 64, 0);
    put(at, record_kind::alloc, offset, 64, 0);
    std::string said;
    EXPECT_EQ(opened_again(&said), errc::corrupt);
    EXPECT_NE(said.find("expected one that is free"), std::string::npos) << said;
}

TEST_F(Regressions, BlocksAreClaimedOnce) {
    allocator blocks(*file_);
    const heap_extent& e = blocks.durable().extent_at(0);
    const std::uint64_t chunk = blocks.durable().chunk_bytes();
    EXPECT_TRUE(blocks.claim({e.data_offset, 64}));
    EXPECT_FALSE(blocks.claim({e.data_offset, 64}));
    EXPECT_FALSE(blocks.claim({e.data_offset, 2 * chunk})) << "over a slab";
    EXPECT_FALSE(blocks.claim({e.data_offset, 128})) << "another class in the chunk";
    EXPECT_TRUE(blocks.claim({e.data_offset + chunk, 3 * chunk}));
    EXPECT_FALSE(blocks.claim({e.data_offset + 3 * chunk, 2 * chunk})) << "overlaps";
    EXPECT_FALSE(blocks.claim({e.data_offset + 2 * chunk, 64})) << "in a large block";
    EXPECT_TRUE(blocks.claim({e.data_offset + 4 * chunk, chunk}));
}

// No bit is set inside of it. The log's block was given back, and handed out over the server's
// root.
TEST_F(Regressions, BlocksInsideAnAllocatedOneAreNotClaimed) {
    allocator blocks(*file_);
    const heap_extent& e = blocks.durable().extent_at(0);
    const std::uint64_t chunk = blocks.durable().chunk_bytes();
    blocks.durable().publish({e.data_offset + chunk, 3 * chunk}, [](const void*) {});
    EXPECT_FALSE(blocks.claim({e.data_offset + 2 * chunk, chunk}));
    EXPECT_FALSE(blocks.claim({e.data_offset + 3 * chunk, 2 * chunk}));
    EXPECT_FALSE(blocks.claim({e.data_offset + 3 * chunk, 64}));
    EXPECT_TRUE(blocks.claim({e.data_offset, 64}));
    EXPECT_TRUE(blocks.claim({e.data_offset + 4 * chunk, chunk}));
}

// Four billion sections later epochs would have wrapped below the mark; at once, here.
TEST_F(Regressions, EpochsThatWouldWrapAreRefused) {
    lane_at(*file_, 1)->committed = ~std::uint64_t{0};
    std::string said;
    EXPECT_EQ(opened_again(&said), errc::corrupt);
    EXPECT_NE(said.find("lane 1: found epoch"), std::string::npos) << said;
}

TEST_F(Regressions, RunThatLeavesItsExtentIsNoBlock) {
    heap blocks(*file_);
    const heap_extent& e = blocks.extent_at(0);
    e.entries[3] = chunk_entry::large(e.chunks).word;
    const std::uint64_t granule = 3 * blocks.chunk_bytes() / granule_bytes;
    e.bits[granule / 64] |= std::uint64_t{1} << granule % 64;
    unsigned seen = 0;
    blocks.for_each([&](block) { ++seen; });
    EXPECT_EQ(seen, 0U);
    EXPECT_EQ(blocks.allocated_at(e.data_offset + 3 * blocks.chunk_bytes()).bytes, 0U);
}

TEST_F(Regressions, OldBytesMayLieUnderTheirOwnRecord) {
    heap blocks(*file_);
    const std::uint64_t data = blocks.extent_at(0).data_offset;
    const std::uint64_t segment_bytes = round_up(segment_bytes_min(*file_), blocks.chunk_bytes());
    lane_position at = begin_undo(next_epoch());
    put(at, record_kind::segment, data, segment_bytes, 0);
    at.next = file_->base() + data;
    put(at, record_kind::old_bytes, data + 8, 512, 512); // shifts itself
    EXPECT_EQ(opened_again(), errc::ok);
}

// A loop without end took memory without end before its time was over.
TEST(FlushSet, ListIsBoundedByWhatWasTouched) {
    flush_set dirty;
    const auto at = [](std::uintptr_t line) {
        return reinterpret_cast<const void*>((line + 1) * line_bytes);
    };
    for (unsigned i = 0; i < 1'000'000; ++i) {
        dirty.add(at(i % 1000), 8);
        dirty.add(at(i % 500), 2048);
    }
    EXPECT_LE(dirty.listed(), 2 * (64U << 10));
    EXPECT_GE(dirty.listed(), 1500U) << "a line was lost";
}

} // namespace
