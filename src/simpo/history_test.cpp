// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test_support.hpp"
#include <simpo/history.hpp>

#include <holdfast/simpo/caller.hpp>
#include <holdfast/simpo/history.hpp>
#include <holdfast/simpo/swap.hpp>
#include <holdfast/simpo/table.hpp>
#include <holdfast/simpo/zstd.hpp>

#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <sys/stat.h>
#include <vector>

namespace hf::simpo::test {
namespace {

namespace fs = std::filesystem;

const object_options small_log{.log_bytes = 1024};

/// What number() is after the first 'calls' of 1, 2, … 9, 0, 1, … were appended.
std::uint64_t number_after(std::uint64_t calls) {
    std::uint64_t number = 0;
    for (std::uint64_t n = 1; n <= calls; ++n) number = number * 10 + n % 10;
    return number;
}

std::string text_of(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}
void write_text(const fs::path& file, std::string_view text) {
    std::ofstream(file, std::ios::binary) << text;
}

class HistoryTest : public PoolTest {
protected:
    void SetUp() override { in.open(); }

    object<digits> make() {
        auto made = in.make<digits>(small_log);
        keep();
        return made;
    }
    void keep(const history_options& how = {}) {
        const status s = keep_history(in.pool(), "it", how);
        ASSERT_TRUE(s.ok()) << s.what();
    }
    /// Appends the digits of numbers_after(), from the one behind 'done' on.
    static void append(object<digits> to, std::uint64_t done, std::uint64_t count) {
        for (std::uint64_t n = done + 1; n <= done + count; ++n)
            to.defer<&digits::append>(static_cast<std::uint32_t>(n % 10));
        to.sync();
    }
    std::vector<past_call> calls(const compression* packing = nullptr) {
        auto found = history(in.pool(), "it", packing);
        if (!found) ADD_FAILURE() << found.error().what();
        return found ? *found : std::vector<past_call>();
    }
    /// The history is of 'count' calls of append(), each there once, and the object can be seen
    /// after each.
    void expect_calls(std::uint64_t count) {
        const auto all = calls();
        ASSERT_EQ(all.size(), count);
        for (std::uint64_t n = 1; n <= count; ++n) {
            EXPECT_EQ(all[n - 1].number, n);
            EXPECT_EQ(all[n - 1].function, "append");
            ASSERT_EQ(all[n - 1].arguments, std::vector{std::to_string(n % 10)});
        }
        for (const std::uint64_t n : {std::uint64_t{0}, count / 2, count}) {
            const auto then = past<digits>::open(in.pool(), "it", n);
            ASSERT_TRUE(then) << then.error().what();
            EXPECT_EQ((*then)->number(), number_after(n));
            EXPECT_EQ((*then)->count(), n);
        }
        EXPECT_EQ(in.get<digits>().call<&digits::number>(), number_after(count));
    }
    fs::path folder() const { return in.path() + ".history"; }
    fs::path file() const {
        fs::path only;
        for (const auto& each : fs::directory_iterator(folder())) {
            EXPECT_TRUE(only.empty()) << only << " and " << each.path();
            only = each.path();
        }
        return only;
    }
    std::size_t files() const {
        return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder()), {}));
    }
};
INSTANTIATE_TEST_SUITE_P(Modes, HistoryTest,
                         ::testing::Values(mode::process, mode::pmem, mode::power),
                         [](const auto& which) { return std::string(name(which.param)); });

/// Its pool's file can be put back alone: in mode power the log of lines would have to go, too.
class HistoryOfAnEarlierPool : public HistoryTest {};
INSTANTIATE_TEST_SUITE_P(Modes, HistoryOfAnEarlierPool,
                         ::testing::Values(mode::process, mode::pmem),
                         [](const auto& which) { return std::string(name(which.param)); });

TEST_P(HistoryTest, KeepsEachCallOnceThroughCheckpointsClosesAndCrashes) {
    append(make(), 0, 100);
    expect_calls(100);
    in.close();
    in.open();
    expect_calls(100);
    append(in.get<digits>(), 100, 3); // in the log alone
    EXPECT_TRUE(calls().back().in_pool);
    EXPECT_FALSE(calls().front().in_pool);
    in.crash();
    expect_calls(103);
    in.crash();
    append(in.get<digits>(), 103, 47);
    in.crash();
    expect_calls(150);
}

TEST_P(HistoryTest, IsOfTheCallsBehindItsBeginning) {
    auto it = in.make<digits>(small_log);
    append(it, 0, 30);
    EXPECT_EQ(history(in.pool(), "it").error().code(), errc::not_found);
    keep();
    append(it, 30, 3);
    ASSERT_EQ(calls().size(), 3U);
    EXPECT_EQ(calls().front().arguments, std::vector<std::string>{"1"});
    EXPECT_EQ((*past<digits>::open(in.pool(), "it", 0))->number(), number_after(30));
    EXPECT_EQ((*past<digits>::open(in.pool(), "it", 2))->number(), number_after(32));
}

TEST_P(HistoryTest, HasWhatRecoveryMakesAgainInAReadOnlyPool) {
    append(make(), 0, 20);
    in.let_go();
    in.how.read_only = true;
    in.open();
    expect_calls(20);
    in.how.read_only = false;
    in.open();
    expect_calls(20);
}

// The file is synced before the pool's index: a kill between the two leaves the calls in both. A
// kill, or a lost disk cache, within the file leaves any part of it.
TEST_P(HistoryOfAnEarlierPool, IsWholeWhereverAKillCutsTheFile) {
    auto it = make();
    append(it, 0, 20);
    it.checkpoint();
    append(it, 20, 5);
    const std::string pool = text_of(in.path()), before = text_of(file());
    it.checkpoint();
    const std::string after = text_of(file());
    ASSERT_GT(after.size(), before.size());
    const fs::path where = file();
    in.let_go();
    constexpr std::size_t head = 100, step = 17; // of the piece: its head byte by byte
    for (std::size_t bytes = before.size(); bytes <= after.size();
         bytes += bytes < before.size() + head || bytes + step > after.size() ? 1 : step) {
        for (const bool as_long : {false, true}) { // zeros where the disk has nothing
            std::string cut = after.substr(0, bytes);
            if (as_long) cut.resize(after.size());
            write_text(in.path(), pool);
            write_text(where, cut);
            in.open();
            expect_calls(25);
            if (HasFailure())
                FAIL() << bytes << " of " << before.size() << " to " << after.size() << as_long;
            append(in.get<digits>(), 25, 2);
            in.crash();
            ASSERT_EQ(calls().size(), 27U) << bytes;
            in.let_go();
        }
    }
}

TEST_P(HistoryOfAnEarlierPool, ShowsACallThatBothHaveOnceToAReader) {
    auto it = make();
    append(it, 0, 20);
    it.checkpoint();
    append(it, 20, 5);
    const std::string pool = text_of(in.path());
    it.checkpoint();
    in.let_go();
    write_text(in.path(), pool);
    in.how.read_only = true; // the log stays as it is
    in.open();
    expect_calls(25);
}

TEST_P(HistoryOfAnEarlierPool, IsRefusedWithALaterFile) {
    auto it = make();
    append(it, 0, 20);
    in.close();
    const std::string pool = text_of(in.path()), kept = text_of(file());
    in.open();
    append(in.get<digits>(), 20, 20);
    in.close();
    const std::string later = text_of(in.path()), all = text_of(file());
    const fs::path where = file();

    const auto refused = [&](const std::string& of_pool, const std::string& of_file) {
        write_text(in.path(), of_pool);
        write_text(where, of_file);
        const status s = in.try_open();
        EXPECT_EQ(s.code(), errc::corrupt) << s.what();
        EXPECT_NE(s.what().find("another state"), std::string::npos) << s.what();
        EXPECT_EQ(text_of(where), of_file); // untouched
    };
    refused(later, kept);
    refused(later, all.substr(0, all.size() - 1));
    refused(pool, all);
    in.how.salvage = true;
    ASSERT_TRUE(in.try_open().ok());
    EXPECT_EQ(in.get<digits>().call<&digits::number>(), number_after(20));
    EXPECT_EQ(history(in.pool(), "it").error().code(), errc::not_found);
    EXPECT_TRUE(fs::exists(where)); // the user's
    keep();                         // and another one begins
    EXPECT_EQ(files(), 2U);
}

TEST_P(HistoryTest, RefusesWhatIsMissingForeignOrDamaged) {
    append(make(), 0, 40);
    in.close();
    const fs::path where = file();
    const std::string kept = text_of(where);
    const auto refused = [&](const char* why) {
        const status s = in.try_open();
        EXPECT_FALSE(s.ok());
        EXPECT_NE(s.what().find(why), std::string::npos) << s.what();
    };
    fs::remove(where);
    refused("is not there");
    fs::create_directory(where);
    refused("directory");
    fs::remove(where);
    write_text(where, "hello");
    refused("other bytes");
    { // another pool's object of the same number, name and class
        test_pool other;
        other.how.mode = GetParam();
        other.open();
        (void)other.make<digits>(small_log);
        ASSERT_TRUE(keep_history(other.pool(), "it").ok());
        for (const auto& each : fs::directory_iterator(other.path() + ".history"))
            write_text(where, text_of(each.path()));
        refused("of another pool");
    }
    write_text(where, kept);
    in.open();
    (void)in.make_named("other");
    ASSERT_TRUE(keep_history(in.pool(), "other").ok());
    in.close();
    std::string others;
    for (const auto& each : fs::directory_iterator(folder()))
        if (each.path() != where) others = text_of(each.path());
    write_text(where, others);
    refused("of another one");

    // Each damaged byte is noticed, at the next open or when the history is read.
    for (std::size_t at = 0; at < kept.size(); at += 97) {
        std::string bad = kept;
        bad[at] = static_cast<char>(bad[at] ^ 0x20);
        write_text(where, bad);
        if (!in.try_open().ok()) continue;
        const auto read = history(in.pool(), "it");
        EXPECT_FALSE(read) << at;
        EXPECT_EQ(read.error().code(), errc::corrupt);
        EXPECT_EQ(in.get<digits>().call<&digits::number>(), number_after(40));
        in.close();
    }
}

// The file first, then the index: what ends the process in between takes nothing.
TEST_P(HistoryTest, LosesNothingWhenItsFileCannotBeWritten) {
    append(make(), 0, 10);
    in.close();
    const fs::path where = file(), away = in.path() + "-away";
    EXPECT_DEATH(
        {
            in.open();
            append(in.get<digits>(), 10, 3); // too few for a checkpoint
            fs::rename(where, away);
            in.get<digits>().checkpoint();
        },
        "cannot be continued; its calls are in the pool yet");
    fs::rename(away, where);
    in.open();
    expect_calls(13);
}

TEST_P(HistoryTest, IsPackedAndReadAgain) {
    static const zstd packing(3);
    auto it = in.make<digits>(object_options{.log_bytes = 16384});
    keep({.packing = &packing});
    append(it, 0, 2000);
    expect_calls(2000);
    const auto packed = fs::file_size(file());
    EXPECT_LT(packed, 2000U * 20);
    in.crash(); // continued without it
    append(in.get<digits>(), 2000, 10);
    const auto read = history(in.pool(), "it");
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code(), errc::bad_argument);
    EXPECT_NE(read.error().what().find("expected compression zstd, found none"), std::string::npos)
        << read.error().what();
    EXPECT_EQ(calls(&packing).size(), 2010U);
    keep({.packing = &packing});
    expect_calls(2010);
}

TEST_P(HistoryTest, IsInTheFolderThatTheUserNames) {
    const std::string slow = in.path() + "-slow";
    auto it = in.make<digits>(small_log);
    keep({.folder = slow});
    append(it, 0, 50);
    EXPECT_EQ(fs::read_symlink(folder()), fs::path(slow));
    in.crash(); // needs no name
    append(in.get<digits>(), 50, 50);
    expect_calls(100);
    keep({.folder = slow});
    const status s = keep_history(in.pool(), "it", {.folder = in.path() + "-other"});
    EXPECT_EQ(s.code(), errc::exists) << s.what();
    fs::remove(in.path() + "-other");
    EXPECT_EQ(keep_history(in.pool(), "it", {.folder = "/nowhere/at/all"}).code(), errc::io_error);
}

TEST_P(HistoryTest, IsNotThatOfAnotherPoolInTheSameFolder) {
    const std::string slow = in.path() + "-shared";
    auto it = in.make<digits>(small_log);
    keep({.folder = slow});
    append(it, 0, 50);
    {
        test_pool other;
        other.how = in.how;
        other.open();
        auto its = other.make<digits>(small_log);
        ASSERT_TRUE(keep_history(other.pool(), "it", {.folder = slow}).ok());
        append(its, 0, 20);
    }
    in.crash();
    expect_calls(50);
    EXPECT_EQ(files(), 2U);
}

TEST_P(HistoryTest, IsFoundThoughTheProcessGoesElsewhere) {
    in.close();
    const fs::path before = fs::current_path();
    fs::current_path(fs::path(in.path()).parent_path());
    {
        auto opened = pool::open(fs::path(in.path()).filename(), in.how);
        fs::current_path("/");
        ASSERT_TRUE(opened) << opened.error().what();
        auto it = object<digits>::create(*opened, "it", small_log);
        ASSERT_TRUE(it) << it.error().what();
        ASSERT_TRUE(keep_history(*opened, "it").ok());
        append(*it, 0, 50);
        EXPECT_EQ(history(*opened, "it")->size(), 50U);
    }
    fs::current_path(before);
    in.open();
    expect_calls(50);
}

TEST_P(HistoryTest, EndsWithTheObject) {
    (void)make();
    EXPECT_EQ(files(), 1U);
    ASSERT_TRUE(object<digits>::destroy(in.pool(), "it").ok());
    EXPECT_EQ(files(), 0U);
    auto it = make();
    append(it, 0, 30);
    ASSERT_TRUE(end_history(in.pool(), "it").ok());
    EXPECT_EQ(files(), 0U);
    EXPECT_EQ(end_history(in.pool(), "it").code(), errc::not_found);
    append(it, 30, 30);
    keep();
    EXPECT_TRUE(calls().empty());
    EXPECT_EQ((*past<digits>::open(in.pool(), "it", 0))->number(), number_after(60));
    in.crash();
    EXPECT_TRUE(calls().empty());
}

TEST_P(HistoryTest, GoesWithAnObjectThatIsSwappedOut) {
    auto it = make();
    const std::string swapped = in.path() + "-swapped";
    ASSERT_TRUE(swap_to(in.pool(), swapped).ok());
    std::uint64_t done = 0;
    for (int round = 0; round < 3; ++round) {
        append(it, done, 25);
        done += 25;
        ASSERT_TRUE(swap_out(in.pool(), "it").ok());
        EXPECT_EQ(calls().size(), done);
        if (round == 1) {
            in.crash();
            ASSERT_TRUE(swap_to(in.pool(), swapped).ok());
            it = in.get<digits>();
        }
        expect_calls(done);                          // it comes back
        ASSERT_TRUE(swap_out(in.pool(), "it").ok()); // unchanged
    }
    in.crash();
    ASSERT_TRUE(swap_to(in.pool(), swapped).ok());
    expect_calls(done);
}

TEST_P(HistoryTest, HasCallersAndTheirCalls) {
    (void)in.make<digits>(object_options{.log_bytes = 1024, .callers = 2});
    keep();
    auto me = *caller<digits>::of(in.get<digits>(), 77);
    for (std::uint64_t n = 1; n <= 40; ++n)
        ASSERT_TRUE(me.call<&digits::append_and_get>(n, static_cast<std::uint32_t>(n % 10)));
    in.crash();
    const auto all = calls();
    ASSERT_EQ(all.size(), 40U);
    EXPECT_EQ(all[30].caller, 77U);
    EXPECT_EQ(all[30].operation, 31U);
    EXPECT_EQ(all[30].function, "append_and_get");
    EXPECT_FALSE(all[30].deferred);
    EXPECT_EQ((*past<digits>::open(in.pool(), "it", 40))->number(), number_after(40));
}

TEST_P(HistoryTest, RefusesToGoBackToNoCall) {
    append(make(), 0, 5);
    const auto then = past<digits>::open(in.pool(), "it", 6);
    ASSERT_FALSE(then);
    EXPECT_EQ(then.error().code(), errc::bad_argument);
    EXPECT_NE(then.error().what().find("0 to 5"), std::string::npos) << then.error().what();
    EXPECT_EQ(past<digits>::open(in.pool(), "none", 0).error().code(), errc::not_found);
}

struct many_kinds {
    static constexpr class_name simpo_class{"many kinds", 1};
    enum class colour : std::uint8_t { red = 7 };
    struct pair {
        std::uint16_t a, b;
    };
    void take(bool, std::int8_t, double, colour, pair, std::array<std::uint8_t, 100>) noexcept {}
    void nothing() noexcept {}
    int unused = 0;
};

TEST(HistoryText, ShowsArguments) {
    test_pool in;
    in.open();
    auto it = in.make<many_kinds>();
    ASSERT_TRUE(keep_history(in.pool(), "it").ok());
    it.defer<&many_kinds::take>(true, std::int8_t{-3}, 2.5, many_kinds::colour::red,
                                many_kinds::pair{0x0102, 0x0304}, std::array<std::uint8_t, 100>{9});
    it.defer<&many_kinds::nothing>();
    it.checkpoint();
    const auto all = *history(in.pool(), "it");
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[0].arguments, (std::vector<std::string>{"true", "-3", "2.5", "7", "0x02010403",
                                                          "0x09" + std::string(62, '0') + "…"}));
    EXPECT_TRUE(all[1].arguments.empty());
    EXPECT_EQ(all[1].function, "nothing");
}

} // namespace
} // namespace hf::simpo::test
