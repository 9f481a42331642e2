// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: processes that read beside a writer see versions that do not change, even if a process is
// killed, closes or opens meanwhile. They keep nothing when they are gone. A process that may not
// read gets the reason. Method: two processes in order, over a channel. A reader is held up at each
// step of its announcement while the writer replaces and reclaims all that it can.
#include <mod/reader_steps.hpp>
#include <mod/store_impl.hpp>
#include <mod/test_support.hpp>
#include <pool/other_process.hpp>

#include <holdfast/copy.hpp>
#include <holdfast/mod/map.hpp>
#include <holdfast/mod/ordered_map.hpp>
#include <holdfast/mod/queue.hpp>
#include <holdfast/mod/set.hpp>
#include <holdfast/mod/stack.hpp>
#include <holdfast/mod/update.hpp>
#include <holdfast/mod/vector.hpp>

#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <functional>
#include <pthread.h>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace hf;
using namespace hf::literals;
using hf::test::other_process;
using numbers = mod::map<std::uint64_t, std::uint64_t>;
using row = mod::vector<std::uint64_t>;
using mod::reader_steps::step;

constexpr std::uint64_t count = 200;

class ModBeside : public mod::test::PoolTest {
protected:
    void SetUp() override {
        in.make_new(GetParam());
        in.close();
        in.how.shared = true;
    }
    /// The writer's orders: 'o'pen, 'c'lose, 'd'ie, 'w'rite one round, 'm'any, 'r'eclaim.
    bool write(char order) {
        switch (order) {
        case 'o': in.open(); return true;
        case 'c': in.close(); return true;
        case 'd': ::kill(::getpid(), SIGKILL); return false;
        case 'w': return next_round();
        case 'm': // so that reclaimed nodes are used again
            for (int i = 0; i < 100; ++i)
                if (!next_round()) return false;
            return true;
        case 'r': return in.store().collect().ok();
        case 'n': return in.store().account().retired == 0;
        case 't': return in.store().wait_for_trace().ok() && in.store().verify().ok();
        default: return false;
        }
    }
    /// Every entry gets the next number: in one update of a map, and one of a vector.
    bool next_round() {
        auto all = in.get<numbers>({"numbers"});
        auto list = in.get<row>({"row"});
        const std::uint64_t round = list.empty() ? 1 : list[0] + 1;
        const bool done = all.update([&](auto& to) {
                                 for (std::uint64_t i = 0; i < count; ++i)
                                     to.insert_or_assign(i, round);
                             })
                              .ok();
        return done && list.update([&](auto& to) {
                               to.clear();
                               for (std::uint64_t i = 0; i < count; ++i) to.push_back(round);
                           })
                           .ok();
    }
    void read() {
        in.how.read_only = true;
        in.open();
    }
    /// The one number that all entries have; 0: they differ, or other entries are there.
    template <class Reads> static std::uint64_t round_of(const Reads& map) {
        std::uint64_t found = 0, seen = 0;
        for (const auto& [key, round] : map) {
            if (key >= count || (found != 0 && round != found)) return 0;
            found = round;
            ++seen;
        }
        return seen == count && map.size() == count ? found : 0;
    }
    template <class Reads> static std::uint64_t round_of_row(const Reads& list) {
        if (list.size() != count) return 0;
        for (std::uint64_t i = 0; i < count; ++i)
            if (list[i] != list[0]) return 0;
        return list[0];
    }
    std::string refused(const open_options& how, errc code) {
        const auto opened = hf::pool::open(in.path(), how);
        EXPECT_FALSE(opened);
        if (opened) return "";
        EXPECT_EQ(name(opened.error().code()), name(code)) << opened.error().what();
        return opened.error().what();
    }
};

TEST_P(ModBeside, SnapshotsStayWhileAnotherProcessWrites) {
    other_process writer([this](char order) { return write(order); });
    ASSERT_TRUE(writer.do_it('o') && writer.do_it('w'));
    read();
    auto all = in.get<numbers>({"numbers"});
    auto list = in.get<row>({"row"});
    EXPECT_EQ(round_of(all), 1U);
    std::vector<numbers::version> kept;
    for (std::uint64_t round = 1; round <= 5; ++round) {
        const auto now = all.snapshot();
        ASSERT_EQ(round_of(now), (round - 1) * 101 + 1);
        kept.push_back(now);
        const auto row_now = list.snapshot();
        ASSERT_TRUE(writer.do_it('m') && writer.do_it('r') && writer.do_it('w'));
        EXPECT_EQ(round_of_row(row_now), (round - 1) * 101 + 1);
        for (std::uint64_t old = 1; old <= round; ++old)
            EXPECT_EQ(round_of(kept[old - 1]), (old - 1) * 101 + 1) << round;
    }
    EXPECT_EQ(round_of(all), 1U) << "a handle reads what it did at first";
    all.refresh();
    EXPECT_EQ(round_of(all), 506U);
    EXPECT_FALSE(writer.do_it('n'));
    kept.clear();
    EXPECT_TRUE(writer.do_it('r'));
    EXPECT_TRUE(writer.do_it('n'));
    EXPECT_TRUE(writer.do_it('t'));
}

/// The hazard: the version is replaced, and its memory used again, between two steps of a reader.
TEST_P(ModBeside, NoStepOfAReaderIsTooLate) {
    other_process writer([this](char order) { return write(order); });
    ASSERT_TRUE(writer.do_it('o') && writer.do_it('w'));
    read();
    auto all = in.get<numbers>({"numbers"});
    static other_process* beside;
    static step at;
    static int times;
    beside = &writer;
    for (const step each : {step::read_sequence, step::announced})
        for (const int again : {1, 3}) {
            at = each;
            times = again;
            mod::reader_steps::taken = [](step now) {
                if (now != at || times == 0) return;
                --times;
                EXPECT_TRUE(beside->do_it('m') && beside->do_it('r'));
            };
            const auto seen = all.snapshot();
            mod::reader_steps::taken = nullptr;
            const std::uint64_t round = round_of(seen);
            EXPECT_NE(round, 0U);
            EXPECT_TRUE(writer.do_it('m') && writer.do_it('r') && writer.do_it('m'));
            EXPECT_EQ(round_of(seen), round);
        }
}

/// (5) of reader.cpp: what a writer alone would store in place.
TEST_P(ModBeside, ElementsDoNotChangeUnderAReader) {
    other_process writer([this](char order) {
        if (order != 's') return write(order);
        auto list = in.get<row>({"row"});
        bool done = true;
        for (std::uint64_t i = 0; i < count; ++i) done = list.set(i, 1'000'000).ok() && done;
        for (std::uint64_t i = 1; i < count; ++i) done = list.swap(0, i).ok() && done;
        return done;
    });
    ASSERT_TRUE(writer.do_it('o') && writer.do_it('w'));
    read();
    auto list = in.get<row>({"row"});
    const auto seen = list.snapshot();
    ASSERT_TRUE(writer.do_it('s'));
    EXPECT_EQ(round_of_row(seen), 1U);
    EXPECT_EQ(round_of_row(list.snapshot()), 1'000'000U);
}

TEST_P(ModBeside, ReadersOutliveWriters) {
    for (const char ends : {'d', 'c'}) {
        in.how.read_only = false;
        auto writer = std::make_unique<other_process>([this](char order) { return write(order); });
        ASSERT_TRUE(writer->do_it('o') && writer->do_it('m') && writer->do_it('w'));
        read();
        auto all = in.get<numbers>({"numbers"});
        const auto seen = all.snapshot();
        const std::uint64_t round = round_of(seen);
        ASSERT_NE(round, 0U);
        ASSERT_TRUE(writer->do_it('m'));
        EXPECT_EQ(writer->do_it(ends), ends == 'c');
        writer.reset(); // the kernel drops its lock last of all
        EXPECT_EQ(round_of(seen), round);
        EXPECT_NE(round_of(all.snapshot()), 0U) << "with nobody there";
        in.how.read_only =
            false; // for the next writer, which is made by fork() and has no pool open
        other_process next([this](char order) { return write(order); });
        ASSERT_TRUE(next.do_it('o') && next.do_it('t')); // the version that is read loses nothing
        for (int i = 0; i < 3; ++i)
            ASSERT_TRUE(next.do_it('m') && next.do_it('r') && next.do_it('t'));
        EXPECT_EQ(round_of(seen), round) << ends;
        EXPECT_EQ(round_of(all.snapshot()), round + 400);
        EXPECT_TRUE(next.do_it('c'));
        EXPECT_EQ(round_of(seen), round);
    }
}

TEST_P(ModBeside, AKilledReaderKeepsNothing) {
    other_process reader([this](char) {
        static std::vector<numbers::version> kept;
        read();
        kept.push_back(in.get<numbers>({"numbers"}).snapshot());
        return round_of(kept.back()) != 0;
    });
    in.open();
    ASSERT_TRUE(write('w'));
    ASSERT_TRUE(reader.do_it('r'));
    ASSERT_TRUE(write('m') && write('r'));
    EXPECT_FALSE(write('n'));
    reader.kill();
    EXPECT_TRUE(write('r'));
    EXPECT_TRUE(write('n'));
}

TEST_P(ModBeside, SeesWhatThePoolGrowsBy) {
    in.how.max_bytes = 1_GiB;
    other_process writer([this](char order) {
        if (order != 'g') return write(order);
        auto all = in.get<mod::map<std::uint64_t, std::string>>({"texts"});
        const std::uint64_t size = in.pool().size_bytes();
        for (std::uint64_t i = 0; i < 3000; ++i)
            (void)all.insert_or_assign(i, std::string(4000, 'x'));
        return in.pool().size_bytes() > 4 * size;
    });
    ASSERT_TRUE(writer.do_it('o'));
    read();
    EXPECT_EQ(name((numbers::open(in.pool(), {"texts"}).error().code())), "not_found");
    ASSERT_TRUE(writer.do_it('g'));
    auto all = in.get<mod::map<std::uint64_t, std::string>>({"texts"});
    ASSERT_EQ(all.size(), 3000U);
    for (std::uint64_t i = 0; i < 3000; ++i) ASSERT_EQ(*all.get(i), std::string(4000, 'x'));
    EXPECT_TRUE(writer.do_it('c')); // a seal behind the end is no part of it
    EXPECT_EQ(all.snapshot().size(), 3000U);
}

TEST_P(ModBeside, AReaderThatSleepsFillsThePoolAndIsNamed) {
    in.how.max_bytes = 8_MiB;
    in.how.shared = false;
    in.make_new(GetParam(), 2_MiB);
    in.close();
    in.how.max_bytes = 0;
    in.how.shared = true;
    other_process reader([this](char order) {
        static std::vector<numbers::version> kept;
        if (order == 'r') read(), kept.push_back(in.get<numbers>({"numbers"}).snapshot());
        if (order == 'l') kept.clear(), in.close();
        return true;
    });
    in.open();
    ASSERT_TRUE(write('w'));
    ASSERT_TRUE(reader.do_it('r'));
    auto all = in.get<numbers>({"numbers"});
    status full;
    for (std::uint64_t i = 0; full.ok() && i < 1'000'000; ++i)
        if (const auto done = all.insert_or_assign(i % count, i); !done) full = done.error();
    EXPECT_EQ(name(full.code()), "pool_full");
    EXPECT_NE(full.what().find("commits old"), std::string::npos) << full.what();
    ASSERT_TRUE(reader.do_it('l'));
    for (std::uint64_t i = 0; i < 100'000; ++i) ASSERT_TRUE(all.insert_or_assign(i % count, i));
}

TEST_P(ModBeside, EveryContainerIsRead) {
    using mod::test::told;
    other_process writer([this](char) {
        in.open();
        auto set = in.get<mod::set<std::string>>({"set"});
        auto ordered = in.get<mod::ordered_map<std::uint64_t, std::string>>({"ordered"});
        auto stack = in.get<mod::stack<std::uint64_t>>({"stack"});
        auto queue = in.get<mod::queue<std::uint64_t>>({"queue"});
        auto one = in.get<numbers>({"one", "both", {"one", "other"}});
        auto other = in.get<row>({"other", "both", {"one", "other"}});
        for (std::uint64_t i = 0; i < count; ++i) {
            told(set.insert(std::to_string(i)));
            told(ordered.insert(i, std::to_string(i)));
            told(stack.push(i));
            told(queue.push(i));
            told(one.insert(i, i));
            told(other.push_back(i));
        }
        return true;
    });
    ASSERT_TRUE(writer.do_it('o'));
    read();
    auto set = in.get<mod::set<std::string>>({"set"}).snapshot();
    auto ordered = in.get<mod::ordered_map<std::uint64_t, std::string>>({"ordered"}).snapshot();
    auto stack = in.get<mod::stack<std::uint64_t>>({"stack"}).snapshot();
    auto queue = in.get<mod::queue<std::uint64_t>>({"queue"}).snapshot();
    auto one = in.get<numbers>({"one", "both", {"one", "other"}}).snapshot();
    auto other = in.get<row>({"other", "both", {"one", "other"}}).snapshot();
    EXPECT_EQ(set.size() + stack.size() + queue.size() + one.size() + other.size(), 5 * count);
    std::uint64_t next = 0;
    for (const auto& [key, text] : ordered) {
        EXPECT_EQ(key, next);
        EXPECT_EQ(text, std::to_string(next++));
    }
    EXPECT_EQ(next, count);
    EXPECT_TRUE(set.contains("17"));
    EXPECT_EQ(stack.top(), count - 1);
    EXPECT_EQ(queue.front(), 0U);
    EXPECT_EQ(*one.get(7), 7U);
    EXPECT_EQ(other[7], 7U);
}

TEST_P(ModBeside, AReaderChangesNothing) {
    other_process writer([this](char order) { return write(order); });
    ASSERT_TRUE(writer.do_it('o') && writer.do_it('w'));
    read();
    auto all = in.get<numbers>({"numbers"});
    const auto said = [](const status& s) { return std::string(name(s.code())); };
    EXPECT_EQ(said(all.insert_or_assign(1, 1).error()), "permission");
    EXPECT_EQ(said(all.clear()), "permission");
    EXPECT_EQ(said(in.get<row>({"row"}).set(1, 1)), "permission");
    EXPECT_EQ(said(in.get<row>({"row"}).swap(1, 2)), "permission");
    EXPECT_EQ(said(all.commit(all.snapshot().insert(1000, 1))), "permission");
    auto list = in.get<row>({"row"});
    EXPECT_EQ(
        said(mod::update(std::tie(all, list), [](auto& a, auto& b) { a.clear(), b.clear(); })),
        "permission");
    EXPECT_EQ(said(in.store().collect()), "permission");
    EXPECT_EQ(said(in.pool().find_root<int>().error()), "permission");
    EXPECT_EQ(said(in.pool().copy_to(in.path() + ".copy").error()), "permission");
    EXPECT_EQ(said(numbers::open(in.pool(), {"none"}).error()), "not_found");
    EXPECT_EQ(said(row::open(in.pool(), {"numbers"}).error()), "wrong_layout");
    EXPECT_EQ(round_of(all), 1U);
    EXPECT_TRUE(writer.do_it('t'));
}

TEST_P(ModBeside, WhoMayNotComeIsToldWhy) {
    open_options alone = in.how, reads = in.how, both = in.how;
    alone.shared = false;
    reads.read_only = true;
    { // a reader, and writers
        other_process reader([this](char) { return read(), true; });
        ASSERT_TRUE(reader.do_it('r'));
        refused(alone, errc::in_use);
        both.max_bytes = 2_GiB;
        EXPECT_NE(refused(both, errc::bad_argument).find("max_bytes"), std::string::npos);
    }
    { // a writer that is alone, while it lives and after
        other_process writer([&](char order) {
            in.how = alone;
            return write(order);
        });
        ASSERT_TRUE(writer.do_it('o') && writer.do_it('w'));
        refused(reads, errc::in_use);
        writer.kill();
        EXPECT_NE(refused(reads, errc::torn).find("alone with it or had not yet recovered it"),
                  std::string::npos);
        in.how = alone;
        in.open();
        in.close();
    }
    both = reads;
    both.engines = {};
    EXPECT_NE(refused(both, errc::bad_argument).find("mod"), std::string::npos);
    both = reads;
    both.salvage = true;
    refused(both, errc::bad_argument);
    both = reads;
    both.layout = "another";
    refused(both, errc::wrong_layout);
    both = in.how = reads;
    both.read_only = false;
    both.mode = mode::power;
    refused(both, errc::mode_unavailable);
    // Something where the pool has its place: it is read elsewhere.
    in.open();
    void* const place =
        const_cast<void*>(static_cast<const void*>(&in.pool().internals().file->base()[0]));
    in.close();
    ASSERT_NE(
        ::mmap(place, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
        MAP_FAILED);
    in.how = reads;
    in.open();
    EXPECT_TRUE(in.pool().relocated());
    EXPECT_EQ(round_of(in.get<numbers>({"numbers"})), 1U);
    ::munmap(place, 4096);
}

/// A child of fork() cannot use its parent's open pool, nor that pool's announcements; it may open
/// the pool by itself.
TEST_P(ModBeside, AReadersChildLetsGoOfNothing) {
    other_process writer([this](char order) { return write(order); });
    ASSERT_TRUE(writer.do_it('o') && writer.do_it('m'));
    read();
    auto all = in.get<numbers>({"numbers"});
    auto inherited = all.snapshot();
    const std::uint64_t round = round_of(inherited);
    ASSERT_NE(round, 0U);
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(60); // it hangs
        auto another = all.snapshot();
        another = {};
        in.close();
        in.open(); // most likely by the same descriptor
        const auto mine = in.get<numbers>({"numbers"}).snapshot();
        const std::uint64_t seen = round_of(mine);
        inherited = {};
        const bool done = writer.do_it('m') && writer.do_it('r') && writer.do_it('m');
        ::_exit(done && seen == round && round_of(mine) == seen ? 0 : 1);
    }
    int how = 0;
    EXPECT_TRUE(::waitpid(child, &how, 0) == child && how == 0) << how;
    EXPECT_EQ(round_of(inherited), round);
}

/// The hazard: one more container than were counted is found.
TEST_P(ModBeside, AContainerIsMadeWhileItIsLookedFor) {
    other_process writer([this](char order) {
        if (order != 'g') return write(order);
        (void)in.get<numbers>({"late"});
        return true;
    });
    ASSERT_TRUE(writer.do_it('o') && writer.do_it('w'));
    read();
    static other_process* beside;
    beside = &writer;
    mod::reader_steps::taken = [](step now) {
        if (now == step::counted) EXPECT_TRUE(beside->do_it('g'));
    };
    const auto early = numbers::open(in.pool(), {"late"});
    mod::reader_steps::taken = nullptr;
    EXPECT_TRUE(!early && early.error().code() == errc::not_found);
    EXPECT_TRUE(in.get<numbers>({"late"}).empty());
}

/// A thread finds out what older readers have let go of. Without such a thread nothing of theirs is
/// reclaimed.
TEST_P(ModBeside, OlderReadersKeepTheirVersionsWithoutAThread) {
    auto first = std::make_unique<other_process>([this](char order) { return write(order); });
    ASSERT_TRUE(first->do_it('o') && first->do_it('m'));
    other_process next([this](char order) {
        if (order != 'o') return write(order);
        pthread_attr_t none;
        ::pthread_attr_init(&none);
        ::pthread_attr_setstacksize(&none, std::size_t{1} << 46);
        ::pthread_setattr_default_np(&none);
        return write(order);
    });
    read();
    auto all = in.get<numbers>({"numbers"});
    auto list = in.get<row>({"row"});
    const auto seen = all.snapshot();
    const auto seen_row = list.snapshot();
    const std::uint64_t round = round_of(seen);
    ASSERT_TRUE(first->do_it('m'));
    first->kill();
    ASSERT_TRUE(next.do_it('o') && next.do_it('t'));
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(next.do_it('m') && next.do_it('r') && next.do_it('t'));
    EXPECT_EQ(round_of(seen), round);
    EXPECT_EQ(round_of_row(seen_row), round);
}

/// A limit on its addresses keeps a reader from what the pool grows by: it gets that reason, and
/// sees nothing else.
TEST_P(ModBeside, AReaderWithoutRoomToGrowIsToldSo) {
    other_process writer([this](char order) {
        if (order != 'g') return write(order);
        auto texts = in.get<mod::map<std::uint64_t, std::string>>({"texts"});
        for (std::uint64_t i = 0; i < 3000; ++i)
            (void)texts.insert_or_assign(i, std::string(4000, 'x'));
        return write('w');
    });
    ASSERT_TRUE(writer.do_it('o') && writer.do_it('w'));
    other_process reader([&](char) {
        const rlimit little{512_MiB, RLIM_INFINITY};
        if (::setrlimit(RLIMIT_AS, &little) != 0) return false;
        read();
        auto all = in.get<numbers>({"numbers"});
        if (round_of(all.snapshot()) != 1 || !writer.do_it('g')) return false;
        try {
            return round_of(all.snapshot()) == 2;
        } catch (const std::bad_alloc&) {
            return true;
        }
    });
    EXPECT_TRUE(reader.do_it('r'));
}

/// The first copy of the header bounds reads: if that copy is damaged, nothing may look empty.
TEST_P(ModBeside, OneHeaderCopyIsEnoughOrItIsRefused) {
    in.open();
    ASSERT_TRUE(write('w'));
    in.close();
    std::fstream file(in.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.write(std::string(4096, '\0').data(), 4096);
    file.close();
    open_options beside = in.how;
    beside.read_only = true;
    refused(beside, errc::corrupt);
    in.how.shared = false;
    read();
    EXPECT_EQ(round_of(in.get<numbers>({"numbers"}).snapshot()), 1U);
    in.how.read_only = false;
    in.open(); // which mends it
    in.how = beside;
    in.open();
    EXPECT_EQ(round_of(in.get<numbers>({"numbers"}).snapshot()), 1U);
}

/// The pool was closed, so nobody looks at the containers before a reader does.
TEST_P(ModBeside, DamagedContainersAreRefused) {
    in.open();
    (void)in.get<numbers>({"one", "both", {"one", "other"}}).insert(1, 1);
    const std::uint64_t at = in.pool().offset_of(&in.store().internals().cells()[0].members);
    in.close();
    std::fstream file(in.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(at));
    file.put(60);
    file.close();
    refused(in.how, errc::corrupt);
    read();
    const auto opened = numbers::open(in.pool(), {"one", "both", {"one", "other"}});
    ASSERT_FALSE(opened);
    EXPECT_EQ(name(opened.error().code()), name(errc::corrupt));
}

/// Numbers that no writer has counted to: they have no lock, or share the lock of another number.
TEST_P(ModBeside, ForgedNumbersAreRefused) {
    in.open();
    ASSERT_TRUE(write('w'));
    in.close();
    for (const std::uint64_t forged :
         {~std::uint64_t{0}, ~std::uint64_t{0} - 1, std::uint64_t{1} << 63, std::uint64_t{1} << 62,
          (std::uint64_t{1} << 62) - 3}) {
        std::fstream file(in.path(), std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(reader_words_offset);
        file.write(reinterpret_cast<const char*>(&forged), sizeof forged);
        file.close();
        for (const bool reads : {true, false}) {
            open_options how = in.how;
            how.read_only = reads;
            EXPECT_NE(refused(how, errc::corrupt).find("last commit"), std::string::npos) << forged;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Modes, ModBeside, testing::ValuesIn(mod::test::both_modes),
                         mod::test::mode_name);

} // namespace
