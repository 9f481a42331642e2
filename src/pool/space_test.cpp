// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a full or read-only file system gives a clear error, never SIGBUS, and leaves a usable
// pool. Method: mount small file systems in a mount namespace of our own, which needs root or user
// namespaces. HOLDFAST_SKIP_MOUNT_TESTS=1 skips these tests without either.
#include <pool/test_support.hpp>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace {
std::function<void()> while_it_refuses; // called each time
}

extern "C" {
int __real_fallocate(int, int, off_t, off_t);
// NOLINTNEXTLINE(bugprone-reserved-identifier): the linker's name
int __wrap_fallocate(int fd, int mode, off_t at, off_t bytes) {
    const int done = __real_fallocate(fd, mode, at, bytes);
    const int error = errno;
    if (done != 0 && while_it_refuses) while_it_refuses();
    errno = error;
    return done;
}
}

namespace {

using namespace hf;
using namespace hf::test;

class PoolSpace : public PoolFile {
protected:
    void SetUp() override {
        PoolFile::SetUp();
        if (std::getenv("HOLDFAST_SKIP_MOUNT_TESTS") != nullptr)
            GTEST_SKIP() << "HOLDFAST_SKIP_MOUNT_TESTS is set";
        const int namespaces = CLONE_NEWNS | (::geteuid() == 0 ? 0 : CLONE_NEWUSER);
        ASSERT_EQ(::unshare(namespaces), 0) << "no mount namespace: " << std::strerror(errno)
                                            << "; run as root, or set HOLDFAST_SKIP_MOUNT_TESTS=1";
        // Fails in a chroot, whose root is no mount point; TearDown unmounts in any case.
        (void)::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
        ASSERT_EQ(::mount("none", directory.c_str(), "tmpfs", 0, "size=8m"), 0)
            << "cannot mount: " << std::strerror(errno)
            << "; set HOLDFAST_SKIP_MOUNT_TESTS=1 to skip";
    }
    void TearDown() override {
        (void)::umount2(directory.c_str(), MNT_DETACH);
        PoolFile::TearDown();
    }
};

TEST_F(PoolSpace, CreationWithoutSpaceIsRefusedAndLeavesNoFile) {
    options.create_bytes = 9_MiB;
    const std::string said = expect_refused(path, options, errc::pool_full);
    EXPECT_NE(said.find("No space left"), std::string::npos) << said;
    EXPECT_EQ(fingerprint(path), "missing");
    options.create_bytes = 4_MiB;
    EXPECT_NE(open_good(), nullptr) << "the space was given back";
}

TEST_F(PoolSpace, GrowthWithoutSpaceIsRefusedAndThePoolStaysUsable) {
    options.create_bytes = 4_MiB;
    auto file = open_good();
    ASSERT_NE(file, nullptr);
    ASSERT_TRUE(file->mark_open().ok());
    const std::string said = file->grow(5_MiB).error().what();
    EXPECT_NE(said.find("No space left"), std::string::npos) << said;
    EXPECT_EQ(std::filesystem::file_size(path), 4_MiB);
    EXPECT_EQ(file->size_bytes(), 4_MiB);
    // The pool stays usable to its last byte: nothing in it is a hole.
    const auto fill = [&](const extent& e) {
        std::memset(file->base() + e.offset_bytes, 0x11, e.size_bytes);
    };
    fill(file->extents()[0]);
    ASSERT_TRUE(file->grow(1_MiB)) << "a request that fits is met";
    fill(file->extents()[1]);
    while (file->grow(64_KiB)) {}
    const std::uint64_t grown_to = file->size_bytes();
    EXPECT_GT(grown_to, 7_MiB) << "when an eighth does not fit, what was asked for is tried";
    for (const extent& e : file->extents()) fill(e);
    EXPECT_EQ(file->grow(64_KiB).error().code(), errc::pool_full);
    file.reset();
    EXPECT_EQ(std::filesystem::file_size(path), grown_to);
    file = open_good();
    ASSERT_NE(file, nullptr) << "a full disk does not keep a pool from opening";
    EXPECT_TRUE(file->was_clean());
    EXPECT_TRUE(file->mark_open().ok());
}

/// ext4 answers each refusal after a write of its journal, and a full server would wait for two
/// with each item.
TEST_F(PoolSpace, FullDiskIsNotAskedAgainBeforeItHasMoreSpace) {
    options.create_bytes = 4_MiB;
    const std::string ballast = directory + "/ballast";
    write_file(ballast, std::string(3_MiB, 'x'));
    auto file = open_good();
    ASSERT_NE(file, nullptr);
    ASSERT_TRUE(file->mark_open().ok());
    const auto now = [] { return std::chrono::steady_clock::now(); };
    auto refused = now();
    while (file->grow(64_KiB)) refused = now();
    const auto last_changed = [&] { // which any attempt does, by cutting the file back
        struct stat about{};
        EXPECT_EQ(::stat(path.c_str(), &about), 0);
        return std::pair(about.st_ctim.tv_sec, about.st_ctim.tv_nsec);
    };
    const auto before = last_changed();
    for (const auto until = now() + std::chrono::milliseconds(30); now() < until;)
        EXPECT_EQ(file->grow(64_KiB).error().code(), errc::pool_full);
    if (const auto after = last_changed();
        now() - refused < std::chrono::seconds(1)) { // then it is asked again
        EXPECT_EQ(after, before);
    }
    std::filesystem::remove(ballast);
    EXPECT_TRUE(file->grow(64_KiB)) << "there is space again";
}

/// A disk with a journal takes its time to refuse.
TEST_F(PoolSpace, SpaceThatComesBackWhileTheDiskRefusesIsSeen) {
    options.create_bytes = 4_MiB;
    const std::string ballast = directory + "/ballast";
    auto file = open_good();
    ASSERT_NE(file, nullptr);
    ASSERT_TRUE(file->mark_open().ok());
    write_file(ballast, std::string(3_MiB, 'x'));
    unsigned refused = 0; // a little more first, then what is needed
    while_it_refuses = [&] {
        if (++refused == 2) std::filesystem::remove(ballast);
    };
    EXPECT_EQ(file->grow(3_MiB).error().code(), errc::pool_full);
    while_it_refuses = nullptr;
    EXPECT_FALSE(std::filesystem::exists(ballast));
    EXPECT_TRUE(file->grow(3_MiB)) << "there is space now";
}

TEST_F(PoolSpace, SparseCopyThatDoesNotFitIsRefusedBeforeItIsWritten) {
    options.create_bytes = 4_MiB;
    make_pool();
    const std::string bytes = contents(path);
    const std::string copy = directory + "/copy.hf";
    write_file(copy, bytes.substr(0, 8192));
    std::filesystem::resize_file(copy, bytes.size());
    write_file(directory + "/ballast", std::string(3_MiB, 'x'));
    const std::string before = fingerprint(copy);
    auto file = pool_file::open(copy, options);
    ASSERT_TRUE(file) << file.error().what();
    EXPECT_EQ((*file)->mark_open().code(), errc::pool_full);
    (*file).reset();
    EXPECT_EQ(fingerprint(copy), before);
}

/// A log as large as a pool of that size would like to have does not fit any more.
TEST_F(PoolSpace, PoolThatHasGrownOverTheDiskOpensInModePowerAgain) {
    options.create_bytes = 1_MiB;
    options.mode = mode::power;
    auto file = open_good();
    ASSERT_NE(file, nullptr);
    ASSERT_TRUE(file->mark_open().ok());
    while (file->grow(64_KiB)) {}
    ASSERT_GT(file->size_bytes(), 6_MiB);
    const std::uint64_t end = file->size_bytes();
    for (unsigned n = 1; n < 4; ++n) {
        file.reset(); // closed, and its log gone
        file = open_good();
        ASSERT_NE(file, nullptr);
        const status opened = file->mark_open();
        ASSERT_TRUE(opened.ok()) << opened.what();
        std::memset(file->base() + end - 2_MiB, static_cast<int>(n), 2_MiB); // more than a batch
        file->medium().flush(file->base() + end - 2_MiB, 2_MiB);
        file->medium().fence();
        EXPECT_EQ(file->size_bytes(), end);
    }
    file.reset();
    EXPECT_EQ(contents(path).substr(end - 2_MiB, 2_MiB), std::string(2_MiB, 3));
}

/// A file system that is neither tmpfs nor on persistent memory, whatever the machine has.
TEST_F(PoolSpace, PmemModeOnAnOrdinaryFileSystemIsRefusedAndCreatesNothing) {
    ASSERT_EQ(::mount("none", directory.c_str(), "ramfs", 0, nullptr), 0) << std::strerror(errno);
    options.mode = mode::pmem;
    expect_refused(path, options, errc::mode_unavailable);
    EXPECT_EQ(fingerprint(path), "missing");
    EXPECT_EQ(::umount2(directory.c_str(), MNT_DETACH), 0);
}

TEST_F(PoolSpace, ReadOnlyFileSystemIsRefused) {
    make_pool();
    ASSERT_EQ(::mount(nullptr, directory.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr), 0);
    expect_refused(path, options, errc::permission);
    path = directory + "/new.hf";
    expect_refused(path, options, errc::permission);
}

/// On a file system of its own, in a file: loop devices are root's.
class PoolOnDisk : public PoolFile {
protected:
    void TearDown() override {
        (void)::umount2(disk().c_str(), MNT_DETACH);
        PoolFile::TearDown();
    }
    std::string disk() const { return directory + "/disk"; }
    /// False where this machine does not let us.
    bool mounted(const std::string& kind) {
        if (::geteuid() != 0 || ::unshare(CLONE_NEWNS) != 0) return false;
        (void)::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
        path = disk() + "/pool.hf";
        const std::string image = directory + "/image";
        return std::system(("mkdir " + disk() + " && truncate -s 400M " + image + " && mkfs." +
                            kind + " -q " + image + " >/dev/null 2>&1 && mount -o loop " + image +
                            " " + disk() + " 2>/dev/null")
                               .c_str()) == 0;
    }
    /// Takes all space that anybody can have; gives 'left' of it back.
    void fill_disk(std::uint64_t left) const {
        const std::string hog = disk() + "/hog";
        const int fd = ::open(hog.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        const std::string block(1_MiB, 'x');
        for (std::size_t bytes = block.size(); bytes >= 4096; bytes /= 4)
            while (::write(fd, block.data(), bytes) == static_cast<ssize_t>(bytes)) {}
        ::fsync(fd);
        struct stat about{};
        ::fstat(fd, &about);
        if (left != 0) (void)!::ftruncate(fd, about.st_size - static_cast<off_t>(left));
        ::fsync(fd);
        ::close(fd);
    }
    /// Blocks that nothing was written to are not shared.
    void make_written_pool() {
        options.create_bytes = 16_MiB;
        auto file = open_good();
        ASSERT_NE(file, nullptr);
        ASSERT_TRUE(file->mark_open().ok());
        const extent heap = file->extents()[0];
        std::memset(file->base() + heap.offset_bytes, 0x11, heap.size_bytes);
    }
    void share_blocks() const {
        ASSERT_EQ(
            std::system(
                ("sync; cp --reflink=always " + path + " " + disk() + "/backup.hf; sync").c_str()),
            0);
    }
};

TEST_F(PoolOnDisk, SharedBlocksAreTheFilesOwnBeforeItIsStoredTo) {
    if (!mounted("xfs")) GTEST_SKIP() << "no XFS can be mounted here";
    make_written_pool();
    share_blocks();
    const std::string backup = contents(disk() + "/backup.hf");
    EXPECT_TRUE(in_child([&] { // a store that finds no space is SIGBUS
        auto file = open_good();
        if (file == nullptr || !file->mark_open().ok() || !file->warnings().empty()) return false;
        fill_disk(0);
        std::memset(file->base() + file->extents()[0].offset_bytes, 0x22,
                    file->extents()[0].size_bytes);
        return true;
    }));
    EXPECT_TRUE(backup == contents(disk() + "/backup.hf")) << "the copy stays as it is";
}

TEST_F(PoolOnDisk, SharedBlocksThatTheDiskHasNoRoomForAreRefused) {
    if (!mounted("xfs")) GTEST_SKIP() << "no XFS can be mounted here";
    make_written_pool();
    share_blocks();
    fill_disk(1_MiB);
    {
        auto file = open_good();
        ASSERT_NE(file, nullptr) << "until it is to be stored to";
        const status refused = file->mark_open();
        EXPECT_EQ(name(refused.code()), "pool_full") << refused.what();
        EXPECT_NE(refused.what().find("a reflink"), std::string::npos) << refused.what();
        pool_file::abandon(std::move(file));
    }
    std::filesystem::remove(disk() + "/hog");
    ::sync(); // XFS gives back later
    auto file = open_good();
    ASSERT_NE(file, nullptr);
    EXPECT_TRUE(file->was_clean()) << "a refusal leaves it as it was";
    const status marked = file->mark_open();
    EXPECT_TRUE(marked.ok()) << marked.what();
}

TEST_F(PoolOnDisk, AFileSystemThatWritesElsewhereIsSaid) {
    if (!mounted("btrfs")) GTEST_SKIP() << "no btrfs can be mounted here";
    for (int twice = 0; twice < 2; ++twice) {
        auto file = open_good();
        ASSERT_NE(file, nullptr);
        ASSERT_EQ(file->warnings().size(), 1U);
        EXPECT_NE(file->warnings()[0].find("on btrfs"), std::string::npos) << file->warnings()[0];
    }
    options.read_only = true;
    EXPECT_TRUE(open_good()->warnings().empty()) << "which stores nothing";
}

} // namespace
