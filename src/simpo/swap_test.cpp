// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: objects that do not all fit into their pool are all there, with every call that was made on
// them, on any thread and after any close or crash. No block and no file is lost, and damage of a
// file is reported. Method: pools with room for four of twelve objects, and a model of what each
// holds. test/attacks/kill/simpo_swap_workload.cpp has kills.
#include <simpo/test_support.hpp>
#include <simpo/view.hpp>
#include <trace/trace.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/author/blocks.hpp>
#include <holdfast/simpo/caller.hpp>
#include <holdfast/simpo/swap.hpp>
#include <holdfast/simpo/table.hpp>
#include <holdfast/simpo/view.hpp>
#include <holdfast/simpo/zstd.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace hf::simpo {
namespace {

using u64 = std::uint64_t;
namespace fs = std::filesystem;

/// 160 KB; a call changes one word.
class sheet {
public:
    static constexpr class_name simpo_class{"sheet", 1};
    void add(u64 n) noexcept {
        cells_[count_++ * 977 % cells_.size()] += n;
        sum_ += n;
    }
    u64 add_and_get(u64 n) noexcept { return add(n), count_; }
    u64 count() const noexcept { return count_; }
    u64 sum() const noexcept {
        u64 all = 0;
        for (const u64 c : cells_) all += c;
        return all == sum_ ? all : ~u64{0};
    }

private:
    std::array<u64, 20'000> cells_{};
    u64 count_ = 0, sum_ = 0;
};

constexpr unsigned sheets = 12;
std::string name_of(unsigned n) { return "sheet " + std::to_string(n); }

class SimpoSwap : public test::PoolTest {
protected:
    SimpoSwap() {
        in.how.create_bytes = 256_KiB;
        in.how.max_bytes = 2_MiB;
    }
    std::string folder() const { return fs::path(in.path()).parent_path() / "swapped"; }
    void open(const swap_options& how = {}) {
        in.open();
        const status s = swap_to(in.pool(), folder(), how);
        ASSERT_TRUE(s.ok()) << s.what();
    }
    object<sheet> make(unsigned n, const object_options& how = {.log_bytes = 4_KiB}) {
        auto made = object<sheet>::create(in.pool(), name_of(n), how);
        if (!made) fatal("%s", made.error().what().c_str());
        return *made;
    }
    object<sheet> find(unsigned n) {
        auto found = object<sheet>::find(in.pool(), name_of(n));
        if (!found) fatal("%s", found.error().what().c_str());
        return *found;
    }
    void make_all() {
        for (unsigned n = 0; n < sheets; ++n) make(n);
    }
    unsigned swapped() {
        unsigned many = 0;
        const auto all = list(in.pool());
        for (const object_info& each : *all) many += each.swapped_out;
        return many;
    }
    /// Without the lock's.
    std::vector<fs::path> files() const {
        std::vector<fs::path> all;
        for (const auto& each : fs::directory_iterator(folder()))
            if (each.path().filename() != "holdfast-swap") all.push_back(each.path());
        return all;
    }
    u64 used() { return account(in.pool()).block_bytes; }
};
INSTANTIATE_TEST_SUITE_P(Modes, SimpoSwap,
                         ::testing::Values(mode::process, mode::pmem, mode::power),
                         [](const auto& each) { return std::string(name(each.param)); });

TEST_P(SimpoSwap, WithoutAFolderAFullPoolIsFull) {
    in.open();
    status last;
    for (unsigned n = 0; n < sheets && last.ok(); ++n)
        if (auto made = object<sheet>::create(in.pool(), name_of(n)); !made) last = made.error();
    EXPECT_EQ(last.code(), errc::pool_full);
}

TEST_P(SimpoSwap, KeepsEveryCallOfMoreObjectsThanFit) {
    open();
    make_all();
    std::array<u64, sheets> expected{};
    std::mt19937 random(20261126);
    for (unsigned round = 0; round < 6; ++round) {
        for (unsigned i = 0; i < 100; ++i) {
            const unsigned n = random() % sheets;
            auto it = find(n);
            it.defer<&sheet::add>(i);
            expected[n] += i;
            if (i % 3 == 0) it.defer<&sheet::add>(u64{7}), expected[n] += 7;
            if (i % 5 == 0) ASSERT_EQ(it.call<&sheet::sum>(), expected[n]);
        }
        for (unsigned n = 0; n < sheets; ++n) find(n).sync(); // what is deferred may be lost
        EXPECT_GE(swapped(), sheets / 2);
        if (round % 3 == 0) in.close();
        if (round % 3 == 1) in.let_go();
        if (round % 3 != 2) open();
        for (unsigned n = 0; n < sheets; ++n) ASSERT_EQ(find(n).call<&sheet::sum>(), expected[n]);
        EXPECT_EQ(files().size(), sheets) << "each has one file at most";
    }
}

TEST_P(SimpoSwap, WhatWasUsedLeastRecentlyGoes) {
    open();
    for (unsigned n = 0; n < 4; ++n) make(n);
    ASSERT_EQ(swapped(), 0U);
    for (unsigned n = 4; n < 10; ++n) {
        for (const unsigned kept : {0U, 2U, 3U}) find(kept).call<&sheet::sum>();
        make(n);
        const auto all = list(in.pool());
        for (const object_info& each : *all)
            for (const unsigned kept : {0U, 2U, 3U})
                EXPECT_FALSE(each.name == name_of(kept) && each.swapped_out) << n;
    }
}

TEST_P(SimpoSwap, NothingGoesForAnObjectThatIsLargerThanThePool) {
    open();
    for (unsigned n = 0; n < 4; ++n) make(n);
    const auto made = object<sheet>::create(in.pool(), "large", {.log_bytes = 4_MiB});
    EXPECT_EQ(made.error().code(), errc::pool_full);
    EXPECT_EQ(swapped(), 0U);
}

TEST_P(SimpoSwap, HandlesBringThemBack) {
    open();
    auto it = make(0, {.log_bytes = 4_KiB, .callers = 1, .results = 2});
    const auto put_away = [&] {
        const status s = swap_out(in.pool(), name_of(0));
        ASSERT_TRUE(s.ok()) << s.what();
        ASSERT_EQ(swapped(), 1U);
    };
    put_away();
    it.defer<&sheet::add>(u64{5});
    EXPECT_EQ(swapped(), 0U);
    put_away();
    EXPECT_EQ(it.call<&sheet::sum>(), 5U) << "what was deferred is made before";
    put_away();
    EXPECT_EQ(it.call<&sheet::add_and_get>(u64{1}), 2U);
    put_away();
    it.sync();
    put_away();
    it.checkpoint();
    put_away();
    auto mine = caller<sheet>::of(it, 7);
    ASSERT_TRUE(mine);
    EXPECT_EQ(swapped(), 0U);
    put_away();
    mine->defer<&sheet::add>(1, u64{1});
    put_away();
    EXPECT_EQ(*mine->call<&sheet::add_and_get>(2, u64{1}), 4U);
    put_away();
    EXPECT_EQ(*mine->call<&sheet::add_and_get>(2, u64{1}), 4U) << "it was made";
    put_away();
    EXPECT_EQ(*mine->last(), 2U);
    put_away();
    EXPECT_TRUE(caller<sheet>::dismiss(it, 7).ok());
    EXPECT_EQ(it.call<&sheet::sum>(), 8U);
}

TEST_P(SimpoSwap, FilesComeAndGoWithTheirStates) {
    open();
    auto it = make(0);
    EXPECT_TRUE(files().empty());
    ASSERT_TRUE(swap_out(in.pool(), name_of(0)).ok());
    ASSERT_EQ(files().size(), 1U);
    const fs::path first = files()[0];
    (void)it.call<&sheet::sum>();
    EXPECT_EQ(files(), std::vector{first}) << "it is kept for an object that does not change";
    ASSERT_TRUE(swap_out(in.pool(), name_of(0)).ok());
    EXPECT_EQ(files(), std::vector{first});
    it.defer<&sheet::add>(u64{1});
    ASSERT_TRUE(swap_out(in.pool(), name_of(0)).ok());
    ASSERT_EQ(files().size(), 1U);
    EXPECT_NE(files()[0], first);
    in.close();
    open();
    EXPECT_EQ(find(0).call<&sheet::sum>(), 1U);
    const u64 before = used();
    ASSERT_TRUE(object<sheet>::destroy(in.pool(), name_of(0)).ok());
    EXPECT_TRUE(files().empty());
    make(0);
    EXPECT_EQ(used(), before);
    ASSERT_TRUE(swap_out(in.pool(), name_of(0)).ok());
    ASSERT_TRUE(drop(in.pool(), name_of(0)).ok()) << "without coming back";
    EXPECT_TRUE(files().empty());
}

TEST_P(SimpoSwap, AFileThatWasRemovedMeanwhileIsWrittenAgain) {
    open();
    make(0).call<&sheet::add_and_get>(u64{3});
    for (unsigned round = 0; round < 2; ++round) {
        ASSERT_TRUE(swap_out(in.pool(), name_of(0)).ok());
        EXPECT_EQ(find(0).call<&sheet::sum>(), 3U) << "which does not change it";
        ASSERT_EQ(files().size(), 1U);
        if (round == 0) fs::remove(files()[0]);
    }
    fs::resize_file(files()[0], 0);
    ASSERT_TRUE(swap_out(in.pool(), name_of(0)).ok());
    EXPECT_EQ(find(0).call<&sheet::sum>(), 3U);
}

// Events of the pool, and whether the only object's file existed then.
struct {
    const pool::impl* pool;
    const u64* word;
    fs::path folder;
    bool missing, ended; // the latter: durably
} watched;

void watch(const trace::event& what, const void*, std::size_t) {
    const u64 at = *watched.word;
    const auto none = [] {
        for (const auto& each : fs::directory_iterator(watched.folder))
            if (each.path().filename() != "holdfast-swap") return false;
        return true;
    };
    const bool needed = at == 0
                            ? !watched.ended
                            : is_swapped(*static_cast<const object_head*>(watched.pool->at(at)));
    watched.missing |= needed && none();
    watched.ended |= at == 0 && what == trace::fence;
}

TEST_P(SimpoSwap, AFileIsThereAsLongAsAFailureNeedsIt) {
    open();
    auto it = make(0);
    const pool::impl& p = in.pool().internals();
    watched = {&p, object_words(*superblock_of(*p.file)).data(), folder(), false, false};
    const trace::listening to(watch);
    for (u64 i = 0; i < 4; ++i) {
        ASSERT_TRUE(swap_out(in.pool(), name_of(0)).ok());
        if (i == 2) (void)it.call<&sheet::sum>();
        else it.call<&sheet::add_and_get>(i);
    }
    ASSERT_TRUE(swap_out(in.pool(), name_of(0)).ok());
    EXPECT_FALSE(watched.missing);
    ASSERT_TRUE(object<sheet>::destroy(in.pool(), name_of(0)).ok());
    EXPECT_FALSE(watched.missing);
    EXPECT_TRUE(files().empty());
}

/// Opens the pool in a child, does that, and is killed.
template <class Do> void killed_behind(Do&& act) {
    const pid_t child = ::fork();
    if (child == 0) {
        act();
        ::kill(::getpid(), SIGKILL);
    }
    int how = 0;
    ASSERT_EQ(::waitpid(child, &how, 0), child);
    ASSERT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
}

TEST_P(SimpoSwap, FilesAreThereAsLongAsWhatIsDurableTogetherIsNot) {
    open();
    for (unsigned n = 0; n < 2; ++n) make(n).call<&sheet::add_and_get>(u64{9});
    for (unsigned n = 0; n < 2; ++n) ASSERT_TRUE(swap_out(in.pool(), name_of(n)).ok());
    in.close();
    killed_behind([&] {
        open();
        static const durable_together all(in.pool());
        find(0).call<&sheet::add_and_get>(u64{1});
        (void)swap_out(in.pool(), name_of(0));
        (void)drop(in.pool(), name_of(1));
    });
    open();
    const u64 sum = find(0).call<&sheet::sum>();
    EXPECT_TRUE(sum == 9 || sum == 10) << sum;
    const auto dropped = list(in.pool());
    if (dropped->size() == 2) EXPECT_EQ(find(1).call<&sheet::sum>(), 9U);
}

TEST_P(SimpoSwap, AFolderThatIsGivenWithinWhatIsDurableTogetherKeepsItsFiles) {
    open();
    make(0).call<&sheet::add_and_get>(u64{9});
    ASSERT_TRUE(swap_out(in.pool(), name_of(0)).ok());
    in.close();
    killed_behind([&] {
        in.open();
        static const durable_together all(in.pool());
        (void)drop(in.pool(), name_of(0));
        (void)swap_to(in.pool(), folder());
    });
    open();
    const auto there = list(in.pool());
    if (there->size() == 1) EXPECT_EQ(find(0).call<&sheet::sum>(), 9U);
}

TEST_P(SimpoSwap, RemakesOneThatIsSwappedOut) {
    open();
    make(0).call<&sheet::add_and_get>(u64{9});
    for (unsigned n = 1; n < sheets; ++n) make(n);
    const auto same = [&](const sheet& was) {
        for (unsigned n = 1; n < sheets; ++n) (void)find(n); // make room: 'was' stays
        return was;
    };
    auto made = remake<sheet, sheet>(in.pool(), name_of(0), {.log_bytes = 8_KiB}, same);
    ASSERT_TRUE(made) << made.error().what();
    EXPECT_EQ(made->call<&sheet::sum>(), 9U);
}

TEST_P(SimpoSwap, ThreadsShareAPoolThatIsTooSmall) {
    open();
    make_all();
    std::array<std::atomic<u64>, sheets> expected{};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 3; ++t) // two of them may have their objects there
        threads.emplace_back([&, t] {
            std::mt19937 random(t);
            for (unsigned i = 0; i < 150; ++i) {
                const unsigned n = random() % sheets;
                auto it = find(n);
                for (unsigned k = 0; k < 5; ++k) it.defer<&sheet::add>(u64{i});
                expected[n] += 5 * u64{i};
                if (i % 4 == 0) (void)it.call<&sheet::add_and_get>(u64{1}), ++expected[n];
            }
        });
    for (auto& each : threads) each.join();
    for (unsigned n = 0; n < sheets; ++n) EXPECT_EQ(find(n).call<&sheet::sum>(), expected[n]);
    in.close();
    open();
    for (unsigned n = 0; n < sheets; ++n) EXPECT_EQ(find(n).call<&sheet::sum>(), expected[n]);
}

TEST_P(SimpoSwap, PackedFilesAreSmallerAndReadAgain) {
    static const zstd packing(3);
    open({.packing = &packing});
    make_all();
    for (unsigned n = 0; n < sheets; ++n) find(n).call<&sheet::add_and_get>(u64{n});
    for (const fs::path& each : files()) EXPECT_LT(fs::file_size(each), sizeof(sheet) / 20);
    in.close();
    in.open();
    ASSERT_TRUE(swap_to(in.pool(), folder()).ok());
    unsigned refused = 0;
    for (unsigned n = 0; n < sheets; ++n) {
        const auto found = object<sheet>::find(in.pool(), name_of(n));
        if (!found) {
            EXPECT_EQ(found.error().code(), errc::bad_argument);
            EXPECT_NE(found.error().what().find("zstd"), std::string::npos);
            ++refused;
        }
    }
    EXPECT_GE(refused, sheets / 2);
    in.close();
    open({.packing = &packing});
    for (unsigned n = 0; n < sheets; ++n) EXPECT_EQ(find(n).call<&sheet::sum>(), n);
}

/// zstd, that waits while a file is read until it is let go on.
class slow final : public compression {
public:
    const char* name() const noexcept override { return inner_.name(); }
    std::size_t pack(void* to, std::size_t room, const void* from,
                     std::size_t bytes) const noexcept override {
        return inner_.pack(to, room, from, bytes);
    }
    bool unpack(void* to, std::size_t bytes, const void* from,
                std::size_t packed) const noexcept override {
        reads = true;
        while (!goes_on) std::this_thread::yield();
        return inner_.unpack(to, bytes, from, packed);
    }
    mutable std::atomic<bool> reads{false};
    std::atomic<bool> goes_on{true}; // what is packed is read once, too

private:
    zstd inner_{3};
};

TEST_P(SimpoSwap, AChildUsesAFolderOfItsOwnWhileItsParentReadsAFile) {
    slow packing;
    open({.packing = &packing});
    make(0);
    ASSERT_TRUE(swap_out(in.pool(), name_of(0)).ok());
    packing.reads = packing.goes_on = false;
    std::thread reader([&] { (void)find(0); });
    while (!packing.reads) std::this_thread::yield();
    killed_behind([] {
        ::alarm(20); // instead of for ever
        test::test_pool its;
        its.open();
        (void)swap_to(its.pool(), its.path() + ".swapped");
        (void)its.make<sheet>();
        if (!swap_out(its.pool(), "it").ok()) ::_exit(1);
        (void)its.get<sheet>();
        fs::remove_all(fs::path(its.path()).parent_path());
    });
    packing.goes_on = true;
    reader.join();
}

TEST_P(SimpoSwap, SaysWhatIsWrongWithAFile) {
    open();
    make(0).call<&sheet::add_and_get>(u64{4});
    ASSERT_TRUE(swap_out(in.pool(), name_of(0)).ok());
    const fs::path file = files()[0];
    const auto refused = [&](errc code) {
        const auto found = object<sheet>::find(in.pool(), name_of(0));
        ASSERT_FALSE(found);
        EXPECT_EQ(found.error().code(), code) << found.error().what();
        EXPECT_NE(found.error().what().find(file.filename().string()), std::string::npos);
    };
    fs::rename(file, file.string() + ".away");
    refused(errc::io_error);
    std::ifstream from(file.string() + ".away", std::ios::binary);
    const std::string whole((std::istreambuf_iterator<char>(from)), {});
    const auto with = [&](const std::string& bytes) {
        std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
    };
    std::mt19937 random(1);
    for (unsigned i = 0; i < 300; ++i) {
        std::string bytes = whole;
        const std::size_t at = i < 100 ? i : random() % bytes.size();
        bytes[at] = static_cast<char>(bytes[at] ^ (1U << random() % 8));
        if (i % 10 == 9) bytes.resize(random() % bytes.size());
        with(bytes);
        const auto found = object<sheet>::find(in.pool(), name_of(0));
        ASSERT_FALSE(found) << at;
        EXPECT_TRUE(found.error().code() == errc::corrupt ||
                    found.error().code() == errc::bad_argument) // says it is packed
            << found.error().what();
    }
    fs::remove(file);
    fs::create_directory(file);
    refused(errc::not_a_pool);
    fs::remove(file);
    with(whole);
    EXPECT_EQ(find(0).call<&sheet::sum>(), 4U) << "nothing was lost meanwhile";
}

TEST_P(SimpoSwap, AFolderThatIsGoneIsNoObjectThatIsNot) {
    open();
    make_all();
    for (unsigned n = 0; n < sheets; ++n) find(n).call<&sheet::add_and_get>(u64{n});
    fs::rename(folder(), folder() + ".away");
    for (unsigned n = 0; n < sheets; ++n) {
        const auto found = object<sheet>::find(in.pool(), name_of(n));
        if (!found) EXPECT_EQ(found.error().code(), errc::io_error) << found.error().what();
        const auto made = object<sheet>::create(in.pool(), "another", {.log_bytes = 4_KiB});
        EXPECT_EQ(made.error().code(), errc::io_error);
    }
    fs::rename(folder() + ".away", folder());
    for (unsigned n = 0; n < sheets; ++n) EXPECT_EQ(find(n).call<&sheet::sum>(), n);
}

TEST_P(SimpoSwap, RefusesAnObjectThatNeverFitted) {
    open();
    make(0);
    ASSERT_TRUE(swap_out(in.pool(), name_of(0)).ok());
    const pool::impl& p = in.pool().internals();
    const u64 at = object_words(*superblock_of(*p.file))[0];
    in.close();
    object_head head;
    std::fstream file(in.path(), std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(at);
    file.read(reinterpret_cast<char*>(&head), sizeof head);
    head.callers = 16;
    head.results = results_max;
    head.result_words = result_words_max; // 132 GiB
    head.check = head_check(head);
    file.seekp(at);
    file.write(reinterpret_cast<const char*>(&head), sizeof head);
    file.close();
    EXPECT_EQ(in.try_open().code(), errc::corrupt);
}

TEST_P(SimpoSwap, AnObjectThatCannotComeBackEndsAHandlesCallWithAMessage) {
    open();
    make(0);
    ASSERT_TRUE(swap_out(in.pool(), name_of(0)).ok());
    const auto use_after_removal = [&] { // in a child, which opens the pool itself
        open();
        auto it = find(0);
        (void)swap_out(in.pool(), name_of(0));
        fs::remove(files()[0]);
        it.defer<&sheet::add>(u64{1});
    };
    in.close();
    EXPECT_DEATH(use_after_removal(), "\"sheet 0\" is swapped out.*is not there");
    in.open(); // and without a folder
    const auto found = object<sheet>::find(in.pool(), name_of(0));
    ASSERT_FALSE(found);
    EXPECT_NE(found.error().what().find("hf::simpo::swap_to"), std::string::npos);
    EXPECT_TRUE(drop(in.pool(), name_of(0)).ok());
}

TEST_P(SimpoSwap, RefusesFoldersThatAreNone) {
    in.open();
    const auto refused = [&](const std::string& path, errc code) {
        const status s = swap_to(in.pool(), path);
        EXPECT_EQ(s.code(), code) << path << ": " << s.what();
    };
    refused("", errc::bad_argument);
    refused(folder() + "/no/such", errc::not_found);
    refused(in.path(), errc::not_found); // a file
    EXPECT_EQ(swap_out(in.pool(), "none").code(), errc::not_found);
    make(0);
    EXPECT_EQ(swap_out(in.pool(), name_of(0)).code(), errc::bad_argument);
    ASSERT_TRUE(swap_to(in.pool(), folder()).ok());
    refused(folder(), errc::exists); // one a pool
    test::test_pool other;
    other.open();
    EXPECT_EQ(swap_to(other.pool(), folder()).code(), errc::in_use);
    in.close();
    EXPECT_EQ(swap_to(other.pool(), folder()).code(), errc::exists) << "another pool's";
}

TEST_P(SimpoSwap, ARelativeFolderStaysWhereItIs) {
    in.open();
    const fs::path before = fs::current_path();
    fs::current_path(fs::path(folder()).parent_path());
    const status given = swap_to(in.pool(), "swapped//");
    ASSERT_TRUE(given.ok()) << given.what();
    fs::current_path(before);
    make_all();
    for (unsigned n = 0; n < sheets; ++n) EXPECT_EQ(find(n).call<&sheet::sum>(), 0U);
    EXPECT_FALSE(files().empty());
}

TEST_P(SimpoSwap, WhatProcessesThatWereKilledLeftIsRemovedAndNothingElse) {
    open();
    make_all();
    in.close();
    const std::vector<fs::path> needed = files();
    const std::string some = needed[0].filename().string(), salt = some.substr(0, 17);
    for (const std::string& left :
         {salt + "00000000ffffffff", std::string("0123456789abcdef-0000000000000001")})
        std::ofstream(folder() + "/" + left) << "an object";
    const std::vector<std::string> others{"notes", some + ".old", salt + "00000000FFFFFFFX",
                                          "lost+found"};
    for (const std::string& other : others) std::ofstream(folder() + "/" + other) << "no object";
    open();
    EXPECT_EQ(files().size(), needed.size() + others.size());
    for (const std::string& other : others)
        EXPECT_TRUE(fs::remove(folder() + "/" + other)) << other;
    for (unsigned n = 0; n < sheets; ++n) EXPECT_EQ(find(n).call<&sheet::sum>(), 0U);
}

TEST_P(SimpoSwap, AFolderIsOfNoEarlierStateOfItsPool) {
    open();
    make(0).call<&sheet::add_and_get>(u64{1});
    ASSERT_TRUE(swap_out(in.pool(), name_of(0)).ok());
    in.close();
    const std::vector<std::string> parts{in.path(), in.path() + "-power"};
    const auto copy = [&](const std::string& from, const std::string& to) {
        for (const std::string& part : parts)
            if (fs::exists(part + from))
                fs::copy_file(part + from, part + to, fs::copy_options::overwrite_existing);
    };
    copy("", ".early");
    open();
    find(0).call<&sheet::add_and_get>(u64{1});
    ASSERT_TRUE(swap_out(in.pool(), name_of(0)).ok());
    in.close();
    copy("", ".late");
    copy(".early", "");
    in.open();
    const auto there = files();
    const status refused = swap_to(in.pool(), folder());
    EXPECT_EQ(refused.code(), errc::conflict) << refused.what();
    EXPECT_EQ(files(), there);
    in.close();
    copy(".late", "");
    open();
    EXPECT_EQ(find(0).call<&sheet::sum>(), 2U);
}

TEST_P(SimpoSwap, SaysWhatIsWrongWithALock) {
    open();
    in.close();
    const std::string lock = folder() + "/holdfast-swap";
    const auto size = fs::file_size(lock);
    for (const std::uintmax_t bytes : {size / 2, std::uintmax_t{0}}) {
        fs::resize_file(lock, bytes);
        in.open();
        const status s = swap_to(in.pool(), folder());
        EXPECT_EQ(s.code(), errc::corrupt) << s.what();
        EXPECT_EQ(fs::file_size(lock), bytes);
        in.close();
    }
    fs::remove(lock);
    open();
}

/// Claims to pack, and does not.
class lying final : public compression {
public:
    explicit lying(std::size_t packed) noexcept : packed_(packed) {}
    const char* name() const noexcept override { return "lying"; }
    std::size_t pack(void* to, std::size_t, const void*, std::size_t) const noexcept override {
        std::memset(to, 1, 100);
        return packed_;
    }
    bool unpack(void* to, std::size_t bytes, const void*, std::size_t) const noexcept override {
        std::memset(to, 0, bytes);
        return true;
    }

private:
    std::size_t packed_;
};

TEST_P(SimpoSwap, ACompressionThatLiesLosesNothing) {
    for (const std::size_t packed : {std::size_t{100}, ~std::size_t{0}}) {
        const lying packing(packed);
        in.open();
        const status given = swap_to(in.pool(), folder(), {.packing = &packing});
        ASSERT_TRUE(given.ok()) << given.what();
        for (unsigned n = 0; n < sheets; ++n) {
            if (packed == 100) make(n);
            find(n).call<&sheet::add_and_get>(u64{n});
        }
        for (unsigned n = 0; n < sheets; ++n)
            EXPECT_EQ(find(n).call<&sheet::sum>(), packed == 100 ? n : 2 * n);
        in.close();
    }
}

TEST_P(SimpoSwap, AFullDiskLosesNothing) {
    open();
    make_all();
    for (unsigned n = 0; n < sheets; ++n) find(n).call<&sheet::add_and_get>(u64{n});
    const unsigned away = swapped();
    in.close();
    open();
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    rlimit small = before;
    small.rlim_cur = 64_KiB; // the pool's file has its size already
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    unsigned refused = 0;
    for (unsigned n = 0; n < sheets; ++n) {
        auto found = object<sheet>::find(in.pool(), name_of(n));
        if (found) found->call<&sheet::add_and_get>(u64{0});
        if (!found) EXPECT_EQ(found.error().code(), errc::pool_full) << found.error().what();
        refused += !found;
    }
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_GE(refused, 1U);
    EXPECT_LE(refused, away);
    for (unsigned n = 0; n < sheets; ++n) EXPECT_EQ(find(n).call<&sheet::sum>(), n);
}

TEST_P(SimpoSwap, LooksAtThemWhenThePoolIsOpenReadOnly) {
    open();
    make_all();
    for (unsigned n = 0; n < sheets; ++n) find(n).call<&sheet::add_and_get>(u64{n});
    in.close();
    in.how.read_only = true;
    in.open();
    const auto none = object<sheet>::find(in.pool(), name_of(0));
    EXPECT_EQ(none.error().code(), errc::bad_argument);
    ASSERT_TRUE(swap_to(in.pool(), folder()).ok());
    for (unsigned n = 0; n < sheets; ++n) EXPECT_EQ(find(n).call<&sheet::sum>(), n);
    for (unsigned n = 0; n < sheets; ++n) {
        const auto seen = view<sheet>::open(in.pool(), name_of(n));
        ASSERT_TRUE(seen) << seen.error().what();
        EXPECT_EQ((*seen)->sum(), n);
    }
    EXPECT_EQ(swap_out(in.pool(), name_of(0)).code(), errc::permission);
}

TEST_P(SimpoSwap, WhatFillsThePoolLeavesRoomForOthersToComeBack) {
    for (const u64 max_bytes : {704_KiB, 2_MiB}) {
        in.how.max_bytes = max_bytes;
        open();
        unsigned made = 0;
        const auto make_one = [&] {
            const auto it = object<sheet>::create(in.pool(), name_of(made), {.log_bytes = 4_KiB});
            if (it) ++made;
            else EXPECT_EQ(it.error().code(), errc::pool_full);
            return bool(it);
        };
        const auto give_others_the_rest = [&] {
            thread_cache others;
            allocator& blocks = in.pool().internals().blocks;
            for (const u64 bytes : {u64{16_KiB}, u64{256}})
                while (blocks.reserve(others, bytes).offset != 0) {}
        };
        const auto find_all = [&] {
            for (unsigned n = 0; n < made; ++n) {
                const auto it = object<sheet>::find(in.pool(), name_of(n));
                ASSERT_TRUE(it) << n << ": " << it.error().what();
            }
        };
        while (swapped() == 0) ASSERT_TRUE(make_one());
        give_others_the_rest();
        while (make_one()) ASSERT_LT(made, 1000U);
        find_all();
        in.close();
        open();
        give_others_the_rest(); // before anything has come back
        find_all();
        in.close();
        fs::remove(in.path());
        fs::remove_all(folder());
    }
}

/// Calls that take all of the words that there are.
class wide {
public:
    static constexpr class_name simpo_class{"wide", 1};
    void add(std::array<u64, 56> all) noexcept {
        for (const u64 each : all) sum_ += each;
    }
    u64 add_and_get(std::array<u64, 56> all) noexcept { return add(all), sum_; }

private:
    u64 sum_ = 0;
};

TEST_P(SimpoSwap, AnObjectThatCouldNotGoTakesTheLongestCall) {
    open();
    auto it = *object<wide>::create(in.pool(), "it", {.log_bytes = 1_KiB});
    std::array<u64, 56> ones;
    ones.fill(1);
    it.defer<&wide::add>(ones); // leaves as much room as the call below takes
    fs::rename(folder(), folder() + ".away");
    EXPECT_EQ(swap_out(in.pool(), "it").code(), errc::io_error);
    EXPECT_EQ(it.call<&wide::add_and_get>(ones), 112U);
    fs::rename(folder() + ".away", folder());
    ASSERT_TRUE(swap_out(in.pool(), "it").ok());
    EXPECT_EQ(it.call<&wide::add_and_get>(ones), 168U);
}

TEST_P(SimpoSwap, RemakesOneThatIsJustGoing) {
    open();
    (void)*object<wide>::create(in.pool(), "it", {.log_bytes = 1_KiB});
    std::atomic<bool> ended{false};
    std::thread other([&] {
        while (!ended) (void)swap_out(in.pool(), "it");
    });
    const auto same = [](const wide& was) { return was; };
    for (unsigned i = 0; i < 1000; ++i) {
        auto made = remake<wide, wide>(in.pool(), "it", {.log_bytes = 1_KiB}, same);
        EXPECT_TRUE(made);
    }
    ended = true;
    other.join();
}

TEST_P(SimpoSwap, FindsOneThatIsBeingDestroyedOrNone) {
    open();
    std::atomic<bool> ended{false};
    std::thread other([&] {
        while (!ended)
            if (auto found = object<wide>::find(in.pool(), "it"); !found)
                EXPECT_EQ(found.error().code(), errc::not_found) << found.error().what();
    });
    for (unsigned i = 0; i < 1000; ++i) {
        ASSERT_TRUE(object<wide>::create(in.pool(), "it", {.log_bytes = 1_KiB}));
        if (i % 2 == 0) (void)swap_out(in.pool(), "it");
        ASSERT_TRUE(object<wide>::destroy(in.pool(), "it").ok());
    }
    ended = true;
    other.join();
}

TEST_P(SimpoSwap, ThreadsTakeTurnsWhereThereIsRoomForOne) {
    in.how.max_bytes = 704_KiB;
    open();
    for (unsigned n = 0; n < 3; ++n) make(n);
    ASSERT_EQ(swapped(), 2U);
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 3; ++t)
        threads.emplace_back([&, t] {
            for (unsigned i = 0; i < 1000; ++i) find(t).call<&sheet::add_and_get>(u64{1});
        });
    for (auto& each : threads) each.join();
    for (unsigned n = 0; n < 3; ++n) EXPECT_EQ(find(n).call<&sheet::sum>(), 1000U);
}

} // namespace
} // namespace hf::simpo
