// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a view shows what was committed, all of it, and never less than before, while its writer
// does anything. It stores nothing, and reports any damage of the pool. Method: two processes in
// order, over a channel; a reader held up at each step while the writer goes round its log, ends
// the object or makes another one; words of the pool replaced under a reader that has it open.
// test/attacks/kill/views_main.cpp has the writer that nobody holds up.
#include <pool/believed.hpp>
#include <pool/header.hpp>
#include <pool/other_process.hpp>
#include <simpo/functions.hpp>
#include <simpo/test_support.hpp>
#include <simpo/view.hpp>
#include <trace/trace.hpp>

#include <holdfast/author/persist.hpp>
#include <holdfast/simpo/caller.hpp>
#include <holdfast/simpo/swap.hpp>
#include <holdfast/simpo/table.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace hf::simpo {
namespace {

using hf::test::other_process;
using view_steps::step;
using u64 = std::uint64_t;

/// Cells that add up to the sum, and a count of the calls; a call is of one line, or of eight.
class tally {
public:
    static constexpr class_name simpo_class{"tally", 1};
    void add(u64 n) noexcept {
        cells_[count_++ % cells_.size()] += n;
        sum_ += n;
    }
    void add_all(std::array<u64, 50> all) noexcept {
        for (const u64 n : all) add(n);
    }
    u64 add_and_get(u64 n) noexcept { return add(n), count_; }
    u64 count() const noexcept { return count_; }
    bool whole() const noexcept {
        u64 sum = 0;
        for (const u64 c : cells_) sum += c;
        return sum == sum_;
    }

private:
    std::array<u64, 300> cells_{};
    u64 sum_ = 0, count_ = 0;
};

/// The same under the same name: none of its functions is registered here.
class other_tally : public tally {
public:
    static constexpr class_name simpo_class{"tally", 2};
    u64 more = 0;
};

/// Larger by far.
class board {
public:
    static constexpr class_name simpo_class{"board", 1};
    u64 cells[100'000] = {1};
};

/// Nothing but a view names its function.
class unused {
public:
    static constexpr class_name simpo_class{"unused", 1};
    void add(std::uint32_t n) noexcept { sum += n; }
    u64 sum = 0;
};

constexpr object_options small_log{.log_bytes = 1_KiB, .callers = 2, .results = 2};

class SimpoView : public test::PoolTest {
protected:
    SimpoView() { in.how.shared = true; }
    /// The writer's orders: 'o'pen, 'c'lose, 'd'ie, 'n'ew object, 'l'og a call, 's'ync, 'i'nstant
    /// call, 'k'eep (checkpoint), 'm'any calls: the log goes round, 'e'nd the object, 'r'emake it,
    /// 'g'row the pool, 'S'wap it out, 'B'ring it back, make another one for its 'p'lace, 'P': drop
    /// that; 'L': end it, and swap out larger objects until one has its place.
    bool write(char order) {
        switch (order) {
        case 'o': in.open(); return true;
        case 'c': in.close(); return true;
        case 'd': ::kill(::getpid(), SIGKILL); return false;
        case 'n': (void)in.make<tally>(small_log); return true;
        case 'l': get().defer<&tally::add>(7); return true;
        case 's': get().sync(); return true;
        case 'i': return get().call<&tally::add_and_get>(3U) != 0;
        case 'k': get().checkpoint(); return true;
        case 'm': return many();
        case 'e': return object<tally>::destroy(in.pool(), "it").ok();
        case 'r':
            return bool(remake<tally, tally>(in.pool(), "it", small_log,
                                             [](const tally& was) { return was; }));
        case 'g': return grow();
        case 'S': return swap();
        case 'B': return bool(object<tally>::find(in.pool(), "it"));
        case 'P': return drop(in.pool(), std::to_string(others_)).ok();
        case 'p':
            return bool(object<tally>::create(in.pool(), std::to_string(++others_), small_log));
        case 'L': return swap_larger();
        default: return false;
        }
    }
    object<tally> get() { return in.get<tally>(); }
    bool many() {
        auto it = get();
        for (u64 i = 0; i < 20; ++i) {
            it.defer<&tally::add>(i);
            it.defer<&tally::add_all>(std::array<u64, 50>{i});
            if (i % 3 == 0) (void)it.call<&tally::add_and_get>(i);
        }
        it.sync();
        return true;
    }
    bool grow() {
        const u64 was = in.pool().size_bytes();
        for (int i = 0; in.pool().size_bytes() < 4 * was; ++i)
            if (!object<tally>::create(in.pool(), std::to_string(i))) return false;
        return bool(object<tally>::create(in.pool(), "last"));
    }
    std::string folder() const { return in.path() + ".swapped"; }
    bool swap() {
        const status given = swap_to(in.pool(), folder());
        return (given.ok() || given.code() == errc::exists) && swap_out(in.pool(), "it").ok();
    }
    bool swap_larger() {
        if (!object<tally>::destroy(in.pool(), "it").ok()) return false;
        for (const char* const name : {"larger", "another"})
            if (!object<board>::create(in.pool(), name, small_log) ||
                !swap_out(in.pool(), name).ok())
                return false;
        return true;
    }
    void read() {
        in.how.read_only = true;
        in.open();
        EXPECT_TRUE(swap_to(in.pool(), folder()).ok());
    }
    view<tally> look(const char* name = "it") {
        auto found = view<tally>::open(in.pool(), name);
        if (!found) fatal("%s", found.error().what().c_str());
        return std::move(*found);
    }
    u64 seen(view<tally>& v) {
        const status s = v.refresh();
        EXPECT_TRUE(s.ok()) << s.what();
        EXPECT_TRUE(v->whole());
        return v->count();
    }
    template <class T> std::string refused(const result<T>& made) {
        EXPECT_FALSE(made);
        return made ? "" : std::string(name(made.error().code()));
    }

private:
    u64 others_ = 1'000'000;
};
INSTANTIATE_TEST_SUITE_P(Modes, SimpoView, ::testing::Values(mode::process, mode::pmem),
                         [](const auto& each) { return std::string(name(each.param)); });

TEST_P(SimpoView, ShowsWhatIsCommittedAndNothingElse) {
    other_process writer([this](char order) { return write(order); });
    ASSERT_TRUE(writer.do_it('o'));
    read();
    EXPECT_EQ(refused(view<tally>::open(in.pool(), "it")), "not_found");
    ASSERT_TRUE(writer.do_it('n'));
    auto v = look();
    EXPECT_EQ(v->count(), 0U);
    EXPECT_EQ(v.version(), 0U);
    ASSERT_TRUE(writer.do_it('l') && writer.do_it('l'));
    EXPECT_EQ(seen(v), 0U);
    ASSERT_TRUE(writer.do_it('s'));
    EXPECT_EQ(seen(v), 2U);
    const u64 at = v.version();
    EXPECT_GT(at, 0U);
    ASSERT_TRUE(writer.do_it('i'));
    EXPECT_EQ(seen(v), 3U);
    EXPECT_GT(v.version(), at);
    ASSERT_TRUE(writer.do_it('l') && writer.do_it('k'));
    EXPECT_EQ(seen(v), 4U);
    for (u64 round = 1; round <= 50; ++round) {
        ASSERT_TRUE(writer.do_it('m'));
        EXPECT_EQ(seen(v), 4 + round * (20 + 20 * 50 + 7));
        EXPECT_EQ(look()->count(), v->count());
        EXPECT_EQ(look().version(), v.version());
    }
    ASSERT_TRUE(writer.do_it('c'));
    const u64 count = v->count(), version = v.version();
    EXPECT_EQ(seen(v), count);
    EXPECT_EQ(v.version(), version);
    in.close();
    EXPECT_EQ(v->count(), count) << "what was seen is this process's own";
}

/// The hazard: what is being read is written again, or becomes another object's, between two steps.
TEST_P(SimpoView, NoStepIsTooLate) {
    static other_process* beside;
    static const char* orders;
    static step at;
    static int times;
    for (const char* const does :
         {"iii", "m", "km", "mk",   "mmm", "r",   "en",     "enm", "rm",  "re",
          "e",   "S", "SB", "SpBm", "SmS", "SBS", "SmSmSp", "Se",  "SBr", "SpeB"})
        for (const step each :
             {step::found, step::read_index, step::copied, step::read_log, step::asked_again})
            for (const int again : {1, 3}) {
                in.how.read_only = false;
                std::filesystem::remove(in.path());
                std::filesystem::remove_all(folder());
                other_process writer([this](char order) { return write(order); });
                ASSERT_TRUE(writer.do_it('o') && writer.do_it('n') && writer.do_it('m'));
                if (again == 3) ASSERT_TRUE(writer.do_it('S'));
                read();
                auto v = look();
                ASSERT_TRUE(writer.do_it('i') && writer.do_it('l'));
                const u64 least = v->count() + 1, version = v.version(), one = v.instance();
                beside = &writer;
                orders = does;
                at = each;
                times = again;
                view_steps::taken = [](step now) {
                    if (now != at || times == 0) return;
                    --times;
                    for (const char* order = orders; *order != 0; ++order)
                        (void)beside->do_it(*order);
                };
                for (const bool first : {false, true}) {
                    times = again;
                    if (first) { // one that has seen nothing yet
                        const auto made = view<tally>::open(in.pool(), "it");
                        if (made) EXPECT_TRUE((*made)->whole());
                        else EXPECT_EQ(refused(made), "not_found");
                        continue;
                    }
                    const status s = v.refresh();
                    EXPECT_TRUE(v->whole());
                    if (!s.ok()) EXPECT_EQ(name(s.code()), "not_found") << does << int(each);
                    if (v.instance() != one || !s.ok()) continue;
                    EXPECT_GE(v->count(), least) << does << int(each);
                    EXPECT_GT(v.version(), version);
                }
                view_steps::taken = nullptr;
                in.close();
            }
}

/// The hazard: two checkpoints write the copy that is being read, whose calls are still in the log.
TEST_P(SimpoView, NoCallIsMadeTwiceOnACopyThatHasIt) {
    other_process writer([this](char order) { return write(order); });
    ASSERT_TRUE(writer.do_it('o') && writer.do_it('n') && writer.do_it('m'));
    read();
    auto v = look();
    static other_process* beside;
    static int times;
    beside = &writer;
    for (const step each : {step::found, step::read_index, step::copied, step::read_log}) {
        ASSERT_TRUE(writer.do_it('m')); // the copy is read again
        static step at;
        at = each;
        times = 1;
        view_steps::taken = [](step now) {
            if (now != at || times-- != 1) return;
            for (const char order : {'l', 'k', 'l', 'k'}) EXPECT_TRUE(beside->do_it(order));
        };
        const u64 count = seen(v);
        view_steps::taken = nullptr;
        EXPECT_EQ(count, look()->count()) << int(each);
    }
}

TEST_P(SimpoView, AWriterThatIsAlwaysFasterIsToldOf) {
    other_process writer([this](char order) { return write(order); });
    ASSERT_TRUE(writer.do_it('o') && writer.do_it('n') && writer.do_it('m'));
    read();
    auto v = look();
    const u64 count = v->count();
    static other_process* beside;
    beside = &writer;
    ASSERT_TRUE(writer.do_it('m'));
    view_steps::taken = [](step now) {
        if (now == step::copied) EXPECT_TRUE(beside->do_it('m'));
    };
    const status s = v.refresh();
    view_steps::taken = nullptr;
    EXPECT_EQ(name(s.code()), "in_use");
    EXPECT_NE(s.what().find("checkpoint"), std::string::npos) << s.what();
    EXPECT_EQ(v->count(), count);
    EXPECT_GT(seen(v), count);
}

TEST_P(SimpoView, WritersDieAndCome) {
    u64 count = 0, version = 0;
    in.how.read_only = false;
    auto writer = std::make_unique<other_process>([this](char order) { return write(order); });
    ASSERT_TRUE(writer->do_it('o') && writer->do_it('n') && writer->do_it('m'));
    read();
    auto v = look();
    for (const char ends : {'d', 'c', 'd', 'd'}) {
        ASSERT_TRUE(writer->do_it('m') && writer->do_it('l') && writer->do_it('s') &&
                    writer->do_it('i') && writer->do_it('l'));
        count = v->count();
        EXPECT_EQ(writer->do_it(ends), ends == 'c');
        writer.reset();
        count += 20 + 20 * 50 + 7 + 2 + (ends == 'c' ? 1 : 0);
        EXPECT_EQ(seen(v), count) << "what was only logged is lost, where the writer was killed";
        EXPECT_EQ(look()->count(), count);
        EXPECT_GE(v.version(), version);
        version = v.version();
        in.how.read_only = false;
        writer = std::make_unique<other_process>([this](char order) { return write(order); });
        ASSERT_TRUE(writer->do_it('o'));
        EXPECT_EQ(seen(v), count);
        EXPECT_GE(v.version(), version);
        ASSERT_TRUE(writer->do_it('i'));
        EXPECT_EQ(seen(v), count + 1);
        EXPECT_GT(v.version(), version);
        version = v.version();
    }
}

TEST_P(SimpoView, ShowsThoseThatAreSwappedOut) {
    other_process writer([this](char order) { return write(order); });
    ASSERT_TRUE(writer.do_it('o') && writer.do_it('n') && writer.do_it('m'));
    in.how.read_only = true;
    in.open();
    auto v = look();
    u64 count = v->count();
    ASSERT_TRUE(writer.do_it('i') && writer.do_it('S'));
    EXPECT_EQ(name(v.refresh().code()), "bad_argument");
    EXPECT_EQ(v->count(), count) << "nobody has said where it is";
    ASSERT_TRUE(swap_to(in.pool(), folder()).ok());
    EXPECT_EQ(seen(v), ++count);
    EXPECT_EQ(look()->count(), count);
    u64 version = v.version();
    for (int i = 0; i < 20; ++i) {
        ASSERT_TRUE(writer.do_it(i % 3 == 0 ? 'B' : 'i'));
        count += i % 3 != 0;
        if (i % 2 == 0) EXPECT_EQ(seen(v), count);
        EXPECT_GE(v.version(), version);
        version = v.version();
        ASSERT_TRUE(writer.do_it('S'));
        if (i % 4 == 0) ASSERT_TRUE(writer.do_it('p'));
        EXPECT_EQ(seen(v), count);
        EXPECT_EQ(look()->count(), count);
        EXPECT_GE(v.version(), version);
        version = v.version();
    }
}

/// The hazard: the object is back at its place; meanwhile another one was there, whose bytes were
/// read.
TEST_P(SimpoView, OneThatIsBackWhereItWasIsReadAnew) {
    other_process writer([this](char order) { return write(order); });
    ASSERT_TRUE(writer.do_it('o') && writer.do_it('n') && writer.do_it('m') && writer.do_it('k'));
    ASSERT_TRUE(writer.do_it('S') && writer.do_it('B'));
    read();
    static other_process* beside;
    static step goes, comes;
    static int passes;
    beside = &writer;
    constexpr step steps[] = {step::found, step::read_index, step::copied, step::read_log,
                              step::asked_again};
    for (const step one : steps)
        for (const step other : steps) {
            if (one >= other) continue;
            goes = one;
            comes = other;
            passes = 0;
            view_steps::taken = [](step now) {
                if (now == goes && passes++ == 0)
                    EXPECT_TRUE(beside->do_it('S') && beside->do_it('p'));
                if (now == comes && passes == 1)
                    EXPECT_TRUE(beside->do_it('P') && beside->do_it('B'));
            };
            const auto v = view<tally>::open(in.pool(), "it");
            view_steps::taken = nullptr;
            ASSERT_TRUE(v) << int(one) << int(other) << v.error().what();
            EXPECT_TRUE((*v)->whole());
            EXPECT_GE(passes, 1);
            (void)writer.do_it('P'); // where the look ended before
            ASSERT_TRUE(writer.do_it('B'));
        }
}

/// The hazard: the head that is read again is another object's, and its sizes are believed.
TEST_P(SimpoView, ALargerOneInThePlaceOfOneThatIsSwappedOut) {
    other_process writer([this](char order) { return write(order); });
    ASSERT_TRUE(writer.do_it('o') && writer.do_it('n') && writer.do_it('S'));
    ASSERT_TRUE(writer.do_it('p'))
        << "keeps 256 bytes to spare: those of the first end are the next ones taken";
    read();
    static other_process* beside;
    beside = &writer;
    view_steps::taken = [](step now) {
        if (now == step::read_index) EXPECT_TRUE(beside->do_it('L'));
    };
    const auto v = view<tally>::open(in.pool(), "it");
    view_steps::taken = nullptr;
    EXPECT_EQ(refused(v), "not_found");
}

TEST_P(SimpoView, ObjectsComeAndGo) {
    other_process writer([this](char order) { return write(order); });
    ASSERT_TRUE(writer.do_it('o') && writer.do_it('n') && writer.do_it('m'));
    read();
    auto v = look();
    const u64 count = v->count(), one = v.instance();
    ASSERT_TRUE(writer.do_it('r'));
    EXPECT_EQ(seen(v), count);
    EXPECT_NE(v.instance(), one);
    ASSERT_TRUE(writer.do_it('i'));
    EXPECT_EQ(seen(v), count + 1);
    ASSERT_TRUE(writer.do_it('e'));
    EXPECT_EQ(name(v.refresh().code()), "not_found");
    EXPECT_EQ(v->count(), count + 1) << "it shows what it did";
    ASSERT_TRUE(writer.do_it('n'));
    EXPECT_EQ(seen(v), 0U);
    EXPECT_EQ(refused(view<tally>::open(in.pool(), "last")), "not_found");
    ASSERT_TRUE(writer.do_it('g'));
    EXPECT_EQ(look("last")->count(), 0U);
    EXPECT_EQ(look("0")->count(), 0U);
    EXPECT_EQ(seen(v), 0U);
}

/// A limit on its addresses keeps a reader from what the pool grows by: it gets that reason, and
/// sees nothing else.
TEST_P(SimpoView, AReaderWithoutRoomToGrowIsToldSo) {
    in.how.max_bytes = 1024_MiB;
    other_process writer([this](char order) {
        if (order != 'g') return write(order);
        while (in.pool().size_bytes() < 160_MiB)
            if (const auto n = std::to_string(in.pool().size_bytes());
                !object<tally>::create(in.pool(), n, object_options{.log_bytes = 16_MiB}))
                return false;
        return bool(object<tally>::create(in.pool(), "last"));
    });
    ASSERT_TRUE(writer.do_it('o') && writer.do_it('n') && writer.do_it('i'));
    other_process reader([&](char) {
        u64 pages = 0; // that it has
        std::ifstream("/proc/self/statm") >> pages;
        const rlimit little{pages * 4096 + 64_MiB, RLIM_INFINITY};
        if (::setrlimit(RLIMIT_AS, &little) != 0) return false;
        read();
        auto v = look();
        if (seen(v) != 1 || !writer.do_it('g') || !writer.do_it('i') || seen(v) != 2) return false;
        const auto last = view<tally>::open(in.pool(), "last");
        return !last && last.error().code() == errc::io_error && seen(v) == 2;
    });
    EXPECT_TRUE(reader.do_it('r'));
}

TEST_P(SimpoView, WithoutAWriterItIsWhatRecoveryWouldLeave) {
    in.how.shared = false;
    in.open();
    EXPECT_EQ(refused(view<tally>::open(in.pool(), "it")), "bad_argument");
    auto it = in.make<tally>(small_log);
    (void)it.call<&tally::add_and_get>(1U);
    it.defer<&tally::add>(1);
    in.let_go();
    in.how.read_only = true;
    in.open();
    auto v = look();
    EXPECT_EQ(seen(v), 1U);
    EXPECT_EQ(get().call<&tally::count>(), 1U);
    in.how.read_only = false;
    in.open();
    in.how.read_only = true;
    in.open();
    EXPECT_EQ(look()->count(), 1U);
}

TEST_P(SimpoView, FunctionsThatItNamesAreKnown) {
    in.open();
    EXPECT_FALSE(view<unused>::open<&unused::add>(in.pool(), "it"));
    const detail::function& add = detail::registered<unused, &unused::add>::entry;
    object_head head{};
    head.class_version = 1;
    head.object_bytes = sizeof(unused);
    const record_head call{0, 0, add.id, add.schema, add.version, add.words, 1};
    EXPECT_EQ(find_function(head, call), &add);
}

TEST_P(SimpoView, WhatItMayNotIsSaid) {
    other_process writer([this](char order) {
        if (order != 'x') return write(order);
        return bool(object<test::digits>::create(in.pool(), "digits"));
    });
    ASSERT_TRUE(writer.do_it('o') && writer.do_it('n') && writer.do_it('x') && writer.do_it('i'));
    read();
    EXPECT_EQ(refused(view<test::digits>::open(in.pool(), "it")), "wrong_layout");
    EXPECT_EQ(refused(view<tally>::open(in.pool(), "digits")), "wrong_layout");
    EXPECT_EQ(refused(view<other_tally>::open(in.pool(), "it")), "wrong_layout");
    EXPECT_EQ(refused(object<tally>::find(in.pool(), "it")), "permission");
    EXPECT_EQ(refused(object<tally>::create(in.pool(), "more")), "permission");
    EXPECT_EQ(name(object<tally>::destroy(in.pool(), "it").code()), "permission");
    EXPECT_EQ(name(drop(in.pool(), "it").code()), "permission");
    EXPECT_EQ(refused(list(in.pool())), "permission");
    auto v = look();
    const pid_t child = ::fork();
    if (child == 0) {
        const bool kept = v->count() == 1 && v.refresh().code() == errc::in_use;
        const bool none = !view<tally>::open(in.pool(), "it");
        ::_exit(kept && none ? 0 : 1);
    }
    int how = 0;
    EXPECT_TRUE(::waitpid(child, &how, 0) == child && how == 0) << how;
    in.how.engines = {};
    EXPECT_EQ(name(in.try_open().code()), "bad_argument");
}

std::string bytes_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

TEST_P(SimpoView, StoresFlushesAndWaitsForNothing) {
    other_process writer([this](char order) { return write(order); });
    ASSERT_TRUE(writer.do_it('o') && writer.do_it('n') && writer.do_it('m') && writer.do_it('i'));
    read();
    const std::string before = bytes_of(in.path());
    static std::atomic<u64> heard;
    heard = 0;
    const persist::counters from = persist::thread_counters();
    {
        const trace::listening to([](const trace::event& what, const void*, std::size_t) {
            if (what == trace::store || what == trace::nt_store || what == trace::flush ||
                what == trace::fence)
                ++heard;
        });
        auto v = look();
        for (int i = 0; i < 100; ++i) (void)seen(v);
    }
    const persist::counters& to = persist::thread_counters();
    EXPECT_EQ(heard, 0U);
    EXPECT_EQ(to.flushes - from.flushes, 0U);
    EXPECT_EQ(to.fences - from.fences, 0U);
    EXPECT_EQ(to.ordering_points - from.ordering_points, 0U);
    EXPECT_EQ(to.log_bytes - from.log_bytes, 0U);
    EXPECT_EQ(to.pm_bytes - from.pm_bytes, 0U);
    in.close();
    EXPECT_TRUE(bytes_of(in.path()) == before);
}

/// The pool of a writer that has died; tests replace its words while a reader has the pool open.
class SimpoViewForged : public ::testing::Test {
protected:
    void SetUp() override {
        in_.how.shared = true;
        const pid_t child = ::fork();
        if (child == 0) {
            in_.open();
            auto it = in_.make<tally>(small_log);
            auto by = *caller<tally>::of(it, 5);
            it.checkpoint();
            (void)by.call<&tally::add_and_get>(1, 1U);
            by.defer<&tally::add>(2, 2U);
            it.sync();
            (void)object<tally>::create(in_.pool(), "other", small_log);
            auto more = *object<tally>::create(in_.pool(), "more", small_log);
            for (u64 n = 0; n < 3; ++n) {
                more.defer<&tally::add>(n);
                (void)more.call<&tally::add_and_get>(n);
            }
            auto wide = *object<tally>::create(
                in_.pool(), "wide", object_options{.log_bytes = 4_KiB, .callers = 2, .results = 2});
            wide.defer<&tally::add_all>(std::array<u64, 50>{5}); // 7 lines, and the group's end
            wide.sync();
            ::kill(::getpid(), SIGKILL);
        }
        ASSERT_EQ(::waitpid(child, nullptr, 0), child);
        in_.how.read_only = true;
        in_.open();
        file_ = ::open(in_.path().c_str(), O_RDWR);
        ASSERT_GE(file_, 0);
        super_ = word(named);
        head_ = word(super_ + sizeof(superblock));
        log_ = head_ + layout.log_offset;
    }
    void TearDown() override { ::close(file_); }
    u64 word(u64 at) const {
        u64 found = 0;
        EXPECT_EQ(::pread(file_, &found, sizeof found, static_cast<off_t>(at)), 8);
        return found;
    }
    void put(u64 at, const void* from, std::size_t bytes) {
        EXPECT_EQ(::pwrite(file_, from, bytes, static_cast<off_t>(at)), ssize_t(bytes));
    }
    void put(u64 at, u64 value) { put(at, &value, sizeof value); }
    /// Sums over head, copies and records hold again.
    void sum() {
        object_head head;
        EXPECT_EQ(::pread(file_, &head, sizeof head, off_t(head_)), ssize_t(sizeof head));
        head.check = head_check(head);
        std::vector<std::byte> copy(layout.copy_bytes);
        for (const unsigned which : {0U, 1U}) {
            EXPECT_EQ(
                ::pread(file_, copy.data(), copy.size(), off_t(head_ + layout.copy_offset(which))),
                ssize_t(copy.size()));
            head.copy_checks[which] = copy_check(head, copy.data(), copy.size());
        }
        put(head_, &head, sizeof head);
        for (u64 line = 0; line < 16; ++line) {
            record r{};
            EXPECT_EQ(::pread(file_, &r, line_bytes, off_t(log_ + line * line_bytes)), 64);
            if (r.words() > 4) continue; // of more than one line, or none
            r.head.check = r.sum(head.salt);
            put(log_ + line * line_bytes, &r, sizeof r.head);
        }
    }
    void forge(u64 from, u64 to) {
        const std::string whole = bytes_of(in_.path());
        for (u64 at = from; at < to; at += word_bytes) {
            const u64 was = word(at);
            for (const u64 value :
                 {u64{0}, u64{1}, ~u64{0}, was ^ 1, was ^ 2, was + line_bytes, was * 2,
                  was | 1UL << 40, was | 1UL << 63, head_, super_, word(super_ + 72),
                  in_.pool().size_bytes(), in_.pool().size_bytes() - line_bytes,
                  in_.pool().max_bytes(), in_.pool().max_bytes() - line_bytes}) {
                if (value == was) continue;
                for (const bool summed : {false, true}) {
                    auto held = view<tally>::open(in_.pool(), "it");
                    ASSERT_TRUE(held) << held.error().what();
                    EXPECT_EQ((*held)->count(), 2U);
                    put(at, value);
                    if (summed) sum();
                    const status again = held->refresh();
                    const auto anew = view<tally>::open(in_.pool(), "it");
                    for (const bool ok : {again.ok(), bool(anew)}) ++(ok ? shown_ : refused_);
                    if (!again.ok()) EXPECT_EQ((*held)->count(), 2U);
                    if (!anew) EXPECT_FALSE(anew.error().what().empty());
                    put(0, whole.data(), whole.size());
                }
            }
        }
    }

    static constexpr u64 named = root_words_offset + root_words::place_of_anchor(engine_simpo);
    static constexpr object_layout layout = layout_of(sizeof(tally), 16, {2, 2, 1});
    test::test_pool in_;
    int file_ = -1;
    u64 super_ = 0, head_ = 0, log_ = 0, refused_ = 0, shown_ = 0;
};

TEST_F(SimpoViewForged, WordsOfTheTable) {
    forge(super_, super_ + sizeof(superblock) + 3 * word_bytes);
    forge(named, named + word_bytes);
    EXPECT_GT(refused_, 0U);
    EXPECT_GT(shown_, 0U);
}

TEST_F(SimpoViewForged, WordsOfAHead) {
    forge(head_, head_ + sizeof(object_head));
    EXPECT_GT(refused_, 0U);
    EXPECT_GT(shown_, 0U);
}

TEST_F(SimpoViewForged, WordsOfALog) {
    forge(log_, log_ + 16 * line_bytes);
    EXPECT_GT(shown_, 0U);
}

TEST_F(SimpoViewForged, WordsOfATableOfCallers) {
    for (const unsigned copy : {0U, 1U}) {
        const u64 table = head_ + layout.copy_offset(copy) + layout.table_offset;
        forge(table, table + 2 * sizeof(caller_entry) + 2 * 24);
    }
    EXPECT_GT(refused_, 0U);
    EXPECT_GT(shown_, 0U);
}

/// What its writer left in a medium that may tear records.
class SimpoViewTorn : public SimpoViewForged {
protected:
    SimpoViewTorn() { in_.how.mode = mode::pmem; }
};

/// In a medium that keeps order it is known how many records count.
TEST_F(SimpoViewForged, ARecordThatIsGoneIsDamage) {
    const u64 log = word(super_ + sizeof(superblock) + 2 * word_bytes) + layout.log_offset;
    for (u64 place = 0; place < 6; ++place) {
        const u64 at = log + place * line_bytes + offsetof(record_head, position), was = word(at);
        put(at, was + 1);
        const auto anew = view<tally>::open(in_.pool(), "more");
        ASSERT_FALSE(anew);
        EXPECT_EQ(name(anew.error().code()), "corrupt") << anew.error().what();
        put(at, was);
    }
    EXPECT_EQ((*view<tally>::open(in_.pool(), "more"))->count(), 6U);
}

/// Records without checks: a checkpoint has made room for another one while the first was read.
TEST_F(SimpoViewForged, ARecordThatIsWrittenAgainWhileItIsReadIsNotShown) {
    const u64 head = word(super_ + sizeof(superblock) + 3 * word_bytes);
    const u64 torn = head + layout.log_offset + line_bytes;
    const u64 index = index_of(word(head + offsetof(object_head, salt)), 8, 0); // an empty copy
    EXPECT_EQ((*view<tally>::open(in_.pool(), "wide"))->count(), 50U);
    static std::function<void()> write;
    write = [&] {
        put(torn, u64{77});
        put(head + offsetof(object_head, resilient), index);
    };
    const trace::listening writer([](const trace::event& what, const void*, std::size_t) {
        if (what == believed::checked_on) write(); // the first line has been read
    });
    const auto seen = view<tally>::open(in_.pool(), "wide");
    ASSERT_TRUE(seen) << seen.error().what();
    EXPECT_EQ((*seen)->count(), 0U);
}

/// Recovery refuses such a log. A view showed the part before the damage, as if that were all.
TEST_F(SimpoViewTorn, ARecordThatIsGoneBeforeCommittedGroupsIsDamage) {
    const u64 log = word(super_ + sizeof(superblock) + 2 * word_bytes) + layout.log_offset;
    auto held = view<tally>::open(in_.pool(), "more");
    ASSERT_TRUE(held);
    ASSERT_EQ((*held)->count(), 6U);
    for (u64 place = 0; place < 6; ++place) {
        const u64 at = log + place * line_bytes + offsetof(record_head, position), was = word(at);
        ASSERT_EQ(was, place);
        for (const u64 value : {u64{0}, was + 1, was + 2, ~was}) {
            if (value == was) continue;
            put(at, value);
            const auto anew = view<tally>::open(in_.pool(), "more");
            const bool known = place < 3; // two groups end behind it; else no open can know
            EXPECT_EQ(bool(anew), !known) << place;
            if (!anew) EXPECT_EQ(name(anew.error().code()), "corrupt") << anew.error().what();
            else EXPECT_EQ((*anew)->count(), place < 4 ? 2U : 4U);
            EXPECT_TRUE(held->refresh().ok());
            EXPECT_EQ((*held)->count(), 6U) << "what was seen stays";
            put(at, was);
        }
    }
    EXPECT_EQ((*view<tally>::open(in_.pool(), "more"))->count(), 6U);
}

/// A writer that rolls back continues a whole log behind what it keeps. What a view has seen may
/// end at the same position.
TEST_F(SimpoViewForged, AnotherCheckpointAtTheSamePositionIsLookedAt) {
    auto held = view<tally>::open(in_.pool(), "it");
    ASSERT_TRUE(held);
    ASSERT_EQ((*held)->count(), 2U);
    const u64 resilient = head_ + offsetof(object_head, resilient);
    const u64 version = held->version(), salt = word(head_ + offsetof(object_head, salt));
    put(resilient,
        index_of(salt, version, copy_of(word(resilient)))); // into a copy without the call
    EXPECT_TRUE(held->refresh().ok());
    EXPECT_EQ(held->version(), version);
    EXPECT_EQ((*held)->count(), 0U);
}

/// Words change to others, and back, while they are read; sums are right at times.
TEST_F(SimpoViewForged, WordsThatChangeWhileTheyAreRead) {
    const std::string whole = bytes_of(in_.path());
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(60);
        std::mt19937_64 chance(1);
        const u64 parts[] = {named, super_, head_, log_};
        for (;;) {
            const u64 at = parts[chance() % 4] + chance() % 32 * word_bytes;
            const u64 values[] = {chance(), ~u64{0}, u64{1} << chance() % 64,
                                  head_,    super_,  word(at) + 64};
            put(at, values[chance() % 6]);
            if (chance() % 4 == 0) sum();
            put(0, whole.data(), whole.size());
        }
    }
    auto held = view<tally>::open(in_.pool(), "it");
    u64 shown = 0;
    for (int looks = 0; looks < 20'000; ++looks) {
        const auto anew = view<tally>::open(in_.pool(), "it");
        if (anew) ++shown;
        else EXPECT_FALSE(anew.error().what().empty());
        if (!held) held = view<tally>::open(in_.pool(), "it");
        else (void)held->refresh();
    }
    ::kill(child, SIGKILL);
    EXPECT_EQ(::waitpid(child, nullptr, 0), child);
    EXPECT_GT(shown, 0U);
}

/// A function that this build does not have; a checkpoint has made the call.
TEST_F(SimpoViewForged, UnknownFunctionsAreRefusedByName) {
    auto held = view<tally>::open(in_.pool(), "it");
    ASSERT_TRUE(held);
    u64 calls = 0;
    for (u64 line = log_; line < log_ + 16 * line_bytes; line += line_bytes) {
        const u64 function = word(line + offsetof(record_head, function));
        if (function == 0) continue;
        ++calls;
        put(line + offsetof(record_head, function), function ^ 1);
        sum();
        const auto anew = view<tally>::open(in_.pool(), "it");
        ASSERT_FALSE(anew);
        EXPECT_EQ(name(anew.error().code()), "function_changed") << anew.error().what();
        EXPECT_TRUE(held->refresh().ok()) << "it has made that call";
        put(line + offsetof(record_head, function), function);
        sum();
    }
    EXPECT_GT(calls, 0U);
}

} // namespace
} // namespace hf::simpo
