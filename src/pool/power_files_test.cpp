// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a pool in mode power finds its own log and no other, whatever its names are, and leaves
// nothing behind when it cannot be made. Method: pools on tmpfs, copied, linked, and left open.
#include <pool/test_support.hpp>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

// A disk that has lost what was written: the kernel reports it to the first caller that asks, and
// to no other.
namespace {
enum class disk : int { whole, failing, asked };
std::atomic<disk> its_disk{disk::whole};
std::atomic<bool> asked_again{false};
} // namespace

extern "C" {
int __real_fdatasync(int);
int __wrap_fdatasync(int fd) { // NOLINT(bugprone-reserved-identifier): the linker's name
    auto failing = disk::failing;
    if (!its_disk.compare_exchange_strong(failing, disk::asked)) {
        if (failing == disk::asked) asked_again = true;
        return __real_fdatasync(fd);
    }
    // It takes its time, in which another thread may ask.
    for (int ms = 0; ms < 100 && !asked_again; ++ms)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    errno = EIO;
    return -1;
}
}

namespace {

using namespace hf;
using namespace hf::test;

constexpr std::uint64_t word_at = 64 << 10;

class PowerPool : public PoolFile {
protected:
    void SetUp() override {
        PoolFile::SetUp();
        options.mode = mode::power;
        options.create_bytes = 128_KiB;
    }
    /// Leaves the pool as a crash does, with 'value' in its log.
    void leave_open(const std::string& pool, std::uint64_t value) {
        path = pool;
        auto file = open_good();
        ASSERT_NE(file, nullptr);
        ASSERT_TRUE(file->mark_open().ok());
        file->medium().store_word(reinterpret_cast<std::uint64_t*>(file->base() + word_at), value);
        file->medium().fence();
        pool_file::abandon(std::move(file));
    }
    std::uint64_t word_in(const std::string& pool) {
        path = pool;
        const auto file = open_good();
        std::uint64_t found = 0;
        if (file != nullptr) std::memcpy(&found, file->base() + word_at, sizeof found);
        return found;
    }
};

// A pool and its copy have one uuid, and may have been opened as often.
TEST_F(PowerPool, RefusesTheLogOfItsCopy) {
    make_pool();
    const std::string a = path, b = directory + "/copy.hf";
    std::filesystem::copy_file(a, b);
    leave_open(a, 1);
    leave_open(b, 2);
    const auto exchange = [&] {
        std::filesystem::rename(a + "-power", a + "-moved");
        std::filesystem::rename(b + "-power", a + "-power");
        std::filesystem::rename(a + "-moved", b + "-power");
    };
    exchange();
    for (const std::string& each : {a, b}) {
        const std::string why = expect_refused(each, options, errc::torn);
        EXPECT_NE(why.find("that of a copy of the pool, or of another open: expected salt"),
                  std::string::npos)
            << why;
    }
    exchange();
    EXPECT_EQ(word_in(a), 1U);
    EXPECT_EQ(word_in(b), 2U);
}

TEST_F(PowerPool, WritesOverNoLogThatACopyNeeds) {
    make_pool();
    const std::string a = path, b = directory + "/copy.hf";
    std::filesystem::copy_file(a, b);
    leave_open(b, 2);
    std::filesystem::rename(b + "-power", a + "-power");
    path = a;
    {
        auto file = open_good();
        ASSERT_NE(file, nullptr);
        const status s = file->mark_open();
        EXPECT_EQ(s.code(), errc::exists) << s.what();
    }
    std::filesystem::rename(a + "-power", b + "-power");
    EXPECT_EQ(word_in(b), 2U);
}

// The state after a kill between the pool's last write and the end of its log.
TEST_F(PowerPool, TakesTheLogThatItsLastCloseHasLeft) {
    leave_open(path, 4);
    std::filesystem::create_hard_link(path + "-power", directory + "/log");
    make_pool();
    EXPECT_FALSE(std::filesystem::exists(path + "-power"));
    std::filesystem::rename(directory + "/log", path + "-power");
    make_pool();
    EXPECT_FALSE(std::filesystem::exists(path + "-power"));
    EXPECT_EQ(word_in(path), 4U);
}

TEST_F(PowerPool, HasOneLogUnderAllItsNames) {
    options.follow_symlinks = true;
    std::filesystem::create_directory(directory + "/links");
    const std::string real = path, link = directory + "/links/pool.hf";
    make_pool();
    std::filesystem::create_symlink("../pool.hf", link);
    leave_open(link, 5);
    EXPECT_TRUE(std::filesystem::exists(real + "-power"));
    EXPECT_FALSE(std::filesystem::exists(link + "-power"));
    EXPECT_EQ(word_in(real), 5U);
    EXPECT_EQ(word_in(link), 5U);
    leave_open(real, 6);
    EXPECT_EQ(word_in(link), 6U);
    path = link;
    make_pool();
    EXPECT_FALSE(std::filesystem::exists(real + "-power"));
    std::filesystem::create_directory_symlink(".", directory + "/links/again");
    leave_open(directory + "/links/again/pool.hf", 7);
    EXPECT_EQ(word_in(real), 7U);
}

TEST_F(PowerPool, LeavesNothingWhereItCannotBeMade) {
    write_file(path + "-power", "not a log");
    auto file = open_good();
    ASSERT_NE(file, nullptr);
    EXPECT_EQ(file->mark_open().code(), errc::exists);
    pool_file::give_up(std::move(file));
    EXPECT_FALSE(std::filesystem::exists(path));
    EXPECT_EQ(contents(path + "-power"), "not a log");
    std::filesystem::remove(path + "-power");
    make_pool();
    const std::string before = fingerprint(path);
    write_file(path + "-power", "not a log");
    file = open_good();
    ASSERT_NE(file, nullptr);
    EXPECT_EQ(file->mark_open().code(), errc::exists);
    pool_file::give_up(std::move(file));
    EXPECT_EQ(fingerprint(path), before) << "an old pool goes nowhere";
}

TEST_F(PowerPool, ClosingRemovesNoOtherLogOfItsName) {
    const std::string log = path + "-power";
    auto file = open_good();
    ASSERT_NE(file, nullptr);
    ASSERT_TRUE(file->mark_open().ok());
    std::filesystem::rename(log, log + "-moved");
    write_file(log, "of a new pool of this name");
    file.reset();
    EXPECT_EQ(contents(log), "of a new pool of this name");
}

TEST_F(PowerPool, ClosingElsewhereRemovesItsOwnLogAlone) {
    std::filesystem::create_directory(directory + "/elsewhere");
    write_file(directory + "/elsewhere/pool.hf-power", "another pool's");
    const auto before = std::filesystem::current_path();
    std::filesystem::current_path(directory);
    path = "pool.hf";
    auto file = open_good();
    const bool marked = file != nullptr && file->mark_open().ok();
    std::filesystem::current_path(directory + "/elsewhere");
    file.reset();
    std::filesystem::current_path(before);
    EXPECT_TRUE(marked);
    EXPECT_TRUE(std::filesystem::exists(directory + "/elsewhere/pool.hf-power"));
    EXPECT_FALSE(std::filesystem::exists(directory + "/pool.hf-power"));
}

// A checkpoint's sync and a growth's, or two of the log: no thread may learn that all is well.
TEST_F(PowerPool, NoThreadIsToldOfASyncBesideOneThatFailed) {
    auto file = os_file::create_new(path);
    ASSERT_TRUE(file) << file.error().what();
    its_disk = disk::failing;
    status first, second;
    std::thread asks([&] { first = file->sync_data(); });
    while (its_disk != disk::asked) std::this_thread::yield();
    second = file->sync_data();
    asks.join();
    its_disk = disk::whole;
    EXPECT_EQ(first.code(), errc::io_error);
    EXPECT_EQ(second.code(), errc::io_error);
    EXPECT_EQ(file->sync_data().code(), errc::io_error);
    EXPECT_FALSE(asked_again);
}

} // namespace
