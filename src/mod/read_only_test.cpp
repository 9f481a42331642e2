// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a MOD pool that is opened read_only shows what was committed, refuses changes and writes
// nothing to its file. Method: pools that were closed, and that a kill left open, with snapshots
// and updates under way; the file's bytes before and after.
#include <mod/test_support.hpp>
#include <pool/test_support.hpp>

#include <holdfast/mod/map.hpp>

#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace hf;
using namespace hf::literals;
using numbers = mod::map<std::uint64_t, std::uint64_t>;

constexpr std::uint64_t count = 300;

class ModReadOnly : public mod::test::PoolTest {
protected:
    /// Fills a map, and erases half of it; killed: does not close the pool.
    void make_pool(bool killed) {
        in.make_new(GetParam());
        in.close();
        const pid_t child = ::fork();
        if (child == 0) {
            {
                in.open();
                auto all = in.get<numbers>();
                for (std::uint64_t i = 0; i < count; ++i) (void)all.insert_or_assign(i, i * i);
                const auto kept = all.snapshot();
                for (std::uint64_t i = 0; i < count; i += 2) (void)all.erase(i);
                if (killed) ::kill(::getpid(), SIGKILL);
            }
            in.close();
            ::_exit(0);
        }
        int how = 0;
        ASSERT_EQ(::waitpid(child, &how, 0), child);
        ASSERT_TRUE(killed ? WIFSIGNALED(how) : how == 0) << how;
    }
    void expect_whole() {
        auto all = in.get<numbers>();
        EXPECT_EQ(all.size(), count / 2);
        for (std::uint64_t i = 0; i < count; ++i) {
            const auto found = all.get(i);
            ASSERT_EQ(found != nullptr, i % 2 == 1) << i;
            if (found != nullptr) {
                EXPECT_EQ(*found, i * i);
            }
        }
    }
    void expect_unchangeable() {
        auto all = in.get<numbers>();
        const auto added = all.insert_or_assign(7, 1);
        ASSERT_FALSE(added);
        EXPECT_EQ(name(added.error().code()), "permission");
        EXPECT_FALSE(all.erase(7));
        auto other =
            numbers::open(in.pool(), {"another"}); // it does not exist: an empty one, in memory
        ASSERT_TRUE(other);
        EXPECT_EQ(other->size(), 0U);
        EXPECT_FALSE(other->insert_or_assign(7, 1));
    }
};

TEST_P(ModReadOnly, ShowsWhatWasCommittedAndChangesNothing) {
    for (const bool killed : {false, true}) {
        ASSERT_NO_FATAL_FAILURE(make_pool(killed));
        const std::string before = hf::test::fingerprint(in.path());
        in.how.read_only = true;
        for (int twice = 0; twice < 2; ++twice) {
            in.open();
            expect_whole();
            expect_unchangeable();
            EXPECT_TRUE(in.store().wait_for_trace().ok());
            EXPECT_TRUE(in.store().verify().ok());
            expect_whole();
        }
        in.close();
        EXPECT_EQ(hf::test::fingerprint(in.path()), before);
        in.how.read_only = false;
        in.open(); // as if nobody had looked
        expect_whole();
        EXPECT_TRUE(in.get<numbers>().insert_or_assign(7, 1));
    }
}

/// A process that has the pool open read-only from its start until it gets the order to leave.
class looking_process {
public:
    looking_process(mod::test::test_pool& in, const std::function<bool()>& look) {
        if (::pipe(ready_.data()) != 0 || ::pipe(leave_.data()) != 0) std::abort();
        process_ = ::fork();
        if (process_ != 0) {
            ::close(ready_[1]);
            return;
        }
        in.how.read_only = true;
        in.open();
        char told = look() ? 1 : 0;
        (void)!::write(ready_[1], &told, 1);
        (void)!::read(leave_[0], &told, 1);
        const bool again = look();
        in.close();
        ::_exit(again ? 0 : 1);
    }
    bool sees() {
        char told = 0;
        return ::read(ready_[0], &told, 1) == 1 && told == 1;
    }
    bool leaves() {
        (void)!::write(leave_[1], "", 1);
        int how = 0;
        return ::waitpid(process_, &how, 0) == process_ && how == 0;
    }

private:
    std::array<int, 2> ready_{}, leave_{};
    pid_t process_ = 0;
};

TEST_P(ModReadOnly, IsReadByManyProcessesAtOnce) {
    for (const bool killed : {false, true}) {
        ASSERT_NO_FATAL_FAILURE(make_pool(killed));
        const std::string before = hf::test::fingerprint(in.path());
        const auto look = [this] {
            auto all = in.get<numbers>();
            return all.size() == count / 2 && *all.get(7) == 49;
        };
        {
            std::array<std::unique_ptr<looking_process>, 3> readers;
            for (auto& each : readers) each = std::make_unique<looking_process>(in, look);
            for (auto& each : readers) EXPECT_TRUE(each->sees());
            const auto writes = hf::pool::open(in.path(), in.how);
            ASSERT_FALSE(writes);
            EXPECT_EQ(name(writes.error().code()), "in_use") << writes.error().what();
            for (auto& each : readers) EXPECT_TRUE(each->leaves());
        }
        EXPECT_EQ(hf::test::fingerprint(in.path()), before);
        in.open(); // a writer lets nobody read
        looking_process late(in, look);
        EXPECT_FALSE(late.sees());
        EXPECT_FALSE(late.leaves());
        in.close();
    }
}

INSTANTIATE_TEST_SUITE_P(Modes, ModReadOnly, testing::ValuesIn(mod::test::both_modes),
                         mod::test::mode_name);

} // namespace
