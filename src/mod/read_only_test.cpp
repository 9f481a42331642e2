// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a MOD pool that is opened read_only shows what was committed, lets nobody change it and
// writes nothing to its file. Method: pools that were closed, and that a kill left open, with
// snapshots and updates under way; the file's bytes before and after.
#include <holdfast/mod/map.hpp>
#include <holdfast/mod/store.hpp>

#include <gtest/gtest.h>
#include <pool/test_support.hpp>

#include <csignal>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace hf;
using namespace hf::literals;
using numbers = mod::map<std::uint64_t, std::uint64_t>;

constexpr std::uint64_t count = 300;

class ModReadOnly : public testing::TestWithParam<mode> {
protected:
    void SetUp() override {
        how_.layout = "mod read-only test";
        how_.create_bytes = 1_MiB;
        how_.mode = GetParam();
        how_.engines = {mod::engine()};
    }
    void TearDown() override { ::unlink(path_.c_str()); }

    /// Fills a map, and erases half of it; killed: does not close the pool.
    void make_pool(bool killed) {
        ::unlink(path_.c_str());
        const pid_t child = ::fork();
        if (child == 0) {
            {
                auto p = pool::open(path_, how_);
                if (!p) ::_exit(1);
                auto all = *numbers::open(*p, {"all"});
                for (std::uint64_t i = 0; i < count; ++i) (void)all.insert_or_assign(i, i * i);
                const auto kept = all.snapshot();
                for (std::uint64_t i = 0; i < count; i += 2) (void)all.erase(i);
                if (killed) ::kill(::getpid(), SIGKILL);
            }
            ::_exit(0);
        }
        int how = 0;
        ASSERT_EQ(::waitpid(child, &how, 0), child);
        ASSERT_TRUE(killed ? WIFSIGNALED(how) : how == 0) << how;
    }
    static void expect_whole(pool& p) {
        auto all = numbers::open(p, {"all"});
        ASSERT_TRUE(all) << all.error().what();
        EXPECT_EQ(all->size(), count / 2);
        for (std::uint64_t i = 0; i < count; ++i) {
            const auto found = all->get(i);
            ASSERT_EQ(found != nullptr, i % 2 == 1) << i;
            if (found != nullptr) {
                EXPECT_EQ(*found, i * i);
            }
        }
    }
    static void expect_unchangeable(pool& p) {
        auto all = *numbers::open(p, {"all"});
        const auto added = all.insert_or_assign(7, 1);
        ASSERT_FALSE(added);
        EXPECT_EQ(name(added.error().code()), "permission");
        EXPECT_FALSE(all.erase(7));
        auto other = numbers::open(p, {"another"}); // there is none: an empty one, in memory
        ASSERT_TRUE(other);
        EXPECT_EQ(other->size(), 0U);
        EXPECT_FALSE(other->insert_or_assign(7, 1));
    }

    const std::string path_ = "/dev/shm/hf_mod_read_only." + std::to_string(::getpid());
    open_options how_;
};

TEST_P(ModReadOnly, ShowsWhatWasCommittedAndChangesNothing) {
    for (const bool killed : {false, true}) {
        ASSERT_NO_FATAL_FAILURE(make_pool(killed));
        const std::string before = hf::test::fingerprint(path_);
        open_options look = how_;
        look.read_only = true;
        for (int twice = 0; twice < 2; ++twice) {
            auto p = pool::open(path_, look);
            ASSERT_TRUE(p) << p.error().what();
            expect_whole(*p);
            expect_unchangeable(*p);
            EXPECT_TRUE(mod::store::of(*p).wait_for_trace().ok());
            EXPECT_TRUE(mod::store::of(*p).verify().ok());
            expect_whole(*p);
        }
        EXPECT_EQ(hf::test::fingerprint(path_), before);
        auto p = pool::open(path_, how_); // as if nobody had looked
        ASSERT_TRUE(p) << p.error().what();
        expect_whole(*p);
        EXPECT_TRUE((*numbers::open(*p, {"all"})).insert_or_assign(7, 1));
    }
}

INSTANTIATE_TEST_SUITE_P(Modes, ModReadOnly, testing::Values(mode::process, mode::pmem),
                         [](const auto& of) {
                             return of.param == mode::process ? "process" : "pmem";
                         });

} // namespace
