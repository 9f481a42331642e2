// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: space that trim() gives back is on no disk. It stays so over closing, kills and opening,
// and no contents are lost. Space that is needed again is allocated before it is stored to, and a
// full disk is a full pool, never SIGBUS.
// Method: blocks the file really has (st_blocks); a tmpfs that is filled; kills; readers beside.
#include <mod/test_support.hpp>
#include <pool/test_support.hpp>

#include <holdfast/copy.hpp>
#include <holdfast/mod/map.hpp>

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <sched.h>
#include <string>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace hf;
using namespace hf::literals;
using texts = mod::map<std::uint64_t, std::string>;

std::string text(std::uint64_t n) { return std::string(3000, static_cast<char>('a' + n % 26)); }

std::uint64_t on_disk(const std::string& path) {
    struct stat about{};
    return ::stat(path.c_str(), &about) == 0 ? static_cast<std::uint64_t>(about.st_blocks) * 512
                                             : 0;
}

std::string said(const status& s) { return std::string(name(s.code())); }

void fill(texts& all, std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t n = from; n < to; ++n) ASSERT_TRUE(all.insert_or_assign(n, text(n)));
}
bool holds(const texts& all, std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t n = from; n < to; ++n) {
        const auto found = all.get(n);
        if (!found || *found != text(n)) return false;
    }
    return all.size() == to - from;
}

/// In a child, whose namespace goes with it: there the directory is a disk of so many bytes.
template <class Body>
void on_small_disk(const std::string& directory, const char* size, const Body& body) {
    EXPECT_TRUE(hf::test::in_child([&] {
        const int namespaces = CLONE_NEWNS | (::geteuid() == 0 ? 0 : CLONE_NEWUSER);
        if (::unshare(namespaces) != 0) return false;
        (void)::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
        if (::mount("none", directory.c_str(), "tmpfs", 0, size) != 0) return false;
        body();
        return !testing::Test::HasFailure();
    })) << "or no mount namespace: set HOLDFAST_SKIP_MOUNT_TESTS=1";
}

/// To the last page.
void fill_disk(const std::string& ballast) {
    const std::string page(4096, 'x');
    std::FILE* const out = std::fopen(ballast.c_str(), "w");
    while (std::fwrite(page.data(), 1, page.size(), out) == page.size() && std::fflush(out) == 0) {}
    std::fclose(out);
}

class Trim : public mod::test::PoolTest {
protected:
    void make(std::uint64_t chunked = 32_MiB) {
        in.how.create_bytes = chunked;
        in.make_new(GetParam());
    }
};

TEST_P(Trim, GivesBackWhatIsFreeAndKeepsItSo) {
    for (const std::uint64_t bytes : {8_MiB, 32_MiB}) { // chunks of 4 KiB, of 64 KiB
        make(bytes);
        auto all = in.get<texts>();
        fill(all, 0, 12'000);
        const std::uint64_t full = on_disk(in.path());
        EXPECT_GT(full, 36_MiB);
        for (std::uint64_t n = 40; n < 12'000; ++n) ASSERT_TRUE(all.erase(n));
        const auto given = in.pool().trim();
        ASSERT_TRUE(given) << given.error().what();
        EXPECT_GT(*given, full / 2);
        const std::uint64_t least = on_disk(in.path());
        EXPECT_LT(least, full / 5);
        EXPECT_GE(std::filesystem::file_size(in.path()), full / 2) << "the file keeps its length";
        EXPECT_EQ(hf::test::read_header(in.path(), 0).optional_features & feature_holes,
                  feature_holes);
        EXPECT_TRUE(holds(all, 0, 40));
        EXPECT_TRUE(in.store().verify().ok());
        const auto again = in.pool().trim();
        ASSERT_TRUE(again) << again.error().what();
        EXPECT_LT(*again, 1_MiB) << "what is given back is not given back twice";
        for (const bool killed : {false, true}) {
            if (killed) in.crash_and_open();
            else in.open();
            EXPECT_LT(on_disk(in.path()), least + 2_MiB) << killed;
            EXPECT_TRUE(holds(in.get<texts>(), 0, 40));
            EXPECT_TRUE(in.store().verify().ok());
        }
        // And it serves again.
        auto more = in.get<texts>();
        const std::uint64_t size = in.pool().size_bytes();
        fill(more, 40, 12'000);
        EXPECT_TRUE(holds(more, 0, 12'000));
        EXPECT_LE(in.pool().size_bytes(), size + size / 4)
            << "holes are filled before the file grows";
        EXPECT_GT(on_disk(in.path()), 36_MiB);
        in.open();
        EXPECT_TRUE(holds(in.get<texts>(), 0, 12'000));
    }
}

/// Blocks larger than any hole: of several that lie together, with what was free between them.
TEST_P(Trim, LargeBlocksTakeNeighbouringHoles) {
    make();
    allocator& blocks = in.pool().internals().blocks;
    thread_cache none;
    std::vector<block> taken;
    for (;;) {
        const block b = blocks.reserve(none, 1_MiB);
        if (b.offset == 0 || b.offset + b.bytes > 28_MiB) break;
        taken.push_back(b);
    }
    ASSERT_GT(taken.size(), 20U);
    const std::uint64_t size = in.pool().size_bytes();
    for (std::size_t i = 2; i < 12; i += 2) blocks.release(none, taken[i]);
    // That there may be holes is noted once.
    EXPECT_EQ(mod::test::points_of([&] { EXPECT_TRUE(in.pool().trim()); }), 2U);
    EXPECT_EQ(mod::test::points_of([&] { EXPECT_TRUE(in.pool().trim()); }), 0U);
    for (std::size_t i = 3; i < 12; i += 2) blocks.release(none, taken[i]);
    const block large = blocks.reserve(none, 9_MiB);
    ASSERT_NE(large.offset, 0U);
    EXPECT_EQ(large.offset, taken[2].offset) << "holes and free chunks by turns";
    EXPECT_EQ(in.pool().size_bytes(), size);
    std::memset(in.pool().internals().at(large.offset), 0x5a, large.bytes);
    EXPECT_GT(on_disk(in.path()), 25_MiB);
    blocks.release(none, large);
}

TEST_P(Trim, IsRefusedWhereItCannotBe) {
    make();
    const std::string directory = std::filesystem::path(in.path()).parent_path();
    EXPECT_TRUE(hf::test::in_child([&] { return said(in.pool().trim().error()) == "in_use"; }));
    in.close();
    open_options reading = in.how;
    reading.creation = create::never;
    reading.read_only = true;
    {
        auto pool = hf::pool::open(in.path(), reading);
        ASSERT_TRUE(pool);
        EXPECT_EQ(said(pool->trim().error()), "permission");
    }
    open_options power = in.how;
    power.mode = mode::power;
    auto pool = hf::pool::open(in.path(), power);
    ASSERT_TRUE(pool) << pool.error().what();
    EXPECT_EQ(said(pool->trim().error()), "mode_unavailable");
}

/// A trimmed pool has all of its space again before mode power, or salvage, has it.
TEST_P(Trim, ModePowerTakesAllSpaceBack) {
    make();
    {
        auto all = in.get<texts>();
        fill(all, 0, 50);
        ASSERT_TRUE(in.pool().trim());
    }
    const std::uint64_t size = in.pool().size_bytes();
    in.close();
    EXPECT_LT(on_disk(in.path()), size / 2);
    open_options power = in.how;
    power.mode = mode::power;
    auto pool = hf::pool::open(in.path(), power);
    ASSERT_TRUE(pool) << pool.error().what();
    EXPECT_GE(on_disk(in.path()), size);
    EXPECT_EQ(hf::test::read_header(in.path(), 0).optional_features & feature_holes, 0U);
    EXPECT_TRUE(holds(*texts::open(*pool, {"it"}), 0, 50));
}

TEST_P(Trim, AReaderBesideKeepsWhatItReads) {
    in.how.shared = true;
    make();
    auto all = in.get<texts>();
    fill(all, 0, 2000);
    int told[2], asked[2];
    ASSERT_EQ(::pipe(told), 0);
    ASSERT_EQ(::pipe(asked), 0);
    const pid_t reader = ::fork();
    if (reader == 0) {
        open_options reading = in.how;
        reading.creation = create::never;
        reading.read_only = true;
        auto pool = hf::pool::open(in.path(), reading);
        if (!pool) ::_exit(2);
        const auto kept = texts::open(*pool, {"it"})->snapshot();
        char go = 'g';
        if (::write(told[1], &go, 1) != 1 || ::read(asked[0], &go, 1) != 1) ::_exit(3);
        for (std::uint64_t n = 0; n < 2000; ++n) {
            const auto found = kept.get(n);
            if (!found || *found != text(n)) ::_exit(4);
        }
        ::_exit(kept.size() == 2000 ? 0 : 5);
    }
    char go = 0;
    ASSERT_EQ(::read(told[0], &go, 1), 1);
    ASSERT_TRUE(all.clear().ok());
    const auto given = in.pool().trim();
    ASSERT_TRUE(given) << given.error().what();
    ASSERT_EQ(::write(asked[1], &go, 1), 1);
    int how = 0;
    ASSERT_EQ(::waitpid(reader, &how, 0), reader);
    EXPECT_EQ(how, 0);
    const std::uint64_t before = on_disk(in.path());
    ASSERT_TRUE(in.pool().trim());
    EXPECT_LT(on_disk(in.path()), before) << "what it read is given back when it is gone";
    for (const int fd : {told[0], told[1], asked[0], asked[1]}) ::close(fd);
    in.how.shared = false;
}

TEST_P(Trim, KilledAnywhereLeavesAPool) {
    make(8_MiB);
    {
        auto all = in.get<texts>();
        fill(all, 0, 300);
    }
    in.close();
    for (unsigned trial = 0; trial < 25; ++trial) {
        const pid_t child = ::fork();
        if (child == 0) {
            in.open();
            auto other = in.get<texts>({"other"});
            for (;;) {
                for (std::uint64_t n = 0; n < 500; ++n) (void)other.insert_or_assign(n, text(n));
                (void)other.clear();
                if (!in.pool().trim()) ::_exit(1);
            }
        }
        ::usleep(4000 + trial * 900);
        ::kill(child, SIGKILL);
        int how = 0;
        ASSERT_EQ(::waitpid(child, &how, 0), child);
        ASSERT_TRUE(WIFSIGNALED(how)) << how;
        in.open();
        ASSERT_TRUE(in.store().wait_for_trace().ok());
        const status sound = in.store().verify();
        ASSERT_TRUE(sound.ok()) << sound.what();
        ASSERT_TRUE(holds(in.get<texts>(), 0, 300)) << trial;
        auto other = in.get<texts>({"other"});
        for (std::uint64_t n = 0; n < 500; ++n) {
            const auto found = other.get(n);
            if (found) {
                ASSERT_EQ(*found, text(n));
            }
        }
        in.close();
    }
}

/// The disk is full when space that was given back is wanted.
TEST_P(Trim, AFullDiskIsAFullPool) {
    if (std::getenv("HOLDFAST_SKIP_MOUNT_TESTS") != nullptr)
        GTEST_SKIP() << "HOLDFAST_SKIP_MOUNT_TESTS is set";
    in.close();
    const std::string directory = std::filesystem::path(in.path()).parent_path();
    on_small_disk(directory, "size=24m", [&] {
        for (const bool reopened : {false, true}) {
            in.how.create_bytes = 16_MiB;
            in.make_new(GetParam());
            auto all = in.get<texts>();
            fill(all, 0, 3000);
            for (std::uint64_t n = 100; n < 3000; ++n) EXPECT_TRUE(all.erase(n));
            EXPECT_TRUE(in.pool().trim());
            if (reopened) in.open();
            auto now = in.get<texts>();
            fill_disk(directory + "/ballast");
            std::uint64_t next = 100;
            status full;
            for (; full.ok() && next < 5000; ++next) {
                const auto done = now.insert_or_assign(next, text(next));
                if (!done) full = done.error();
            }
            EXPECT_EQ(said(full), "pool_full") << full.what();
            EXPECT_TRUE(holds(now, 0, next - 1));
            // Freed space can be used, on a full disk, too.
            for (std::uint64_t n = 0; n < 60; ++n) (void)now.erase(n);
            std::filesystem::remove(directory + "/ballast");
            for (std::uint64_t n = next - 1; n < 3000; ++n)
                EXPECT_TRUE(now.insert_or_assign(n, text(n))) << n;
            EXPECT_TRUE(in.store().verify().ok());
            in.close();
        }
    });
}

/// However many holes there are, a full disk is asked a few times for each block that it has no
/// room for.
TEST_P(Trim, AFullDiskSaysSoSoon) {
    if (std::getenv("HOLDFAST_SKIP_MOUNT_TESTS") != nullptr)
        GTEST_SKIP() << "HOLDFAST_SKIP_MOUNT_TESTS is set";
    in.close();
    const std::string directory = std::filesystem::path(in.path()).parent_path();
    on_small_disk(directory, "size=280m", [&] {
        in.how.create_bytes = in.how.max_bytes = 256_MiB;
        in.make_new(GetParam());
        allocator& blocks = in.pool().internals().blocks;
        thread_cache none;
        const std::uint64_t chunk = in.pool().internals().file->shape().chunk_bytes;
        std::vector<block> taken;
        for (block b = blocks.reserve(none, chunk); b.offset != 0; b = blocks.reserve(none, chunk))
            taken.push_back(b);
        ASSERT_GT(taken.size(), 3000U);
        for (std::size_t i = 0; i < taken.size(); i += 2) blocks.release(none, taken[i]);
        ASSERT_TRUE(in.pool().trim());
        fill_disk(directory + "/ballast");
        const auto start = std::chrono::steady_clock::now();
        for (unsigned n = 0; n < 20; ++n) EXPECT_EQ(blocks.reserve(none, chunk).offset, 0U);
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        EXPECT_LT(took.count(), 5.0) << "milliseconds, or a second for each"; // of 20
        std::filesystem::remove(directory + "/ballast");
        EXPECT_NE(blocks.reserve(none, chunk).offset, 0U);
        in.close();
    });
}

/// A copy reads no hole: if reading gave the hole space, a full disk would have none.
TEST_P(Trim, ACopyLeavesHolesAsTheyAre) {
    if (std::getenv("HOLDFAST_SKIP_MOUNT_TESTS") != nullptr)
        GTEST_SKIP() << "HOLDFAST_SKIP_MOUNT_TESTS is set";
    in.close();
    const std::string directory = std::filesystem::path(in.path()).parent_path();
    on_small_disk(directory, "size=24m", [&] {
        const std::string other = directory + "/other", copy = other + "/copy.hf";
        std::filesystem::create_directory(other);
        ASSERT_EQ(::mount("none", other.c_str(), "tmpfs", 0, "size=24m"), 0);
        in.how.create_bytes = 16_MiB;
        in.make_new(GetParam());
        auto all = in.get<texts>();
        fill(all, 0, 3000);
        for (std::uint64_t n = 100; n < 3000; ++n) ASSERT_TRUE(all.erase(n));
        ASSERT_TRUE(in.pool().trim());
        const std::uint64_t before = on_disk(in.path());
        EXPECT_LT(before, 8_MiB);
        fill_disk(directory + "/ballast");
        const auto copied = in.pool().copy_to(copy);
        ASSERT_TRUE(copied) << copied.error().what();
        EXPECT_EQ(on_disk(in.path()), before);
        in.close();
        auto pool = hf::pool::open(copy, in.how);
        ASSERT_TRUE(pool) << pool.error().what();
        EXPECT_TRUE(holds(*texts::open(*pool, {"it"}), 0, 100));
    });
}

/// The heap's tables decide which chunks get their space back: whatever they contain, nothing
/// faults.
TEST_P(Trim, OfDamagedTablesIsRefusedOrServes) {
    make(8_MiB);
    {
        auto all = in.get<texts>();
        fill(all, 0, 100);
        ASSERT_TRUE(in.pool().trim());
    }
    const extent first = in.pool().internals().file->extents()[0];
    in.close();
    const std::string good = hf::test::contents(in.path());
    std::uint64_t seed = 5;
    for (unsigned trial = 0; trial < 60; ++trial) {
        std::string bytes = good;
        for (unsigned n = 0; n < 4; ++n) {
            seed = seed * 6364136223846793005U + 1442695040888963407U;
            bytes[first.offset_bytes + (seed >> 24) % 20'000] = static_cast<char>(seed >> 9);
        }
        hf::test::write_file(in.path(), bytes);
        EXPECT_TRUE(hf::test::in_child([&] {
            auto pool = hf::pool::open(in.path(), in.how);
            if (!pool) return true;
            (void)pool->trim();
            auto all = texts::open(*pool, {"it"});
            for (std::uint64_t n = 0; all && n < 300; ++n) (void)all->insert_or_assign(n, text(n));
            return true;
        })) << trial;
    }
}

INSTANTIATE_TEST_SUITE_P(Modes, Trim, testing::ValuesIn(mod::test::both_modes),
                         mod::test::mode_name);

} // namespace
