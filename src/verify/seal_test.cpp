// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a seal vouches for exactly the pool that was closed with it; closing without one, for
// whatever reason, costs nothing but the seal. Method: every way to close, reopen, grow, fill up.
#include <verify/examine.hpp>
#include <verify/test_pools.hpp>

#include <csignal>
#include <sys/resource.h>

namespace {

using namespace hf;
using namespace hf::test;
using verify::depth;
using verify::examine;
using verify::verdict;

using Seal = Pools;

TEST_F(Seal, IsWrittenByACleanCloseInEveryMode) {
    for (const mode m : {mode::process, mode::pmem}) {
        options.mode = m;
        const auto report = examine(make_pool(), depth::deep);
        EXPECT_EQ(report.outcome, verdict::good) << lines_of(report);
        std::filesystem::remove(path);
    }
}

TEST_F(Seal, IsWrittenOnADiskToo) {
    const char* disk = std::getenv("TMPDIR");
    path = std::string(disk != nullptr ? disk : "/tmp") + "/hf_seal_test." +
           std::to_string(::getpid());
    std::filesystem::remove(path);
    EXPECT_EQ(verdict_of(make_pool()), verdict::good);
    EXPECT_EQ(verdict_of(make_pool()), verdict::good) << "opened and closed again";
    std::filesystem::remove(path);
}

TEST_F(Seal, IsLeftOutWhenOpenedSo) {
    options.expert.seal = false;
    const bytes file = make_pool();
    EXPECT_EQ(file.size(), 64_KiB);
    EXPECT_EQ(verdict_of(file, depth::tables), verdict::good);
    EXPECT_EQ(verdict_of(file), verdict::not_verifiable);
}

TEST_F(Seal, OfAnEarlierCloseDoesNotCount) {
    const bytes sealed = make_pool();
    options.expert.seal = false;
    const bytes again = make_pool();
    ASSERT_EQ(again.size(), sealed.size()) << "the old seal still stands there";
    const auto report = examine(again, depth::deep);
    EXPECT_EQ(report.outcome, verdict::not_verifiable) << lines_of(report);
    EXPECT_EQ(report.seal, seal_state::stale);
}

TEST_F(Seal, EndsWhenThePoolIsOpened) {
    make_pool();
    const pool p = open_good();
    EXPECT_EQ(verdict_of(read_all(path)), verdict::not_verifiable);
}

TEST_F(Seal, EndsWithTheProcessThatIsKilled) {
    make_pool();
    EXPECT_FALSE(in_child([&] {
        pool p = open_good();
        ::raise(SIGKILL);
    }));
    EXPECT_EQ(verdict_of(read_all(path)), verdict::not_verifiable);
    EXPECT_EQ(verdict_of(make_pool(0)), verdict::good) << "recovered and closed";
}

TEST_F(Seal, OfAnotherPoolDoesNotCount) {
    const bytes one = make_pool();
    std::filesystem::remove(path);
    bytes other = make_pool();
    ASSERT_EQ(one.size(), other.size());
    std::copy(one.begin() + 64_KiB, one.end(), other.begin() + 64_KiB);
    EXPECT_EQ(verdict_of(other), verdict::damaged) << "the same sequence number, another header";
}

TEST_F(Seal, GivesWayToGrowth) {
    options.max_bytes = 1_MiB;
    make_pool();
    {
        pool p = open_good();
        auto* l = p.root<list_sections::list>();
        while (p.size_bytes() == 64_KiB) list_sections::push(true, l, l->count + 1);
        EXPECT_EQ(list_sections::fault(p, l->count), std::string("a block leaked or lost"))
            << "fill() has made blocks of its own, but the list is whole";
    }
    const auto report = examine(read_all(path), depth::deep);
    EXPECT_EQ(report.outcome, verdict::good) << lines_of(report);
    EXPECT_GT(report.header.extent_count, 1U);
}

TEST_F(Seal, WithoutRoomForItThePoolIsClosedAllTheSame) {
    // At the pool's own size, in the middle of the seal, and inside its head.
    const std::uint64_t whole = make_pool().size();
    for (const std::uint64_t limit : {64_KiB, 64_KiB + 100, whole - 1}) {
        EXPECT_TRUE(in_child([&] {
            struct rlimit most{limit, limit};
            pool p = open_good();
            list_sections::push(true, p.root<list_sections::list>(), 7);
            ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &most), 0);
        })) << limit;
        const bytes file = read_all(path);
        EXPECT_EQ(file.size(), 64_KiB);
        EXPECT_EQ(verdict_of(file, depth::tables), verdict::good);
        EXPECT_EQ(verdict_of(file), verdict::not_verifiable);
    }
    EXPECT_EQ(verdict_of(make_pool(0)), verdict::good) << "and the next close seals it again";
}

TEST_F(Seal, PoolAtItsLimitIsSealedPastIt) {
    const bytes file = make_pool();
    EXPECT_GT(file.size(), 64_KiB);
    EXPECT_EQ(verdict_of(file), verdict::good);
    EXPECT_NO_THROW(open_good());
}

TEST_F(Seal, ForkedChildDoesNotWriteIt) {
    pool p = open_good();
    fill(p, 3);
    EXPECT_TRUE(in_child([&] { pool closing = std::move(p); }));
    EXPECT_EQ(read_all(path).size(), 64_KiB);
}

TEST_F(Seal, TablesThatNameNoBlocksAreNotSealedAndNotFollowed) {
    bytes file = make_pool();
    const auto h = load<pool_header>(file, 0);
    const extent_split split = split_extent(h.extents[0].size_bytes, h.chunk_bytes);
    const std::uint64_t heap = h.extents[0].offset_bytes;
    const seal_found sealed = find_seal(file, 64_KiB, h, true);
    // The last chunk that has no block becomes a large one that ends far behind the pool.
    const auto used = [&](std::uint64_t chunk) {
        const std::uint64_t start = heap + split.metadata_bytes + chunk * h.chunk_bytes;
        for (std::uint64_t i = 0; i < sealed.block_count(); ++i) {
            const sealed_block b = sealed.block(i);
            if (b.offset < start + h.chunk_bytes && start < b.offset + b.bytes) return true;
        }
        return false;
    };
    std::uint64_t last = split.chunks - 1;
    while (used(last)) --last;
    store(file, heap + last * 8, chunk_entry::large(0xffffff).word);
    store(file, heap + split.entry_table_bytes + last * h.chunk_bytes / 128, std::uint64_t{1});
    write_all(path, file);
    EXPECT_TRUE(in_child([&] { pool p = open_good(); }));
    const auto report = examine(read_all(path), depth::deep);
    EXPECT_EQ(report.outcome, verdict::damaged) << lines_of(report);
    EXPECT_EQ(report.seal, seal_state::absent);
}

TEST_F(Seal, StrayBitIsNotSealedAway) {
    bytes file = make_pool();
    const auto h = load<pool_header>(file, 0);
    const extent_split split = split_extent(h.extents[0].size_bytes, h.chunk_bytes);
    const std::uint64_t bits = h.extents[0].offset_bytes + split.entry_table_bytes;
    for (std::uint64_t chunk = 0; chunk < split.chunks; ++chunk) {
        bytes damaged = file;
        damaged[bits + chunk * h.chunk_bytes / 128 + 31] ^= std::byte{0x80}; // the last granule
        write_all(path, damaged);
        EXPECT_TRUE(in_child([&] { pool p = open_good(); })) << chunk;
        const auto report = examine(read_all(path), depth::deep);
        EXPECT_TRUE(report.seal == seal_state::absent || report.outcome == verdict::good)
            << chunk << lines_of(report); // good: a 16-byte block starts there
    }
}

TEST_F(Seal, CutFileIsNotReadAtTheClose) {
    options.create_bytes = options.max_bytes = 1_MiB;
    make_pool();
    EXPECT_TRUE(in_child([&] {
        pool p = open_good();
        std::filesystem::resize_file(path, 1_MiB - 64_KiB);
    }));
    EXPECT_EQ(verdict_of(read_all(path)), verdict::damaged);
}

} // namespace
