// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: what happens to a pool's file from outside is noticed, and what a machine lacks is done
// without. Method: pools copied, moved and exchanged while they are open; creators that race; a
// process with few addresses; identifiers of the machine's start that are a container's.
#include <pool/boot_id.hpp>
#include <pool/file_checks.hpp>
#include <pool/test_support.hpp>

#include <holdfast/log.hpp>

#include <algorithm>
#include <cerrno>
#include <sys/resource.h>
#include <unistd.h>
#include <utility>

namespace {

using namespace hf;
using namespace hf::test;

class Machine : public PoolFile {
protected:
    std::string other() const { return directory + "/other.hf"; }
    void copy() {
        std::filesystem::copy_file(path, other(),
                                   std::filesystem::copy_options::overwrite_existing);
    }
};

TEST_F(Machine, ACopyOfAPoolInUseIsRefusedAndSalvaged) {
    for (const mode m : {mode::process, mode::pmem}) {
        options.mode = m;
        options.salvage = false;
        {
            auto file = open_good();
            ASSERT_TRUE(file->mark_open().ok());
            copy();
        }
        const std::string said = expect_refused(other(), options, errc::torn);
        EXPECT_NE(said.find("a copy of a pool in use"), said.npos) << said;
        EXPECT_NE(said.find("open with salvage"), said.npos) << said;
        options.salvage = true;
        {
            auto salvaged = pool_file::open(other(), options);
            ASSERT_TRUE(salvaged) << salvaged.error().what();
            EXPECT_TRUE(std::ranges::any_of((*salvaged)->warnings(), [](const std::string& line) {
                return line.find("salvaged: a copy") != line.npos;
            }));
            ASSERT_TRUE((*salvaged)->mark_open().ok());
            pool_file::abandon(std::move(*salvaged));
        }
        options.salvage = false;
        EXPECT_TRUE(pool_file::open(other(), options)) << "it is at home here now";
    }
}

TEST_F(Machine, ACopyOfAClosedPoolAndAPoolThatMovesOpen) {
    make_pool();
    copy();
    EXPECT_TRUE(pool_file::open(other(), options));
    make_pool_left_open();
    std::filesystem::rename(path, other());
    EXPECT_TRUE(pool_file::open(other(), options));
    std::filesystem::create_hard_link(other(), path);
    EXPECT_TRUE(pool_file::open(path, options));
}

/// Lines of the log.
std::string told;
void remember(void*, severity, const char* line) noexcept { told += line; }

TEST_F(Machine, AFileThatLosesItsNameIsSaidAtGrowthAndAtClose) {
    const std::string here = std::filesystem::current_path().string();
    set_log(remember, nullptr);
    for (const char* what : {"removed", "renamed", "another file", "nothing"}) {
        std::filesystem::remove(path), std::filesystem::remove(other());
        std::filesystem::current_path(directory);
        const std::string full = std::exchange(path, "pool.hf");
        auto file = open_good();
        path = full;
        std::filesystem::current_path(here); // the name is still the one of then
        ASSERT_NE(file, nullptr);
        ASSERT_TRUE(file->mark_open().ok());
        EXPECT_EQ(file->misplaced(), "");
        const std::string which = what;
        if (which == "removed") std::filesystem::remove(path);
        if (which == "renamed") std::filesystem::rename(path, other());
        if (which == "another file") std::filesystem::remove(path), write_file(path, "new");
        const bool lost = which != "nothing";
        EXPECT_EQ(file->misplaced().find(what) != std::string::npos, lost) << file->misplaced();
        told.clear();
        ASSERT_TRUE(file->grow(64_KiB)) << "it goes on";
        ASSERT_TRUE(file->grow(64_KiB));
        EXPECT_EQ(told.find("it grows: its file was") != std::string::npos, lost) << told;
        EXPECT_EQ(told.find("it grows"), told.rfind("it grows")) << "once: " << told;
        told.clear();
        file.reset();
        EXPECT_EQ(told.find("being closed: its file was") != std::string::npos, lost) << told;
    }
    set_log(nullptr, nullptr);
}

TEST_F(Machine, FilesOfOneInodeNumberDifferByTheirBirth) {
    const file_identity one{12, 1'000}, later{12, 2'000}, old_kernel{12, 0}, another{13, 1'000};
    EXPECT_TRUE(one.may_be(one));
    EXPECT_FALSE(one.may_be(later)) << "a backup restored under the number of the file removed";
    EXPECT_TRUE(one.may_be(old_kernel));
    EXPECT_FALSE(one.may_be(another));
    EXPECT_TRUE(one.may_be({})) << "left open by a build that did not note it, or in memory";
}

TEST_F(Machine, RacingCreatorsMakeOnePool) {
    for (int round = 0; round < 20; ++round) {
        std::filesystem::remove(path);
        options.creation = round % 2 == 0 ? create::if_missing : create::always_new;
        std::vector<pid_t> children;
        for (int i = 0; i < 4; ++i) {
            children.push_back(::fork());
            if (children.back() != 0) continue;
            const auto opened = pool_file::open(path, options);
            const errc expected =
                options.creation == create::if_missing ? errc::in_use : errc::exists;
            ::_exit(opened ? 0 : opened.error().code() == expected ? 1 : 2);
        }
        int made = 0;
        for (const pid_t child : children) {
            int how = 0;
            ::waitpid(child, &how, 0);
            EXPECT_TRUE(WIFEXITED(how) && WEXITSTATUS(how) < 2);
            made += WIFEXITED(how) && WEXITSTATUS(how) == 0;
        }
        EXPECT_GE(made, 1);
        if (options.creation == create::always_new) {
            EXPECT_EQ(made, 1);
        }
        options.creation = create::never;
        EXPECT_NE(open_good(), nullptr);
        std::size_t names = 0;
        for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory))
            ++names;
        EXPECT_EQ(names, 1U);
    }
}

TEST_F(Machine, AProcessWithFewAddressesOpensAndGrows) {
    options.create_bytes = 16_MiB; // may grow to 1 GiB
    make_pool();
    EXPECT_TRUE(in_child([&] {
        std::ifstream pages("/proc/self/statm");
        std::uint64_t used = 0;
        pages >> used;
        const rlimit few{used * 4096 + 128_MiB, RLIM_INFINITY};
        if (::setrlimit(RLIMIT_AS, &few) != 0) return false;
        auto file = open_good();
        if (file == nullptr || file->warnings().size() != 1 || !file->mark_open().ok())
            return false;
        const auto first = file->grow(1_MiB), second = file->grow(4_MiB);
        if (!first || !second) return false;
        file->base()[second->offset_bytes + second->size_bytes - 1] = std::byte{7};
        const auto too_much = file->grow(256_MiB);
        if (too_much || too_much.error().code() != errc::pool_full) return false;
        options.creation = create::always_new;
        path = other();
        return open_good() != nullptr && !HasFailure();
    }));
    EXPECT_NE(open_good(), nullptr);
}

TEST_F(Machine, APoolIsNoStandardStreamOfAProcessWithoutThem) {
    make_pool();
    EXPECT_TRUE(in_child([&] {
        for (const std::string& each : {path, other()}) { // one that is there, and a new one
            for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(fd);
            path = each;
            const auto file = open_good();
            if (file == nullptr) return false;
            for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
                if (::write(fd, "x", 1) != -1 || errno != EBADF) return false;
        }
        return !HasFailure();
    }));
}

TEST_F(Machine, FewerLanesThanAskedForAreSaid) {
    options.max_threads = 32;
    const auto file = open_good();
    ASSERT_EQ(file->warnings().size(), 1U);
    EXPECT_NE(file->warnings()[0].find("expected room for 32 log lanes, found room for 2"),
              std::string::npos)
        << file->warnings()[0];
}

/// The header of a pool that was left open on a machine with the identifier 'id'.
pool_header left_open_at(const boot_identifier& id, std::uint64_t started_ns) {
    pool_header h{};
    std::memcpy(h.boot_id, id.id.data(), id.id.size());
    h.machine_start_ns = started_ns;
    return h;
}

constexpr std::uint64_t started = 1'795'847'396'922'968'402;

TEST(MachineStart, IsTheKernelsIdentifierWhereverThereIsOne) {
    const boot_identifier one{"c0ffee00-1111-2222-3333-444444444444", true},
        other{"c0ffee01-1111-2222-3333-444444444444", true};
    EXPECT_TRUE(same_boot(left_open_at(one, 0), one, started));
    EXPECT_FALSE(same_boot(left_open_at(one, 0), other, started));
    EXPECT_FALSE(same_boot(left_open_at(one, 0), {}, started)) << "/proc is not there";
    EXPECT_FALSE(same_boot(left_open_at({}, 0), {}, started)) << "nothing is known of it";
}

TEST(MachineStart, IsTheMomentOfItWhereAContainerHasAnotherIdentifier) {
    const boot_identifier one{"c0ffee00-1111-2222-3333-444444444444", false},
        other{"c0ffee01-1111-2222-3333-444444444444", false};
    EXPECT_TRUE(same_boot(left_open_at(one, started), other, started));
    EXPECT_TRUE(same_boot(left_open_at(one, started), other, started + 40'000))
        << "the clocks are not read at one moment";
    EXPECT_TRUE(same_boot(left_open_at({}, started), {}, started)) << "without /proc";
    // Two starts from one time that a disk has kept differ by as much as two starts take.
    for (const std::int64_t later : {-1'000'000, 1'000'000, 2'000'000'000})
        EXPECT_FALSE(same_boot(left_open_at(one, started), other,
                               started + static_cast<std::uint64_t>(later)));
    EXPECT_FALSE(same_boot(left_open_at(one, started), other, 0)) << "the clock is not set";
    EXPECT_FALSE(same_boot(left_open_at(one, 0), other, started));
    EXPECT_TRUE(same_boot(left_open_at(one, started), one, 0)) << "the identifier is the same";
}

TEST(MachineStart, IsReadTheSameAgain) {
    const std::uint64_t first = machine_start_ns();
    for (int i = 0; i < 100; ++i) {
        const std::uint64_t again = machine_start_ns();
        EXPECT_LE(std::max(first, again) - std::min(first, again), start_differs_ns_max);
    }
}

} // namespace
