// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: pools that processes of one user have made can all be open in one process, whatever happens
// to the register of addresses. Method: processes make pools at the same time, and this one opens
// all of them together; registers are lost, damaged, full, and not to be had. Without a register
// each of these tests would see several pools that collide.
#include <pool/address_book.hpp>
#include <pool/test_support.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <memory>
#include <string>
#include <sys/file.h>
#include <sys/resource.h>
#include <vector>

namespace {

using namespace hf;
using namespace hf::test;

class AddressBook : public PoolFile {
protected:
    void SetUp() override {
        PoolFile::SetUp();
        book = directory + "/register";
        ::setenv("HOLDFAST_ADDRESSES", book.c_str(), 1);
        rlimit files{};
        ::getrlimit(RLIMIT_NOFILE, &files);
        files.rlim_cur = files.rlim_max;
        ::setrlimit(RLIMIT_NOFILE, &files);
    }
    void TearDown() override {
        ::unsetenv("HOLDFAST_ADDRESSES");
        PoolFile::TearDown();
    }

    std::string pool(unsigned n) const { return fmt::format("{}/{}.hf", directory, n); }
    std::string in_folder(unsigned n) const {
        std::filesystem::create_directories(fmt::format("{}/{}", directory, n));
        return fmt::format("{}/{}/data", directory, n);
    }
    std::string lines() const { return contents(book + "/addresses"); }

    /// Makes the pools in so many processes, which run at the same time.
    void make(const std::vector<std::string>& paths, unsigned processes) const {
        std::vector<pid_t> children;
        for (unsigned p = 0; p < processes; ++p) {
            children.push_back(::fork());
            if (children.back() != 0) continue;
            bool good = true;
            for (std::size_t i = p; i < paths.size(); i += processes) {
                auto made = pool_file::open(paths[i], options);
                good = good && made && (*made)->mark_open().ok();
            }
            ::_exit(good ? 0 : 1);
        }
        for (const pid_t child : children) {
            int how = 0;
            ASSERT_EQ(::waitpid(child, &how, 0), child);
            ASSERT_EQ(how, 0);
        }
    }
    void expect_open_together(const std::vector<std::string>& paths) const {
        std::vector<std::unique_ptr<pool_file>> all;
        unsigned refused = 0;
        for (const std::string& each : paths) {
            auto opened = pool_file::open(each, options);
            if (opened) all.push_back(std::move(*opened));
            else if (++refused <= 3) ADD_FAILURE() << opened.error().what();
        }
        EXPECT_EQ(refused, 0U) << "of " << paths.size();
    }
    std::vector<std::string> paths(unsigned from, unsigned to) const {
        std::vector<std::string> all;
        for (unsigned n = from; n < to; ++n) all.push_back(pool(n));
        return all;
    }

    std::string book;
};

TEST_F(AddressBook, SixtyDefaultPoolsOfSixtyProcessesAreOpenTogether) {
    options.create_bytes = 0;
    std::vector<std::string> all;
    for (unsigned n = 0; n < 60; ++n) all.push_back(in_folder(n));
    make(all, 60);
    expect_open_together(all);
}

TEST_F(AddressBook, AThousandSmallPoolsOfManyProcessesAreOpenTogether) {
    options.max_bytes = 64_MiB;
    std::vector<std::string> all = paths(0, 500);
    for (unsigned n = 0; n < 500; ++n) all.push_back(in_folder(n));
    make(all, 40);
    expect_open_together(all);
}

TEST_F(AddressBook, PoolsInTheFolderAreSeenWhenTheRegisterIsLost) {
    options.max_bytes = 16_GiB;
    make(paths(0, 30), 3);
    std::filesystem::remove_all(book);
    make(paths(30, 60), 3);
    expect_open_together(paths(0, 60));
}

TEST_F(AddressBook, APoolThatIsOpenedIsKnownAgain) {
    options.max_bytes = 16_GiB;
    std::vector<std::string> all;
    for (unsigned n = 0; n < 60; ++n) all.push_back(in_folder(n));
    make({all.begin(), all.begin() + 30}, 3);
    std::filesystem::remove_all(book);
    make({all.begin(), all.begin() + 30}, 3); // opens them
    make({all.begin() + 30, all.end()}, 3);
    expect_open_together(all);
}

TEST_F(AddressBook, OpeningAddsALineOnlyWhereThePoolHasNone) {
    make_pool();
    const std::string first = lines();
    EXPECT_NE(first.find(path + "\n"), std::string::npos) << first;
    make_pool();
    EXPECT_EQ(lines(), first);
    const std::string moved = directory + "/a b%\n c.hf"; // its name needs care on a line
    std::filesystem::rename(path, moved);
    path = moved;
    make_pool();
    const std::string second = lines();
    EXPECT_NE(second.find("/a b%25%0a c.hf\n"), std::string::npos) << second;
    make_pool();
    EXPECT_EQ(lines(), second);
}

TEST_F(AddressBook, ADamagedRegisterCostsOnlyItsDamagedLines) {
    options.max_bytes = 16_GiB;
    make(paths(0, 30), 3);
    std::string damaged = "no line of a register\n";
    damaged += "570000000000 ffffffffffffffff /too/large\n570000000001 1000 /not/aligned\n";
    damaged += "5 1000 /too/low\n570000000000 10000 relative\n570000000000 100000\n";
    damaged += std::string("\0\xff\n\n \n", 6) + lines() + "570000000000 1000"; // cut short
    write_file(book + "/addresses", damaged);
    for (unsigned n = 0; n < 30; ++n) // no neighbour helps
        std::filesystem::rename(pool(n), directory + "/renamed" + std::to_string(n));
    make(paths(30, 60), 3);
    const std::string now = lines(); // each on a line of its own
    for (unsigned n = 30; n < 60; ++n) {
        const auto at = now.find(" " + pool(n) + "\n");
        ASSERT_NE(at, std::string::npos);
        const auto begin = now.rfind('\n', at) + 1;
        EXPECT_EQ(std::ranges::count(now.substr(begin, at - begin), ' '), 1) << now.substr(begin);
    }
    for (unsigned n = 0; n < 30; ++n)
        std::filesystem::rename(directory + "/renamed" + std::to_string(n), pool(n));
    expect_open_together(paths(0, 60));
}

TEST_F(AddressBook, WhereNoRegisterCanBePoolsAreMadeAndOpened) {
    write_file(directory + "/file", "");
    const std::string link = directory + "/link", open_to_all = directory + "/open";
    ASSERT_EQ(::symlink(directory.c_str(), link.c_str()), 0);
    ASSERT_EQ(::mkdir(open_to_all.c_str(), 0700), 0);
    ASSERT_EQ(::chmod(open_to_all.c_str(), 0777), 0); // anybody could lead pools together
    for (const std::string& at : {std::string(), directory + "/file", link, open_to_all,
                                  std::string("/nowhere/at/all"), std::string("/proc/self")}) {
        ::setenv("HOLDFAST_ADDRESSES", at.c_str(), 1);
        std::filesystem::remove(path);
        make_pool();
        make_pool();
        EXPECT_FALSE(std::filesystem::exists(at + "/addresses")) << at;
    }
}

/// A line for each place of the range.
TEST_F(AddressBook, AFullRegisterForgetsThePoolsThatAreGone) {
    options.max_bytes = 4_GiB;
    const std::string there = directory + "/there";
    write_file(there, "");
    std::string full;
    for (std::uint64_t at = base_low; at < base_high; at += 4_GiB)
        full += fmt::format("{:x} {:x} {}\n", at, 4_GiB,
                            at == base_low ? there : fmt::format("/nowhere/{:x}", at));
    ASSERT_EQ(::mkdir(book.c_str(), 0700), 0);
    write_file(book + "/addresses", full);
    make_pool();
    const std::string left = lines();
    EXPECT_LT(left.size(), full.size() / 8) << "the newest stay";
    EXPECT_EQ(left.find(fmt::format("{:x} {:x} {}\n", base_low, 4_GiB, there)), 0U);
    EXPECT_NE(left.find(path), std::string::npos);
    EXPECT_FALSE(std::filesystem::exists(book + "/addresses.new"));
}

TEST_F(AddressBook, WherePoolsTakeAllAddressesOneIsMadeAllTheSame) {
    options.max_bytes = 4_GiB;
    std::string full;
    for (std::uint64_t at = base_low; at < base_high; at += 512_GiB)
        full += fmt::format("{:x} {:x} {}\n", at, 512_GiB, directory + "/" + std::to_string(at));
    for (std::uint64_t at = base_low; at < base_high; at += 512_GiB)
        write_file(directory + "/" + std::to_string(at), "");
    ASSERT_EQ(::mkdir(book.c_str(), 0700), 0);
    write_file(book + "/addresses", full);
    auto made = open_good();
    ASSERT_NE(made, nullptr);
    ASSERT_EQ(made->warnings().size(), 1U);
    EXPECT_NE(made->warnings()[0].find("cannot be open in one process"), std::string::npos)
        << made->warnings()[0];
}

TEST_F(AddressBook, AProcessThatIsKilledKeepsNoLock) {
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        const address_book locked(path);
        (void)!::write(ready[1], "", 1);
        ::pause();
        ::_exit(0);
    }
    char byte = 0;
    ASSERT_EQ(::read(ready[0], &byte, 1), 1);
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    const auto before = std::chrono::steady_clock::now();
    make_pool();
    EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(5));
    EXPECT_NE(lines().find(path), std::string::npos);
    ::close(ready[0]);
    ::close(ready[1]);
}

TEST_F(AddressBook, AProcessThatKeepsTheLockIsWaitedForOnce) {
    ASSERT_EQ(::mkdir(book.c_str(), 0700), 0);
    const int held = ::open(book.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_EQ(::flock(held, LOCK_EX), 0);
    make_pool(); // waits: an ordinary holder is there for milliseconds
    path += ".second";
    const auto before = std::chrono::steady_clock::now();
    make_pool();
    EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(5));
    EXPECT_EQ(lines(), "");
    ::close(held);
    path += ".third";
    make_pool(); // the lock is free again
    EXPECT_NE(lines().find(path), std::string::npos);
}

} // namespace
