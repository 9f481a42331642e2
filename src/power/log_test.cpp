// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a log that is cut, foreign, of another version or hostile is refused with what was expected
// and what was found; and threads share the waits for the disk. Method: a log written to memory,
// changed, and read.
#include "crash_model.hpp"
#include <persist/line_log.hpp>
#include <power/found_log.hpp>
#include <power/home.hpp>
#include <power/log.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

namespace {

using namespace hf;
using namespace hf::power;
using namespace hf::power::test;

constexpr std::uint64_t first_line = 2, line_count = 512;
struct alignas(64) image {
    std::byte content[line_count * line_bytes];
};
owner owner_at(std::uint64_t generation, std::uint64_t salt) {
    return {{1, 2, 3}, generation, salt, first_line, line_count};
}

class PowerLog : public ::testing::Test {
protected:
    void SetUp() override {
        log_header sizes = log::sized_for(1);
        device.files = {bytes(file_bytes(sizes)), bytes(sizeof(image))};
        std::memcpy(sizes.uuid, owner_at(0, 0).uuid, sizeof sizes.uuid);
        sizes.generation = 5;
        sizes.follows = 44;
        power::log log("log");
        log.watch(content->content, sizes);
        device_file file(device, 0), home(device, 1);
        ASSERT_TRUE(log.start(file, home, sizes, false).ok());
        for (std::uint64_t line = first_line; line < first_line + 3; ++line) {
            content->content[line * line_bytes] = std::byte{42};
            log.note(content->content + line * line_bytes, 1);
            log.order();
            ASSERT_TRUE(log.make_durable().ok());
        }
        ASSERT_TRUE(read_header(file, header));
    }
    result<found_log> read(std::uint64_t generation = 5) {
        return found_log::read("p.hf-power", device_file(device, 0), device.files[0].size(),
                               owner_at(generation, generation == 5 ? header.salt : 44));
    }
    /// What read() says about it, beginning with the code.
    std::string refused(std::uint64_t generation = 5) {
        const auto found = read(generation);
        if (!found) return found.error().what();
        ADD_FAILURE() << "a log of " << found->lines().size() << " lines was taken";
        return {};
    }
    void edit_header(const std::function<void(log_header&)>& edit) {
        log_header h = header;
        edit(h);
        h.checksum = header_checksum(h);
        for (std::uint64_t copy = 0; copy < header_copies; ++copy)
            std::memcpy(device.files[0].data() + copy * block_bytes, &h, sizeof h);
    }
    std::byte* batch(std::uint64_t n) {
        return device.files[0].data() + segments_offset + n * block_bytes;
    }
    /// Changes a batch and makes its sum right again.
    void edit_batch(std::uint64_t n, const std::function<void(batch_head&, std::uint64_t*)>& edit) {
        batch_head h;
        std::memcpy(&h, batch(n), sizeof h);
        edit(h, reinterpret_cast<std::uint64_t*>(batch(n) + sizeof h + h.lines * line_bytes));
        std::memcpy(batch(n), &h, sizeof h);
        h.checksum = batch_checksum(batch(n), h);
        std::memcpy(batch(n), &h, sizeof h);
    }

    std::unique_ptr<image> content = std::make_unique<image>();
    recorded_device device;
    log_header header{};
};

TEST_F(PowerLog, HoldsWhatWasOrdered) {
    const auto found = read();
    ASSERT_TRUE(found) << found.error().what();
    ASSERT_EQ(found->lines().size(), 3U);
    EXPECT_EQ(found->last(), 3U);
    EXPECT_EQ(found->lines()[2].number, first_line + 2);
    EXPECT_EQ(found->lines()[2].bytes[0], std::byte{42});
}

TEST_F(PowerLog, EndsAtABatchThatWasBeingWritten) {
    batch(2)[100] ^= std::byte{1};
    const auto found = read();
    ASSERT_TRUE(found) << found.error().what();
    EXPECT_EQ(found->lines().size(), 2U);
}

TEST_F(PowerLog, RefusesDamageThatIsNotAtItsEnd) {
    batch(1)[100] ^= std::byte{1};
    EXPECT_EQ(refused(), "p.hf-power: corrupt: batch 3 is there, and batch 2 before it is damaged");
}

TEST_F(PowerLog, RefusesAGapBetweenItsSegments) {
    std::memcpy(device.files[0].data() + segments_offset + header.segment_bytes, batch(2),
                block_bytes);
    std::memset(batch(1), 0, 2 * block_bytes);
    EXPECT_EQ(refused(),
              "p.hf-power: corrupt: expected batch 2, found 3: what is between them is damaged");
}

TEST_F(PowerLog, RefusesWhatIsNoLog) {
    device.files[0].assign(device.files[0].size(), std::byte{7});
    EXPECT_NE(refused().find("not_a_pool"), std::string::npos);
    device.files[0].clear();
    EXPECT_NE(refused().find("not_a_pool"), std::string::npos);
}

TEST_F(PowerLog, RefusesADamagedHeaderOnlyWhereBothCopiesAre) {
    device.files[0][8] ^= std::byte{1};
    EXPECT_TRUE(read());
    device.files[0][block_bytes + 8] ^= std::byte{1};
    EXPECT_EQ(refused(),
              "p.hf-power: corrupt: expected a header copy of the log that verifies, found none");
}

TEST_F(PowerLog, RefusesAnotherVersionPoolOrOpen) {
    edit_header([](log_header& h) { h.version = 2; });
    EXPECT_EQ(refused(), "p.hf-power: wrong_version: expected version 1 of the log, found 2");
    edit_header([](log_header& h) { h.uuid[0] ^= 1; });
    EXPECT_EQ(refused(), "p.hf-power: torn: the log is another pool's");
    edit_header([](log_header&) {});
    EXPECT_EQ(
        refused(6),
        "p.hf-power: torn: the log is another open's: expected that of open 6, found that of 5");
    // The next open's log, which the pool's header does not name yet, is empty.
    EXPECT_EQ(refused(4),
              "p.hf-power: torn: the log is that of open 5, and the pool knows only of open 4");
}

// A copy of the pool has its uuid, and may have been opened as often.
TEST_F(PowerLog, RefusesTheLogOfACopy) {
    edit_header([](log_header& h) { h.salt ^= 1; });
    EXPECT_EQ(refused(),
              fmt::format("p.hf-power: torn: the log is that of a copy of the pool, or of another "
                          "open: expected salt {:#x}, found {:#x}",
                          header.salt, header.salt ^ 1));
    // Also where it is empty, as that of the next open.
    std::memset(batch(0), 0, 3 * block_bytes);
    edit_header([](log_header&) {});
    EXPECT_TRUE(read(4));
    edit_header([](log_header& h) { h.follows = 45; });
    EXPECT_NE(refused(4).find("expected one that follows 0x2c, found 0x2d"), std::string::npos);
}

TEST_F(PowerLog, RefusesNumbersOutOfBounds) {
    const auto with = [&](auto edit) {
        edit_header(edit);
        return refused();
    };
    EXPECT_NE(with([](log_header& h) { h.segment_bytes = 1ULL << 40; }).find("segment_bytes"),
              std::string::npos);
    EXPECT_NE(with([](log_header& h) { h.segment_bytes = 0; }).find("segment_bytes"),
              std::string::npos);
    EXPECT_NE(with([](log_header& h) { h.batch_bytes_max = UINT64_MAX; }).find("batch_bytes_max"),
              std::string::npos);
    EXPECT_NE(with([](log_header& h) { h.applied = UINT64_MAX; }).find("applied"),
              std::string::npos);
    EXPECT_NE(with([](log_header& h) { h.header_bytes = 64; }).find("header_bytes"),
              std::string::npos);
    edit_header([](log_header&) {});
    device.files[0].resize(device.files[0].size() - 1);
    EXPECT_EQ(refused(), "p.hf-power: corrupt: expected 139264 bytes, found 139263");
}

TEST_F(PowerLog, RefusesALineOutsideOfThePool) {
    for (const std::uint64_t number :
         {line_count, UINT64_MAX / line_bytes, UINT64_MAX, first_line - 1}) {
        edit_batch(1, [&](batch_head&, std::uint64_t* numbers) { numbers[0] = number; });
        EXPECT_NE(refused().find("batch 2: expected a line from 2 to 512, found"),
                  std::string::npos);
    }
}

TEST_F(PowerLog, BelievesNoLengthOfABatch) {
    const auto with = [&](auto edit) {
        edit_batch(2, [&](batch_head& h, std::uint64_t*) {
            const batch_head was = h;
            edit(h);
            if (h.bytes > block_bytes) h.bytes = was.bytes; // the sum is taken over these
        });
        const auto found = read();
        return found ? found->lines().size() : 99;
    };
    EXPECT_EQ(with([](batch_head& h) { h.lines = UINT64_MAX / 72; }), 2U);
    EXPECT_EQ(with([](batch_head& h) { h.lines = 0; }), 2U);
    EXPECT_EQ(with([](batch_head& h) { h.bytes = 64; }), 2U);
    batch_head h;
    std::memcpy(&h, batch(2), sizeof h);
    h.bytes = UINT64_MAX - 8;
    std::memcpy(batch(2), &h, sizeof h);
    EXPECT_TRUE(read());
}

/// Another device; what derives from it changes one thing.
class passed_on : public block_file {
public:
    explicit passed_on(block_file& of) : of_(&of) {}
    status read(std::uint64_t at, void* to, std::size_t count) const override {
        return of_->read(at, to, count);
    }
    status write(std::uint64_t at, const void* from, std::size_t count) override {
        return of_->write(at, from, count);
    }
    status sync() override { return of_->sync(); }

private:
    block_file* of_;
};

/// A file with slow syncs.
class slow_file final : public passed_on {
public:
    using passed_on::passed_on;
    status sync() override {
        ++syncs;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return passed_on::sync();
    }
    std::atomic<unsigned> syncs = 0;
};

TEST(PowerGroup, ThreadsShareTheWaitsForTheDisk) {
    constexpr unsigned threads = 4, rounds = 40;
    const auto content = std::make_unique<image>();
    recorded_device device;
    log_header sizes = log::sized_for(1);
    device.files = {bytes(file_bytes(sizes)), bytes(sizeof(image))};
    device_file file(device, 0), home(device, 1);
    slow_file slow(file);
    power::log log("log");
    log.watch(content->content, sizes);
    ASSERT_TRUE(log.start(slow, home, sizes, false).ok());
    std::vector<std::thread> all;
    for (unsigned t = 0; t < threads; ++t)
        all.emplace_back([&, t] {
            std::byte* const mine = content->content + (first_line + t) * line_bytes;
            for (unsigned r = 1; r <= rounds; ++r) {
                mine[0] = std::byte(r);
                log.note(mine, 1);
                log.order();
                log.wait();
            }
        });
    for (std::thread& t : all) t.join();
    EXPECT_LT(slow.syncs, threads * rounds);
    const auto found = found_log::read("log", file, device.files[0].size(),
                                       {{}, 0, log.salt(), first_line, line_count});
    ASSERT_TRUE(found) << found.error().what();
    bytes there = device.files[1];
    for (const logged_line& line : found->lines())
        std::memcpy(there.data() + line.number * line_bytes, line.bytes, line_bytes);
    for (unsigned t = 0; t < threads; ++t)
        EXPECT_EQ(there[(first_line + t) * line_bytes], std::byte(rounds));
}

TEST(PowerGroup, FencesInAGroupOnlyOrder) {
    const auto content = std::make_unique<image>();
    recorded_device device;
    log_header sizes = log::sized_for(1);
    device.files = {bytes(file_bytes(sizes)), bytes(sizeof(image))};
    device_file file(device, 0), home(device, 1);
    power::log log("log");
    log.watch(content->content, sizes);
    ASSERT_TRUE(log.start(file, home, sizes, false).ok());
    const std::size_t before = device.events.size();
    persist::begin_group(log);
    persist::begin_group(log);
    for (unsigned n = 0; n < 8; ++n) {
        persist::flush(log, content->content + first_line * line_bytes, 8);
        persist::fence(log, true);
    }
    persist::end_group(log);
    EXPECT_EQ(device.events.size(), before);
    persist::end_group(log);
    EXPECT_EQ(device.events.size(), before + 2); // a write and a sync
    persist::begin_group(log);
    persist::end_group(log); // nothing was fenced
    persist::flush(log, content->content + first_line * line_bytes, 8);
    persist::fence(log, false);
    EXPECT_EQ(device.events.size(), before + 2);
    persist::flush(log, content->content + first_line * line_bytes, 8);
    persist::fence(log, true);
    EXPECT_EQ(device.events.size(), before + 4);
}

/// A log whose batches are long.
class PowerBatch : public ::testing::Test {
protected:
    void SetUp() override {
        device.files = {bytes(file_bytes(sizes)), bytes(sizeof(image))};
        log.watch(content->content, sizes);
        ASSERT_TRUE(log.start(file, home, sizes, false).ok());
    }
    void store(std::uint64_t line, unsigned word, unsigned n) {
        std::byte* const at = content->content + line * line_bytes + word * word_bytes;
        *at = std::byte(n);
        log.note(at, 1);
    }
    /// Orders so many lines.
    void order(std::uint64_t lines, unsigned n) {
        for (std::uint64_t i = 0; i < lines; ++i) store(first_line + i, 0, n);
        log.order();
    }

    /// Adds so many lines while the log is held.
    void add(std::uint64_t line, std::uint64_t count, unsigned n) {
        log.hold(count);
        for (std::uint64_t end = line + count; line < end; ++line) {
            content->content[line * line_bytes] = std::byte(n);
            log.add(content->content + line * line_bytes, 1);
        }
        log.let_go();
    }
    found_log found() {
        auto read = found_log::read("p.hf-power", file, device.files[0].size(),
                                    {{}, 0, log.salt(), first_line, line_count});
        if (!read) ADD_FAILURE() << read.error().what();
        return read ? std::move(*read) : found_log();
    }

    const log_header sizes = log::sized_for(1); // batches of 16 KiB, segments of 64
    std::unique_ptr<image> content = std::make_unique<image>();
    recorded_device device;
    device_file file{device, 0}, home{device, 1};
    power::log log{"log"};
};

// Blocks that were written while their batch grew hold the last order() of each line, in this batch
// and those that follow, of other lengths and in other segments.
TEST_F(PowerBatch, IsWholeThoughPartsOfItWereWrittenBefore) {
    // Lines of the second length fill two blocks, and their numbers lie in a third.
    const std::uint64_t lengths[] = {198, 198, 127, 127};
    for (unsigned n = 0; n < 24; ++n) {
        const std::uint64_t lines = lengths[n % 4];
        const std::size_t writes = device.events.size();
        order(lines, n);
        if (n < 4) {
            ASSERT_GT(device.events.size(), writes) << "nothing was written before its end";
        }
        for (const std::uint64_t again : {std::uint64_t{0}, std::uint64_t{100}, lines - 1})
            store(first_line + again, 1, n);
        log.order();
        ASSERT_TRUE(log.make_durable().ok());
        const auto found = found_log::read("p.hf-power", file, device.files[0].size(),
                                           {{}, 0, log.salt(), first_line, line_count});
        ASSERT_TRUE(found) << found.error().what();
        EXPECT_EQ(found->last(), n + 1);
        bytes there = device.files[1];
        for (const logged_line& line : found->lines())
            std::memcpy(there.data() + line.number * line_bytes, line.bytes, line_bytes);
        ASSERT_EQ(std::memcmp(there.data(), content->content, there.size()), 0) << n;
    }
    EXPECT_GT(log.counts().checkpoints, 2U);
}

/// No wait comes between: the first batch is written when it is full.
TEST_F(PowerBatch, HasWhatWasAddedWhileTheLogWasHeldBeforeWhatIsFencedLater) {
    add(first_line, 3, 7);
    for (std::uint64_t line = first_line + 10; log.counts().batches == 0; ++line) {
        ASSERT_LT(line, line_count);
        store(line, 0, 1);
        log.order();
    }
    unsigned seen = 0;
    const found_log there = found();
    for (const logged_line& line : there.lines()) {
        if (line.number >= first_line + 3) continue;
        ++seen;
        EXPECT_EQ(line.bytes[0], std::byte{7});
    }
    EXPECT_EQ(seen, 3U);
}

TEST_F(PowerBatch, HasALineOnceThatWasAddedOften) {
    for (unsigned n = 1; n <= 200; ++n) add(first_line + n % 2, 1, n);
    ASSERT_TRUE(log.make_durable().ok());
    const found_log there = found();
    ASSERT_EQ(there.lines().size(), 2U);
    for (const logged_line& line : there.lines())
        EXPECT_EQ(line.bytes[0], std::byte(line.number == first_line ? 200 : 199));
}

// An error that passes: the lines that it has taken are in no later write.
TEST_F(PowerBatch, IsNoneWhereAWriteOfItsPartsHasFailed) {
    device.fails_at = device.events.size();
    order(198, 1);
    device.fails_at = SIZE_MAX;
    EXPECT_FALSE(log.make_durable().ok());
}

// A page is written once, with what home has around its lines, and pages that follow each other in
// one write.
TEST(PowerHome, WritesPagesWholeAndOfEachLineTheLast) {
    constexpr std::uint64_t page = 4096, page_lines = page / line_bytes;
    recorded_device device;
    device.files = {bytes(6 * page, std::byte{5})};
    std::vector<bytes> versions;
    for (unsigned n = 0; n < 4; ++n) versions.emplace_back(line_bytes, std::byte(10 + n));
    const std::vector<logged_line> lines{{4 * page_lines, versions[0].data()},
                                         {page_lines + 3, versions[1].data()},
                                         {2 * page_lines + 63, versions[2].data()},
                                         {page_lines + 3, versions[3].data()}};
    device_file home(device, 0);
    way_home way;
    ASSERT_TRUE(way.bring(home, lines).ok());
    EXPECT_EQ(way.bytes_written(), 3 * page);
    ASSERT_EQ(device.events.size(), 3U);
    EXPECT_EQ(device.events[0].at, page);
    EXPECT_EQ(device.events[0].content.size(), 2 * page);
    EXPECT_EQ(device.events[1].at, 4 * page);
    EXPECT_EQ(device.events[2].what, device_event::sync);
    bytes wanted(6 * page, std::byte{5});
    const auto put = [&](std::uint64_t line, const bytes& content) {
        std::memcpy(wanted.data() + line * line_bytes, content.data(), line_bytes);
    };
    put(4 * page_lines, versions[0]);
    put(page_lines + 3, versions[3]);
    put(2 * page_lines + 63, versions[2]);
    EXPECT_EQ(device.files[0], wanted);
}

/// A file whose syncs end only when the test lets them.
class gated_file final : public passed_on {
public:
    using passed_on::passed_on;
    status sync() override {
        std::unique_lock held{lock_};
        changed_.wait(held, [this] { return permitted_ != 0; });
        --permitted_;
        return passed_on::sync();
    }
    void permit(std::size_t syncs) {
        const std::scoped_lock held{lock_};
        permitted_ = syncs;
        changed_.notify_all();
    }

private:
    std::mutex lock_;
    std::condition_variable changed_;
    std::size_t permitted_ = 0;
};

// A thread that fills segments faster than they come home waits for each piece in its turn, and not
// at the end for all.
TEST(PowerHome, IsWaitedForPieceByPiece) {
    // A segment has 32 batches of two blocks. Each of their lines has a page of its own: 14 MB to
    // bring home, four pieces.
    constexpr std::uint64_t page = 4096, lines = lines_in(2 * block_bytes), pages = 32 * lines;
    static_assert(pages * page / (4 << 20) + 1 == 4);
    log_header sizes{};
    sizes.segment_bytes = 64 * block_bytes;
    sizes.batch_bytes_max = 4 * block_bytes;
    recorded_device log_device, home_device;
    log_device.files = {bytes(file_bytes(sizes))};
    home_device.files = {bytes(pages * page)};
    device_file file(log_device, 0), disk(home_device, 0);
    gated_file home(disk);
    bytes content((pages + 1) * page);
    std::byte* const base =
        content.data() + page - reinterpret_cast<std::uintptr_t>(content.data()) % page;
    power::log log("log");
    log.watch(base, sizes);
    ASSERT_TRUE(log.start(file, home, sizes, true).ok());
    std::thread writer([&] {
        for (std::uint64_t batch = 0; batch < 80; ++batch) {
            for (std::uint64_t i = 0; i < lines; ++i)
                log.note(base + (batch * lines + i) % pages * page, 1);
            log.order();
            EXPECT_TRUE(log.make_durable().ok());
        }
    });
    // A quarter of a segment ahead when the first piece is on its way, and none when the last one
    // is.
    const std::uint64_t written[] = {32 + 15, 32 + 21, 32 + 27, 32 + 32};
    for (unsigned waits = 1; waits <= 4 && !HasFailure(); ++waits) {
        while (log.counts().waits_for_room < waits) std::this_thread::yield();
        EXPECT_EQ(log.counts().batches, written[waits - 1]);
        EXPECT_EQ(log.counts().checkpoints, 0U);
        home.permit(1);
    }
    home.permit(SIZE_MAX);
    writer.join();
    EXPECT_TRUE(log.finish().ok());
}

// The amount that waits in the device's queue before a sync of the log is bounded.
TEST(PowerHome, SyncsAsItGoes) {
    constexpr std::uint64_t pages = 2048, page_lines = 4096 / line_bytes;
    recorded_device device;
    device.files = {bytes(pages * 4096)};
    const bytes version(line_bytes, std::byte{1});
    std::vector<logged_line> lines;
    for (std::uint64_t at = 0; at < pages; ++at) lines.push_back({at * page_lines, version.data()});
    device_file home(device, 0);
    ASSERT_TRUE(way_home().bring(home, lines).ok());
    std::uint64_t unsynced = 0;
    for (const device_event& e : device.events) {
        unsynced = e.what == device_event::sync ? 0 : unsynced + e.content.size();
        EXPECT_LE(unsynced, 4U << 20);
    }
    EXPECT_EQ(unsynced, 0U);
}

} // namespace
