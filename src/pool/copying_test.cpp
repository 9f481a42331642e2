// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a copy of a pool in use is the pool of one moment: it opens and is whole. It has what was
// acknowledged before the copy was asked for, and nothing that came after it was made. If the owner
// or the copier is killed meanwhile, no half copy is left and the other one goes on.
//
// Method: a process pushes to a list as fast as it can and counts in shared memory. It is copied
// from outside (copy_pool_file), or copies itself beside its pushing threads (pool::copy_to). Each
// copy is opened, as after a crash, and the whole list is checked. HOLDFAST_COPIES=200 makes as
// many copies of each kind, and prints how long the owner stood still.
#include <open/pool_impl.hpp>
#include <pool/copying.hpp>
#include <pool/test_support.hpp>
#include <section/list_sections.hpp>

#include <holdfast/clobber.hpp>
#include <holdfast/copy.hpp>
#include <holdfast/undo.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <random>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>

namespace {

using namespace hf;
using namespace hf::list_sections;

unsigned copies_wanted() {
    const char* const text = std::getenv("HOLDFAST_COPIES");
    return text != nullptr ? static_cast<unsigned>(std::atoi(text)) : 6;
}

constexpr std::uint64_t pushes_max = 300'000;
constexpr unsigned copies_of_one = 10; // then the owner begins with a new pool, so that it is busy

/// A push, and some time outside of sections.
void push_next(bool clobber, list* l, std::atomic<std::uint64_t>& pushed) {
    push(clobber, l, l->count + 1);
    pushed = l->count;
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(5);
    while (std::chrono::steady_clock::now() < until) {}
}

struct shared_words {
    std::atomic<std::uint64_t> pushed; // acknowledged
    std::atomic<std::uint64_t> before, after;
    std::atomic<bool> ready, failed;
};

class Copying : public ::testing::Test {
protected:
    void SetUp() override {
        std::string pattern = "/dev/shm/hf_copying_test.XXXXXX";
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        directory = pattern;
        path = directory + "/pool.hf";
        void* const at = ::mmap(nullptr, sizeof(shared_words), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(at, MAP_FAILED);
        words = ::new (at) shared_words{};
    }
    void TearDown() override {
        end_owner();
        ::munmap(words, sizeof(shared_words));
        std::filesystem::remove_all(directory);
    }
    static open_options options(hf::mode mode) {
        open_options o;
        o.layout = "copying/1";
        o.create_bytes = 4_MiB; // grows while it is copied
        o.max_bytes = 256_MiB;
        o.mode = mode;
        o.engines = {clobber::engine(), undo::engine()};
        o.expert.seal = false;
        return o;
    }
    /// Starts a process that pushes until it is killed, or there are 'most'.
    void start_owner(bool clobber, hf::mode mode) {
        words->ready = false;
        owner = ::fork();
        if (owner != 0) {
            while (!words->ready && !words->failed) ::usleep(100);
            ASSERT_FALSE(words->failed);
            return;
        }
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        auto opened = pool::open(path, options(mode));
        list* const l = opened ? opened->root<list>() : nullptr;
        if (l == nullptr) {
            words->failed = true;
            ::_exit(1);
        }
        push_next(clobber, l, words->pushed);
        words->ready = true;
        while (l->count < pushes_max) push_next(clobber, l, words->pushed);
        for (;;) ::pause();
    }
    void end_owner() {
        if (owner <= 0) return;
        ::kill(owner, SIGKILL);
        ::waitpid(owner, nullptr, 0);
        owner = 0;
    }
    /// Opens a copy as the next process would, and judges it.
    void expect_whole(const std::string& copy, hf::mode mode, std::uint64_t least,
                      std::uint64_t most) {
        auto opened = pool::open(copy, options(mode));
        ASSERT_TRUE(opened) << opened.error().what();
        list* const l = opened->root<list>();
        ASSERT_NE(l, nullptr);
        const std::uint64_t count = l->count;
        EXPECT_GE(count, least) << "acknowledged before the copy was begun";
        EXPECT_LE(count, most) << "pushed after it was made";
        EXPECT_EQ(fault(*opened, count), nullptr);
    }
    static bool exists(const std::string& file) { return ::access(file.c_str(), F_OK) == 0; }

    std::string directory, path;
    shared_words* words = nullptr;
    pid_t owner = 0;
};

void say_pauses(const char* what, std::vector<double> pauses) {
    std::ranges::sort(pauses);
    const auto at = [&](double part) {
        return pauses[static_cast<std::size_t>(part * static_cast<double>(pauses.size() - 1))];
    };
    std::printf(
        "%s: %zu copies, the owner stood still %.2f ms (median), %.2f ms (p99), %.2f ms (most)\n",
        what, pauses.size(), at(0.5), at(0.99), pauses.back());
}

TEST_F(Copying, FromOutsideIsThePoolOfOneMoment) {
    std::vector<double> pauses;
    for (const bool clobber : {true, false}) {
        for (unsigned i = 0; i < copies_wanted(); ++i) {
            if (i % copies_of_one == 0) {
                end_owner();
                std::filesystem::remove(path);
                words->pushed = 0;
                start_owner(clobber, clobber ? mode::process : mode::pmem);
            }
            const std::string copy = directory + "/copy.hf";
            std::filesystem::remove(copy);
            const std::uint64_t before = words->pushed;
            const auto made = copy_pool_file(path, copy, {});
            const std::uint64_t after =
                words->pushed + 1; // one may be in the list that is not said yet
            ASSERT_TRUE(made) << made.error().what();
            EXPECT_TRUE(made->in_use);
            pauses.push_back(made->pause_ms);
            expect_whole(copy, clobber ? mode::process : mode::pmem, before, after);
            EXPECT_EQ(::kill(owner, 0), 0);
        }
        end_owner();
    }
    say_pauses("from outside", pauses);
}

TEST_F(Copying, LeavesTheOwnerRunning) {
    start_owner(true, mode::process);
    const auto made = copy_pool_file(path, directory + "/copy.hf", {});
    ASSERT_TRUE(made) << made.error().what();
    const std::uint64_t then = words->pushed;
    while (words->pushed == then) ::usleep(100); // would never end
}

TEST_F(Copying, BesideItsOwnThreadsIsThePoolOfOneMoment) {
    const unsigned groups = (copies_wanted() + copies_of_one - 1) / copies_of_one;
    const unsigned wanted = std::min(copies_wanted(), copies_of_one);
    for (unsigned group = 0; group < 2 * groups; ++group) {
        const bool clobber = group % 2 == 0;
        std::filesystem::remove(path);
        words->pushed = 0;
        const pid_t child = ::fork();
        if (child == 0) {
            std::vector<double> pauses;
            auto opened = pool::open(path, options(mode::process));
            if (!opened) ::_exit(1);
            list* const l = opened->root<list>();
            std::atomic<bool> stop = false;
            std::thread pushing([&] {
                while (!stop && l->count < pushes_max) push_next(clobber, l, words->pushed);
            });
            bool all = true;
            for (unsigned i = 0; i < wanted; ++i) {
                const std::string copy = directory + "/" + std::to_string(i) + ".hf";
                const std::uint64_t before = words->pushed;
                const auto made = opened->copy_to(copy);
                const std::uint64_t after = words->pushed + 1;
                if (!made) std::fprintf(stderr, "%s\n", made.error().what().c_str());
                all = all && made;
                if (!made) break;
                pauses.push_back(made->pause_ms);
                std::ofstream(copy + ".range") << before << ' ' << after;
            }
            stop = true;
            pushing.join();
            if (all) say_pauses("by itself", pauses);
            std::fflush(nullptr);
            ::_exit(all ? 0 : 1);
        }
        int how = 0;
        ASSERT_EQ(::waitpid(child, &how, 0), child);
        ASSERT_TRUE(WIFEXITED(how) && WEXITSTATUS(how) == 0) << how;
        for (unsigned i = 0; i < wanted; ++i) {
            const std::string copy = directory + "/" + std::to_string(i) + ".hf";
            std::uint64_t before = 0, after = 0;
            std::ifstream(copy + ".range") >> before >> after;
            expect_whole(copy, mode::process, before, after);
            std::filesystem::remove(copy);
        }
    }
}

TEST_F(Copying, OfAPoolWhoseOwnerIsKilledMeanwhileIsWholeOrNone) {
    std::mt19937 random(1);
    for (unsigned i = 0; i < copies_wanted(); ++i) {
        const std::string copy = directory + "/copy.hf";
        std::filesystem::remove(copy);
        std::filesystem::remove(path);
        words->pushed = 0;
        start_owner(i % 2 == 0, mode::process);
        const std::uint64_t before = words->pushed;
        std::thread killing([this, wait_us = static_cast<unsigned>(random() % 20'000)] {
            ::usleep(wait_us);
            ::kill(owner, SIGKILL);
        });
        const auto made = copy_pool_file(path, copy, {});
        killing.join();
        end_owner();
        EXPECT_TRUE(made) << made.error().what();
        EXPECT_EQ(static_cast<bool>(made), exists(copy));
        if (made) expect_whole(copy, mode::process, before, words->pushed + 1);
    }
}

TEST_F(Copying, ThatIsKilledLeavesNoHalfCopyAndTheOwnerRunning) {
    std::mt19937 random(2);
    start_owner(true, mode::process);
    // Killed at any moment of what a copy takes here, and sometimes after it.
    const auto begun = std::chrono::steady_clock::now();
    ASSERT_TRUE(copy_pool_file(path, directory + "/first.hf", {}));
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begun;
    const auto latest_us = static_cast<unsigned>(2 * took.count()) + 1;
    unsigned whole = 0;
    for (unsigned i = 0; i < 2 * copies_wanted(); ++i) {
        const std::string copy = directory + "/" + std::to_string(i) + ".hf";
        const std::uint64_t before = words->pushed;
        const pid_t copier = ::fork();
        if (copier == 0) ::_exit(copy_pool_file(path, copy, {}) ? 0 : 1);
        ::usleep(static_cast<unsigned>(random() % latest_us));
        ::kill(copier, SIGKILL);
        ::waitpid(copier, nullptr, 0);
        const std::uint64_t then = words->pushed;
        while (words->pushed == then && words->pushed < pushes_max) ::usleep(100);
        if (!exists(copy)) continue;
        ++whole;
        expect_whole(copy, mode::process, before, words->pushed + 1);
        std::filesystem::remove(copy);
    }
    std::printf("%u of %u copiers came to an end\n", whole, 2 * copies_wanted());
}

TEST_F(Copying, IsNoLessAPoolAfterAnotherStartOfTheMachine) {
    start_owner(true, mode::process);
    const std::string copy = directory + "/copy.hf", again = directory + "/again.hf";
    ASSERT_TRUE(copy_pool_file(path, copy, {}));
    end_owner();
    const auto other_boot = [](const std::string& file) {
        for (const auto at : {header_a_offset, header_b_offset}) {
            std::fstream f(file, std::ios::in | std::ios::out | std::ios::binary);
            pool_header h{};
            f.seekg(static_cast<std::streamoff>(at)).read(reinterpret_cast<char*>(&h), sizeof h);
            std::strcpy(h.boot_id, "00000000-1111-2222-3333-444444444444");
            h.checksum = header_checksum(h);
            f.seekp(static_cast<std::streamoff>(at))
                .write(reinterpret_cast<const char*>(&h), sizeof h);
        }
    };
    other_boot(copy);
    std::filesystem::copy_file(copy, again); // another inode
    expect_whole(again, mode::process, 1, words->pushed + 1);
    // A copy that was opened, and left open, is in doubt like any other pool.
    {
        auto opened = pool::open(copy, options(mode::process));
        ASSERT_TRUE(opened) << opened.error().what();
        pool::impl::abandon(std::move(*opened));
    }
    other_boot(copy);
    const auto refused = pool::open(copy, options(mode::process));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), errc::torn) << refused.error().what();
    // A copy of a pool in doubt is in doubt, too.
    ASSERT_TRUE(copy_pool_file(copy, directory + "/third.hf", {}));
    const auto third = pool::open(directory + "/third.hf", options(mode::process));
    ASSERT_FALSE(third);
    EXPECT_EQ(third.error().code(), errc::torn) << third.error().what();
}

TEST_F(Copying, OfAClosedPoolIsItsBytes) {
    {
        auto opened = pool::open(path, [] {
            auto o = options(mode::process);
            o.expert.seal = true;
            return o;
        }());
        ASSERT_TRUE(opened) << opened.error().what();
        push(true, opened->root<list>(), 1);
    }
    const std::string copy = directory + "/copy.hf";
    const auto made = copy_pool_file(path, copy, {});
    ASSERT_TRUE(made) << made.error().what();
    EXPECT_FALSE(made->in_use);
    EXPECT_EQ(hf::test::contents(copy), hf::test::contents(path));
    const auto refused = copy_pool_file(path, copy, {});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), errc::exists);
}

TEST_F(Copying, IsRefusedForWhatIsNoPool) {
    hf::test::write_file(path, "no pool");
    EXPECT_EQ(copy_pool_file(path, directory + "/copy.hf", {}).error().code(), errc::not_a_pool);
    EXPECT_EQ(copy_pool_file(directory, directory + "/copy.hf", {}).error().code(),
              errc::not_a_pool);
    EXPECT_EQ(copy_pool_file(directory + "/none", directory + "/copy.hf", {}).error().code(),
              errc::not_found);
    EXPECT_FALSE(exists(directory + "/copy.hf"));
}

TEST_F(Copying, IsRefusedWhilePartOfThePoolIsInALog) {
    auto opened = pool::open(path, options(mode::power));
    ASSERT_TRUE(opened) << opened.error().what();
    const auto own = opened->copy_to(directory + "/copy.hf");
    ASSERT_FALSE(own);
    EXPECT_EQ(own.error().code(), errc::mode_unavailable) << own.error().what();
    const auto beside = copy_pool_file(path, directory + "/copy.hf", {});
    ASSERT_FALSE(beside);
    EXPECT_EQ(beside.error().code(), errc::mode_unavailable) << beside.error().what();
    EXPECT_FALSE(exists(directory + "/copy.hf"));
}

TEST_F(Copying, ThatIsNotApprovedLeavesNothing) {
    start_owner(true, mode::process);
    const auto made = copy_pool_file(path, directory + "/copy.hf", {}, [](const os_file&) {
        return status{errc::corrupt, "not this one"};
    });
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code(), errc::corrupt);
    unsigned files = 0;
    for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator(directory))
        ++files;
    EXPECT_EQ(files, 1U);
}

} // namespace
