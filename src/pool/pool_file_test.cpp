// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a pool is found again at its address, with its size and its bytes, whether it was closed or
// abandoned. Method: create, reopen, grow and abandon files on tmpfs and on a disk.
#include <pool/mapping.hpp>
#include <pool/test_support.hpp>

#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

namespace {

using namespace hf;
using namespace hf::test;

TEST_F(PoolFile, NewPoolHasTheShapeThatItsSizeAsksFor) {
    struct shape {
        std::uint64_t create_bytes, chunk_bytes, lane_bytes;
        std::uint32_t lane_count;
    };
    for (const shape& s : {shape{64_KiB, 4_KiB, 4_KiB, 2}, shape{1_MiB, 4_KiB, 4_KiB, 32},
                           shape{8_MiB, 4_KiB, 16_KiB, 64}, shape{16_MiB, 64_KiB, 16_KiB, 64},
                           shape{64_MiB, 64_KiB, 64_KiB, 64}}) {
        options.create_bytes = s.create_bytes;
        auto file = open_good();
        ASSERT_NE(file, nullptr);
        EXPECT_TRUE(file->created());
        EXPECT_EQ(file->shape().chunk_bytes, s.chunk_bytes);
        EXPECT_EQ(file->shape().lane_bytes, s.lane_bytes);
        EXPECT_EQ(file->shape().lane_count, s.lane_count);
        EXPECT_EQ(file->shape().lanes_offset, 12_KiB);
        EXPECT_EQ(file->shape().max_bytes, 64 * s.create_bytes);
        EXPECT_EQ(file->size_bytes(), s.create_bytes);
        ASSERT_EQ(file->extents().size(), 1U);
        const extent heap = file->extents()[0];
        EXPECT_EQ(heap.offset_bytes % s.chunk_bytes, 0U);
        EXPECT_EQ(heap.offset_bytes + heap.size_bytes, s.create_bytes);
        file.reset();
        std::filesystem::remove(path);
    }
}

TEST_F(PoolFile, NewPoolOfNoSizeStartsSmallAndMayGrow) {
    struct shape {
        std::uint64_t create_bytes, max_bytes; // asked for
        std::uint64_t bytes, may_grow_to, chunk_bytes;
        std::uint32_t lane_count;
    };
    for (const shape& s : {shape{0, 0, 1_MiB, 4_GiB, 64_KiB, 64}, // what grows has large chunks
                           shape{0, 512_KiB, 512_KiB, 512_KiB, 4_KiB, 32},
                           shape{0, 100_GiB, 1_MiB, 100_GiB, 64_KiB, 64},
                           shape{2_MiB, 1_GiB, 2_MiB, 1_GiB, 64_KiB, 64},
                           shape{64_KiB, 4_GiB, 64_KiB, 4_GiB, 4_KiB, 2}}) {
        options.create_bytes = s.create_bytes;
        options.max_bytes = s.max_bytes;
        auto file = open_good();
        ASSERT_NE(file, nullptr);
        EXPECT_EQ(file->size_bytes(), s.bytes);
        EXPECT_EQ(file->shape().max_bytes, s.may_grow_to);
        EXPECT_EQ(file->shape().chunk_bytes, s.chunk_bytes);
        EXPECT_EQ(file->shape().lane_count, s.lane_count);
        file.reset();
        std::filesystem::remove(path);
    }
    options.max_bytes = 1_KiB;
    EXPECT_EQ(pool_file::open(path, options).error().code(), errc::bad_argument);
}

TEST_F(PoolFile, NewFileIsForItsOwnerOnlyAndReadsAsZerosPastTheHeaders) {
    make_pool();
    struct stat about{};
    ASSERT_EQ(::stat(path.c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 07777, 0600U);
    EXPECT_GE(about.st_blocks * 512, about.st_size) << "a hole would fault when the disk is full";
    const std::string bytes = contents(path);
    EXPECT_EQ(bytes.find_first_not_of('\0', 8192), std::string::npos);
}

TEST_F(PoolFile, PoolComesBackAtItsAddressWithItsBytes) {
    auto file = open_good();
    ASSERT_TRUE(file->mark_open().ok());
    std::byte* const base = file->base();
    const auto address = reinterpret_cast<std::uint64_t>(base);
    EXPECT_GE(address, base_low);
    EXPECT_LE(address + file->shape().max_bytes, base_high);
    EXPECT_EQ(address % (2_MiB), 0U);
    file->roots()->root_offset = 4711;
    std::strcpy(reinterpret_cast<char*>(base + file->extents()[0].offset_bytes), "here");
    EXPECT_TRUE(file->contains(base + file->shape().max_bytes - 1));
    EXPECT_FALSE(file->contains(base + file->shape().max_bytes));
    EXPECT_FALSE(file->contains(base - 1));
    file.reset();
    file = open_good();
    ASSERT_NE(file, nullptr);
    EXPECT_FALSE(file->created());
    EXPECT_TRUE(file->was_clean());
    EXPECT_EQ(file->base(), base);
    EXPECT_EQ(file->roots()->root_offset, 4711U);
    EXPECT_STREQ(reinterpret_cast<char*>(base + file->extents()[0].offset_bytes), "here");
}

TEST_F(PoolFile, LargePoolsAreAlignedToAGibibyte) {
    options.max_bytes = 1024_GiB;
    auto file = open_good();
    ASSERT_NE(file, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uint64_t>(file->base()) % 1_GiB, 0U);
}

TEST_F(PoolFile, ManyPoolsFindPlacesOfTheirOwn) {
    std::vector<std::unique_ptr<pool_file>> files;
    std::set<std::byte*> bases;
    for (int i = 0; i < 100; ++i) {
        path = directory + "/pool." + std::to_string(i);
        files.push_back(open_good());
        ASSERT_NE(files.back(), nullptr);
        bases.insert(files.back()->base());
    }
    EXPECT_EQ(bases.size(), 100U);
}

TEST_F(PoolFile, GenerationGrowsWithEachOpenAndIsNeverZero) {
    for (std::uint64_t expected = 1; expected < 4; ++expected) {
        auto file = open_good();
        ASSERT_TRUE(file->mark_open().ok());
        EXPECT_EQ(file->generation(), expected);
    }
}

TEST_F(PoolFile, MarksOfEnginesAreThereWhileItIsOpen) {
    options.drop_bytes = engine_clobber;
    options.rebuild = engine_undo;
    make_pool_left_open();
    EXPECT_EQ(marks_of(read_header(path, 0)).drop_bytes, engine_clobber);
    EXPECT_EQ(marks_of(read_header(path, 0)).rebuild, engine_undo);
    options.drop_bytes = options.rebuild = 0;
    {
        const auto file = open_good();
        ASSERT_NE(file, nullptr);
        EXPECT_EQ(file->dropped_bytes(), engine_clobber);
        EXPECT_EQ(file->left_to_rebuild(), engine_undo);
        ASSERT_TRUE(file->mark_open().ok());
        EXPECT_EQ(marks_of(read_header(path, 0)).drop_bytes, engine_clobber) << "still pending";
        ASSERT_TRUE(file->settle_place().ok());
        EXPECT_EQ(marks_of(read_header(path, 0)).features(), 0U) << "not any more";
    }
    options.drop_bytes = engine_undo;
    make_pool();
    EXPECT_EQ(marks_of(read_header(path, 0)).features(), 0U) << "nothing after a clean close";
}

TEST_F(PoolFile, AbandonedPoolWasNotClean) {
    make_pool_left_open();
    EXPECT_FALSE(open_good()->was_clean());
    EXPECT_EQ(read_header(path, 0).engines, both_engines);
    make_pool();
    EXPECT_TRUE(open_good()->was_clean());
    EXPECT_EQ(read_header(path, 0).engines, 0U) << "a clean close leaves no engine with state";
}

TEST_F(PoolFile, OpenWithoutMarkOpenWritesNothing) {
    make_pool();
    const std::string before = fingerprint(path);
    open_good().reset();
    EXPECT_EQ(fingerprint(path), before);
}

TEST_F(PoolFile, HeaderWritesCostTwoOrderingPoints) {
    options.mode = mode::pmem;
    auto file = open_good();
    const auto before = persist::thread_counters();
    ASSERT_TRUE(file->mark_open().ok());
    EXPECT_EQ(persist::thread_counters().ordering_points - before.ordering_points, 2U);
    file.reset();
    EXPECT_EQ(persist::thread_counters().ordering_points - before.ordering_points, 4U);
}

TEST_F(PoolFile, PmemModeOnTmpfsIsEmulatedAndSaysSo) {
    options.mode = mode::pmem;
    auto file = open_good();
    ASSERT_NE(file, nullptr);
    EXPECT_TRUE(file->emulated());
    EXPECT_EQ(file->domain(), domain::adr);
    ASSERT_EQ(file->warnings().size(), 1U);
    file.reset();
    EXPECT_FALSE(open_good()->medium().keeps_order());
    options.eadr = true;
    file = open_good();
    EXPECT_EQ(file->domain(), domain::eadr);
    EXPECT_TRUE(file->medium().keeps_order());
    file.reset();
    options.mode = mode::process;
    file = open_good();
    EXPECT_EQ(file->domain(), domain::process);
    EXPECT_FALSE(file->emulated());
}

/// As the kernel describes regions of persistent memory.
TEST_F(PoolFile, CachesPersistWhereEveryRegionSaysSo) {
    namespace fs = std::filesystem;
    const fs::path regions = path + ".regions";
    fs::remove_all(regions);
    EXPECT_FALSE(caches_persist(regions.c_str()));
    const auto says = [&](const char* region, const char* domain) {
        fs::create_directories(regions / region);
        if (domain != nullptr)
            std::ofstream(regions / region / "persistence_domain") << domain << '\n';
        return caches_persist(regions.c_str());
    };
    EXPECT_FALSE(says("nmem0", nullptr)) << "it is no region";
    EXPECT_TRUE(says("region0", "cpu_cache"));
    EXPECT_TRUE(says("region1", "cpu_cache"));
    EXPECT_FALSE(says("region2", "memory_controller"));
    fs::remove_all(regions / "region2");
    EXPECT_FALSE(says("region3", nullptr)) << "it does not say";
    fs::remove_all(regions);
}

TEST_F(PoolFile, GrowthAppendsZeroedExtentsThatSurviveReopening) {
    auto file = open_good();
    ASSERT_TRUE(file->mark_open().ok());
    const std::uint64_t first_bytes = file->size_bytes();
    const auto grown = file->grow(20000);
    ASSERT_TRUE(grown) << grown.error().what();
    EXPECT_EQ(grown->offset_bytes, first_bytes);
    EXPECT_GE(grown->size_bytes, 4096U + 20480U) << "behind the tables";
    EXPECT_EQ(file->extents().size(), 2U);
    std::byte* const there = file->base() + grown->offset_bytes;
    for (std::uint64_t i = 0; i < grown->size_bytes; ++i) ASSERT_EQ(there[i], std::byte{0});
    std::memset(there, 0x77, grown->size_bytes);
    pool_file::abandon(std::move(file));
    file = open_good();
    ASSERT_NE(file, nullptr);
    EXPECT_EQ(file->size_bytes(), first_bytes + grown->size_bytes);
    EXPECT_EQ(file->extents().size(), 2U);
    EXPECT_EQ(there[grown->size_bytes - 1], std::byte{0x77});
}

TEST_F(PoolFile, GrowthIsAtLeastAnEighthAndEndsAtTheLimit) {
    options.create_bytes = 1_MiB;
    options.max_bytes = 2_MiB;
    auto file = open_good();
    ASSERT_TRUE(file->mark_open().ok());
    for (const std::uint64_t asked : {1U, 0U}) {
        const std::uint64_t eighth = file->size_bytes() / 8, grown = file->grow(asked)->size_bytes;
        EXPECT_GE(grown, eighth);
        EXPECT_LE(grown, eighth + 16_KiB) << "the tables, and what was asked for";
    }
    EXPECT_EQ(file->grow(1_MiB).error().code(), errc::pool_full);
    EXPECT_EQ(file->grow(~0ULL).error().code(), errc::pool_full);
    while (file->grow(4096)) {}
    EXPECT_EQ(file->size_bytes(), 2_MiB) << "the last extent takes what is left";
    EXPECT_EQ(file->grow(1).error().code(), errc::pool_full);
    file.reset();
    EXPECT_EQ(std::filesystem::file_size(path), 2_MiB);
    EXPECT_NE(open_good(), nullptr);
}

TEST_F(PoolFile, ExtentTableHasAnEnd) {
    auto file = open_good();
    ASSERT_TRUE(file->mark_open().ok());
    file.reset();
    // 127 one-chunk extents after the first, as a long series of growths on a full disk makes them.
    edit_header(path, [](pool_header& h) {
        h.extents[0].size_bytes = 4096;
        for (std::uint32_t i = 1; i < extents_max; ++i)
            h.extents[i] = {.offset_bytes = h.extents[i - 1].offset_bytes + 4096,
                            .size_bytes = 4096};
        std::ranges::fill(h.laid_out_bytes, 4096);
        h.extent_count = extents_max;
    });
    std::filesystem::resize_file(path, 20480 + 128 * 4096);
    file = open_good();
    ASSERT_NE(file, nullptr);
    ASSERT_TRUE(file->mark_open().ok());
    EXPECT_EQ(file->grow(1).error().code(), errc::limit_reached);
    EXPECT_EQ(file->extents().size(), 128U);
}

TEST_F(PoolFile, CrashInTheMiddleOfGrowthLeavesALongerFileThatOpens) {
    make_pool_left_open();
    {
        std::ofstream tail(path, std::ios::binary | std::ios::app);
        tail << std::string(50000, 'x'); // worse than what a crash leaves
    }
    auto file = open_good();
    ASSERT_NE(file, nullptr);
    EXPECT_EQ(file->size_bytes(), 64_KiB);
    ASSERT_TRUE(file->mark_open().ok());
    const auto grown = file->grow(4096);
    ASSERT_TRUE(grown);
    EXPECT_EQ(grown->offset_bytes, 64_KiB);
    for (std::uint64_t i = 0; i < grown->size_bytes; ++i)
        ASSERT_EQ(file->base()[grown->offset_bytes + i], std::byte{0})
            << "an extent reads as zeros";
}

TEST_F(PoolFile, CrashBetweenTheHeaderCopiesOfAGrowthKeepsTheExtent) {
    auto file = open_good();
    ASSERT_TRUE(file->mark_open().ok());
    const std::string before = contents(path);
    ASSERT_TRUE(file->grow(4096));
    pool_file::abandon(std::move(file));
    std::string torn = contents(path);
    torn.replace(0, 4096, before, 0, 4096); // B is written first
    write_file(path, torn);
    file = open_good();
    ASSERT_NE(file, nullptr);
    EXPECT_EQ(file->extents().size(), 2U);
    EXPECT_TRUE(file->warnings().empty());
}

TEST_F(PoolFile, ReadersSeeWholeExtentsWhileThePoolGrows) {
    options.max_bytes = 64_MiB;
    auto file = open_good();
    ASSERT_TRUE(file->mark_open().ok());
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> wrong{0};
    std::thread reader([&] {
        while (!stop.load()) {
            std::uint64_t end = file->extents()[0].offset_bytes;
            for (const extent& e : file->extents()) {
                if (e.offset_bytes != end ||
                    file->base()[e.offset_bytes + e.size_bytes - 1] != std::byte{0})
                    ++wrong;
                end += e.size_bytes;
            }
        }
    });
    while (file->grow(4096)) {}
    stop.store(true);
    reader.join();
    EXPECT_EQ(wrong.load(), 0U);
    EXPECT_EQ(file->size_bytes(), 64_MiB);
}

TEST_F(PoolFile, SparseCopyIsFilledInBeforeItIsUsed) {
    options.create_bytes = 1_MiB;
    make_pool();
    const std::string bytes = contents(path);
    std::filesystem::remove(path);
    write_file(path, bytes.substr(0, 8192));
    std::filesystem::resize_file(path, bytes.size());
    auto file = open_good();
    ASSERT_NE(file, nullptr);
    ASSERT_TRUE(file->mark_open().ok());
    struct stat about{};
    ASSERT_EQ(::stat(path.c_str(), &about), 0);
    EXPECT_GE(about.st_blocks * 512, about.st_size);
}

TEST_F(PoolFile, PoolOnADiskComesBackToo) {
    const char* disk = std::getenv("TMPDIR");
    path = std::string(disk != nullptr ? disk : "/tmp") + "/hf_pool_test." +
           std::to_string(::getpid());
    std::filesystem::remove(path);
    auto file = open_good();
    ASSERT_NE(file, nullptr);
    ASSERT_TRUE(file->mark_open().ok());
    ASSERT_TRUE(file->grow(4096));
    file->base()[70000] = std::byte{9};
    file.reset();
    file = open_good();
    ASSERT_NE(file, nullptr);
    EXPECT_EQ(file->base()[70000], std::byte{9});
    file.reset();
    std::filesystem::remove(path);
}

TEST_F(PoolFile, PrefaultChangesNoByte) {
    make_pool();
    const std::string before = contents(path);
    options.prefault = true;
    open_good().reset();
    EXPECT_EQ(contents(path), before);
}

} // namespace
