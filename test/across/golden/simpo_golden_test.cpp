// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a deferred call waits for nothing and flushes nothing, a group waits once, a checkpoint
// twice, a view never; and no flushed line and no byte of log comes or goes unnoticed.
// Method: a fixed sequence of operations on a new pool; what each kind cost in all is compared with
// golden/simpo.txt.
// When a change is meant: HOLDFAST_GOLDEN_WRITE=1 ctest -R golden, and say in the commit why.
#include <simpo/core.hpp>

#include <holdfast/author/persist.hpp>
#include <holdfast/pool.hpp>
#include <holdfast/simpo.hpp>
#include <holdfast/simpo/caller.hpp>
#include <holdfast/simpo/history.hpp>
#include <holdfast/simpo/swap.hpp>
#include <holdfast/simpo/table.hpp>
#include <holdfast/simpo/view.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <unistd.h>

namespace {

using namespace hf;
using namespace hf::literals;
using u64 = std::uint64_t;
constexpr u64 operations = 100;

struct row {
    static constexpr simpo::class_name simpo_class{"row", 1};
    void add(u64 n) noexcept {
        for (u64& c : cells) c += n;
    }
    void set(std::uint32_t at, std::array<u64, 32> to) noexcept {
        for (std::size_t i = 0; i < to.size(); ++i) cells[(at + i) % cells.size()] = to[i];
    }
    u64 add_and_get(u64 n) noexcept { return add(n), cells[0]; }
    u64 get() const { return cells[0]; }
    std::array<u64, 1000> cells{};
};

class golden {
public:
    golden() {
        std::ifstream file(HF_GOLDEN_FILE);
        for (std::string one; std::getline(file, one);)
            if (!one.empty() && one[0] != '#') expected_[one.substr(0, one.find(' '))] = one;
    }
    ~golden() {
        if (!writing()) {
            EXPECT_EQ(seen_.size(), expected_.size()) << "there are lines that nothing counts";
            return;
        }
        std::ofstream file(HF_GOLDEN_FILE);
        file << "# simpo::object of 8000 bytes, mode pmem: events per " << operations
             << " operations.\n# operation flushes fences ordering_points log_bytes pm_bytes\n";
        for (const auto& one : seen_) file << one.second << '\n';
    }
    /// Counts calls of each(i), with what 'before' does not counted. 'points': ordering points that
    /// one promises.
    template <class Before, class Each>
    void count(const char* what, u64 points, Before&& before, Each&& each) {
        persist::counters spent{};
        for (u64 i = 0; i < operations; ++i) {
            before(i);
            const persist::counters from = persist::thread_counters();
            each(i);
            const persist::counters& to = persist::thread_counters();
            EXPECT_EQ(to.ordering_points - from.ordering_points, points) << what << i;
            spent.flushes += to.flushes - from.flushes;
            spent.fences += to.fences - from.fences;
            spent.ordering_points += to.ordering_points - from.ordering_points;
            spent.log_bytes += to.log_bytes - from.log_bytes;
            spent.pm_bytes += to.pm_bytes - from.pm_bytes;
        }
        const std::string line =
            fmt::format("{} {} {} {} {} {}", what, spent.flushes, spent.fences,
                        spent.ordering_points, spent.log_bytes, spent.pm_bytes);
        seen_[what] = line;
        if (!writing()) EXPECT_EQ(expected_[what], line);
    }

private:
    static bool writing() { return std::getenv("HOLDFAST_GOLDEN_WRITE") != nullptr; }
    std::map<std::string, std::string> expected_, seen_;
};

/// Two callers' calls that end one group.
void count_together(golden& file, simpo::object<row> on, u64 made) {
    ASSERT_TRUE(simpo::caller<row>::of(on, 2));
    on.checkpoint();
    const auto& f = simpo::detail::registered<row, &row::add_and_get>::entry;
    u64 argument = 0;
    std::array<u64, 2> answers{};
    file.count(
        "call-once-by-two", 1, [](u64) {},
        [&](u64 n) {
            argument = n;
            std::array<simpo::detail::one_call, 2> both{
                {{&f, {1, made + n + 1}, &argument, &answers[0], false, {}},
                 {&f, {2, n + 1}, &argument, &answers[1], false, {}}}};
            on.internals().call_all_once(both);
        });
    EXPECT_EQ(answers[1] - answers[0], operations - 1);
    ASSERT_TRUE(simpo::caller<row>::dismiss(on, 2).ok());
}

/// Calls that may be repeated.
void count_callers(golden& file, simpo::object<row> on) {
    const auto nothing = [](u64) {};
    auto me = simpo::caller<row>::of(on, 1);
    ASSERT_TRUE(me) << me.error().what();
    u64 number = 0;
    file.count("defer-once", 0, nothing, [&](u64 n) { me->defer<&row::add>(++number, n); });
    on.checkpoint();
    file.count("call-once", 1, nothing,
               [&](u64 n) { (void)me->call<&row::add_and_get>(++number, n); });
    file.count("call-once-again", 0, nothing,
               [&](u64) { (void)me->call<&row::add_and_get>(number, operations - 1); });
    count_together(file, on, number);
    file.count("add-and-dismiss-caller", 2, nothing, [&](u64) {
        ASSERT_TRUE(simpo::caller<row>::of(on, 2));
        ASSERT_TRUE(simpo::caller<row>::dismiss(on, 2).ok());
    });
}

/// To a file, and back.
void count_swaps(golden& file, pool& in) {
    struct folder {
        std::string path = fmt::format("/dev/shm/holdfast-simpo-golden.{}.swapped", getpid());
        ~folder() { std::filesystem::remove_all(path); }
    } const to;
    ASSERT_TRUE(simpo::swap_to(in, to.path).ok());
    const auto swap = [&](u64) { ASSERT_TRUE(simpo::swap_out(in, "row").ok()); };
    const auto find = [&](u64) { ASSERT_TRUE(simpo::object<row>::find(in, "row")); };
    const auto change = [&](u64 n) {
        (void)simpo::object<row>::find(in, "row")->call<&row::add_and_get>(n);
    };
    file.count("swap-out", 4, change, swap);
    file.count("swap-out-again", 0, [](u64) {}, swap);
    file.count("swap-out-unchanged", 4, find, swap);
    file.count("come-back", 4, swap, find);
}

/// A history waits for its file; the pool's points are those that it had.
void count_history(golden& file, pool& in) {
    struct folder {
        std::string path;
        ~folder() { std::filesystem::remove_all(path); }
    } const to{std::string(in.path()) + ".history"};
    auto made = simpo::object<row>::create(in, "kept", simpo::object_options{1_MiB});
    ASSERT_TRUE(made) << made.error().what();
    file.count(
        "keep-and-end-history", 2, [](u64) {},
        [&](u64) {
            ASSERT_TRUE(simpo::keep_history(in, "kept").ok());
            ASSERT_TRUE(simpo::end_history(in, "kept").ok());
        });
    ASSERT_TRUE(simpo::keep_history(in, "kept").ok());
    file.count(
        "checkpoint-with-history", 2, [&](u64 n) { (void)made->call<&row::add_and_get>(n); },
        [&](u64) { made->checkpoint(); });
    EXPECT_EQ(simpo::history(in, "kept")->size(), operations);
}

TEST(SimpoGolden, Row) {
    const std::string path = fmt::format("/dev/shm/holdfast-simpo-golden.{}", getpid());
    open_options o;
    o.layout = "golden/1";
    o.mode = mode::pmem;
    o.creation = create::always_new;
    o.expert.seal = false;
    o.engines = {simpo::engine()};
    auto opened = pool::open(path, o);
    const auto remove = [](const std::string* which) { std::remove(which->c_str()); };
    const std::unique_ptr<const std::string, decltype(remove)> removed(&path, remove);
    ASSERT_TRUE(opened) << opened.error().what();
    auto made = simpo::object<row>::create(*opened, "row", simpo::object_options{1_MiB});
    ASSERT_TRUE(made) << made.error().what();
    simpo::object<row> r = *made;
    golden file;
    const auto nothing = [](u64) {};
    const auto defer = [&](u64 n) { r.defer<&row::add>(n); };
    const auto defer_10 = [&](u64 n) {
        for (u64 i = 0; i < 10; ++i) defer(n);
    };
    file.count("defer", 0, nothing, defer);
    r.checkpoint();
    file.count("defer-wide", 0, nothing,
               [&](u64 n) { r.defer<&row::set>(std::uint32_t(n), std::array<u64, 32>{}); });
    r.checkpoint();
    file.count("call", 1, nothing, [&](u64 n) { (void)r.call<&row::add_and_get>(n); });
    file.count("call-of-10", 1, defer_10, [&](u64 n) { (void)r.call<&row::add_and_get>(n); });
    file.count("const-call-of-10", 1, defer_10, [&](u64) { (void)r.call<&row::get>(); });
    file.count("const-call", 0, nothing, [&](u64) { (void)r.call<&row::get>(); });
    file.count("sync-of-10", 1, defer_10, [&](u64) { r.sync(); });
    file.count("sync", 0, nothing, [&](u64) { r.sync(); });
    file.count(
        "checkpoint", 2, [&](u64 n) { (void)r.call<&row::add_and_get>(n); },
        [&](u64) { r.checkpoint(); });
    file.count(
        "checkpoint-of-256-bytes", 2,
        [&](u64 n) {
            std::array<u64, 32> to;
            to.fill(n + 1'000'000);
            r.defer<&row::set>(0, to);
            r.sync();
        },
        [&](u64) { r.checkpoint(); });
    file.count("checkpoint-of-nothing", 0, nothing, [&](u64) { r.checkpoint(); });
    file.count("create-and-destroy", 5, nothing, [&](u64) {
        ASSERT_TRUE(simpo::object<row>::create(*opened, "other"));
        ASSERT_TRUE(simpo::object<row>::destroy(*opened, "other").ok());
    });
    file.count("remake", 4, nothing, [&](u64) {
        const auto same = [](const row& was) { return was; };
        ASSERT_TRUE((simpo::remake<row, row>(*opened, "row", {}, same)));
    });
    count_swaps(file, *opened);
    count_history(file, *opened);
    auto known = simpo::object<row>::create(
        *opened, "known", simpo::object_options{.log_bytes = 1_MiB, .callers = 2});
    ASSERT_TRUE(known) << known.error().what();
    count_callers(file, *known);
    { const pool closing = std::move(*opened); }
    o.creation = create::never;
    o.read_only = o.shared = true;
    opened = pool::open(path, o);
    ASSERT_TRUE(opened) << opened.error().what();
    file.count("view", 0, nothing,
               [&](u64) { ASSERT_TRUE(simpo::view<row>::open(*opened, "known")); });
    auto seen = simpo::view<row>::open(*opened, "row");
    ASSERT_TRUE(seen) << seen.error().what();
    file.count("view-again", 0, nothing, [&](u64) { ASSERT_TRUE(seen->refresh().ok()); });
}

} // namespace
