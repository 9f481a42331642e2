// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a pool in mode power finds its own log and no other, whatever its names are, and leaves nothing behind when
// it cannot be made. Method: pools on tmpfs, copied, linked, and left open.
#include <pool/test_support.hpp>

#include <cstring>
#include <filesystem>

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

// What a kill leaves between the pool's last write and the end of its log.
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

} // namespace
