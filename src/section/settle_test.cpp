// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: what outside of sections changes a pool takes back nothing that has returned, and what has
//           returned is there
// after hf::settle, whichever engine it is of. Method: sections instrumented by hand; a child
// process works, and is killed; its parent opens the pool and looks.
#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/alloc.hpp>
#include <holdfast/author/staged.hpp>
#include <holdfast/clobber.hpp>
#include <holdfast/mod/map.hpp>
#include <holdfast/mod/vector.hpp>
#include <holdfast/pool.hpp>
#include <holdfast/redo.hpp>
#include <holdfast/simpo.hpp>
#include <holdfast/undo.hpp>

#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

using namespace hf;

struct Settle : ::testing::Test {
    Settle() { remove(); }
    ~Settle() override { remove(); }
    void remove() const {
        for (const char* suffix : {"", "-power"}) ::unlink((path + suffix).c_str());
    }
    open_options how() const {
        open_options o;
        o.layout = "settle/1";
        o.create_bytes = o.max_bytes = 1_MiB;
        o.mode = in;
        o.max_threads = 4;
        o.engines = {undo::engine({.durable = durability::by_next_section}), redo::engine(),
                     clobber::engine(), mod::engine(), simpo::engine()};
        return o;
    }
    pool open() const {
        auto opened = pool::open(path, how());
        if (!opened) fatal(opened.error());
        return std::move(*opened);
    }
    [[noreturn]] static void fatal(const status& s) {
        std::fprintf(stderr, "%s\n", s.what().c_str());
        ::_exit(2);
    }
    /// In a process that is killed behind it.
    void killed_after(const std::function<void(pool&)>& body) const {
        const pid_t child = ::fork();
        if (child == 0) {
            pool p = open();
            body(p);
            ::kill(::getpid(), SIGKILL);
        }
        int how = 0;
        ASSERT_EQ(::waitpid(child, &how, 0), child);
        ASSERT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
    }

    const std::string path = "/dev/shm/hf_settle_test." + std::to_string(::getpid());
    mode in = mode::pmem;
};

constexpr std::size_t slot_words = 8;
struct ring {
    alignas(64) std::uint64_t put;
    alignas(64) std::uint64_t taken;
    std::uint64_t sum;
    alignas(64) std::uint64_t slot[slot_words];
};
void fill(ring* r, std::uint64_t value) {
    std::array<std::uint64_t, slot_words> words;
    words.fill(value);
    staged::copy_words(r->slot, words.data(), sizeof words);
}

/// Adds one to 'count', and empties the slot where that is 'taken'.
template <class Log, class Store> void body(ring* r, std::uint64_t* count, Log&& log,
                                            Store&& store) {
    if (count == &r->taken) {
        log(&r->sum), store(&r->sum, r->sum * 10 + r->slot[0]);
        for (std::uint64_t& word : r->slot) log(&word), store(&word, 0);
    }
    log(count), store(count, *count + 1);
}
void store_now(std::uint64_t* to, std::uint64_t value) {
    *const_cast<volatile std::uint64_t*>(to) = value;
}
struct call {
    ring* r;
    std::uint64_t* count;
};
void clobber_body(const void* packed) {
    const auto& c = *static_cast<const call*>(packed);
    body(c.r, c.count, [](const std::uint64_t* at) { hf_clobber_log(at, 8); }, store_now);
}
constexpr hf_arg schema[] = {{0, 8, HF_ARG_POOL_POINTER}, {8, 8, HF_ARG_POOL_POINTER}};
const hf_txfunc function{HF_ABI_VERSION, sizeof(call), 7391, 1,           "count",
                         "here",         schema,       2,    clobber_body};
[[maybe_unused]] const bool registered = (hf_txfunc_register(&function), true);

void by_undo(ring* r, std::uint64_t* count) {
    const call args{r, count};
    hf_undo_begin(&function, &args);
    body(r, count, [](const std::uint64_t* at) { hf_undo_log(at, 8); }, store_now);
    hf_undo_commit();
}
void by_redo(ring* r, std::uint64_t* count) {
    const call args{r, count};
    hf_redo_begin(&function, &args);
    body(
        r, count, [](const std::uint64_t*) {},
        [](std::uint64_t* to, std::uint64_t value) {
            *static_cast<std::uint64_t*>(hf_redo_write(to, 8)) = value;
        });
    hf_redo_commit();
}
void by_clobber(ring* r, std::uint64_t* count) {
    const call args{r, count};
    hf_clobber_begin(&function, &args);
    clobber_body(&args);
    hf_clobber_commit();
}
using section = void (*)(ring*, std::uint64_t*);

TEST_F(Settle, ASlotThatIsFilledAgainTakesNoSectionBack) {
    for (const section by : {by_undo, by_redo, by_clobber})
        for (const bool links :
             {false, true}) { // the section that makes it reachable has returned as well
            killed_after([&](pool& p) {
                ring* const r = p.root<ring>();
                fill(r, 7);
                by(r, &r->put);
                by(r, &r->taken);
                fill(r, 9);
                if (links) by(r, &r->put);
            });
            const pool p = open();
            const ring* const r = const_cast<pool&>(p).root<ring>();
            EXPECT_EQ(r->taken, 1U);
            EXPECT_EQ(r->sum, 7U);
            EXPECT_EQ(r->put, links ? 2U : 1U);
            if (links) {
                for (const std::uint64_t word : r->slot) EXPECT_EQ(word, 9U);
            }
            remove();
        }
}

TEST_F(Settle, AnotherThreadFillsWhatALogTellsOf) {
    for (const section by : {by_redo, by_clobber}) {
        killed_after([&](pool& p) {
            ring* const r = p.root<ring>();
            fill(r, 7);
            by(r, &r->put);
            by(r, &r->taken);
            std::thread([&] {
                fill(r, 9);
                by(r, &r->put);
            }).join();
        });
        pool p = open();
        const ring* const r = p.root<ring>();
        EXPECT_EQ(r->taken, 1U);
        EXPECT_EQ(r->sum, 7U);
        EXPECT_EQ(r->put, 2U);
        for (const std::uint64_t word : r->slot) EXPECT_EQ(word, 9U);
        const pool closing = std::move(p);
        remove();
    }
}

/// Ordering points that filling takes behind a section.
std::uint64_t points_of(const std::function<void()>& filling) {
    const std::uint64_t before = persist::thread_counters().ordering_points;
    filling();
    return persist::thread_counters().ordering_points - before;
}

TEST_F(Settle, ABlockThatWasStagedSinceCostsNothingToFill) {
    pool p = open();
    ring* const r = p.root<ring>();
    const std::array<std::uint64_t, slot_words> words{};
    const std::pair<section, unsigned> engines[] = {{by_undo, 2}, {by_redo, 2}, {by_clobber, 1}};
    for (const auto& [by, settled] : engines) {
        by(r, &r->taken);
        void* const staged = staged::in(p, sizeof words)->release();
        EXPECT_EQ(points_of([&] { staged::copy_words(staged, words.data(), sizeof words); }), 0U);
        EXPECT_EQ(points_of([&] { staged::copy(p, staged, words.data(), sizeof words); }), 0U);
        EXPECT_EQ(points_of([&] { fill(r, 1); }), settled) << "other memory is settled";
        EXPECT_EQ(points_of([&] { fill(r, 2); }), 1U)
            << "once; filled twice it has a fence of its own";
        hf::staged(staged).reset();
    }
}

TEST_F(Settle, OfEngineRedoOnlyWhatItsLogTouchesIsSettled) {
    pool p = open();
    ring* const r = p.root<ring>();
    by_redo(r, &r->put); // says nothing of the slot
    EXPECT_EQ(points_of([&] { fill(r, 1); }), 0U);
}

TEST_F(Settle, InModeProcessNothingIsDue) {
    in = mode::process;
    pool p = open();
    ring* const r = p.root<ring>();
    by_clobber(r, &r->taken);
    EXPECT_EQ(points_of([&] { fill(r, 1); }), 0U);
}

using SettleDeathTest = Settle;

TEST_F(SettleDeathTest, WhatWasStoredElsewhereThanInAStagedBlockCannotBeSettledAnyMore) {
    for (const mode m : {mode::process, mode::pmem}) {
        in = m;
        remove();
        EXPECT_DEATH(
            {
                pool p = open();
                staged::note_written(p.root<ring>()->slot, 8);
            },
            "hf::staged::note_written.*expected bytes of a block that this thread has staged "
            "since its last section.*hf::staged::copy_words");
    }
}

TEST_F(Settle, UpdatesOfContainersAreThereAfterAKill) {
    for (const mode m : {mode::power, mode::pmem, mode::process}) {
        in = m;
        remove();
        killed_after([](pool& p) {
            auto numbers = *mod::map<std::uint64_t, std::uint64_t>::open(p, {"numbers"});
            if (auto s = numbers.insert(1, 10); !s) fatal(s.error());
            settle(p);
            std::thread([&] {
                if (auto s = numbers.insert(2, 20); !s) fatal(s.error());
            }).join();
            settle(p);
            const durable_together group{p}; // which never ends
            if (auto s = numbers.insert(3, 30); !s) fatal(s.error());
            settle(p);
            ::kill(::getpid(), SIGKILL);
        });
        pool p = open();
        auto numbers = *mod::map<std::uint64_t, std::uint64_t>::open(p, {"numbers"});
        EXPECT_EQ(numbers.size(), 3U) << name(m);
        const pool closing = std::move(p);
    }
}

class counter {
public:
    static constexpr simpo::class_name simpo_class{"counter", 1};
    void add(std::uint64_t more) noexcept { sum_ += more; }
    std::uint64_t sum() const noexcept { return sum_; }

private:
    std::uint64_t sum_ = 0;
};

TEST_F(Settle, DeferredCallsAreThereAfterAKill) {
    for (const mode m : {mode::power, mode::pmem, mode::process}) {
        in = m;
        remove();
        killed_after([](pool& p) {
            auto it = *simpo::object<counter>::create(p, "it");
            it.defer<&counter::add>(std::uint64_t{5});
            settle(p);
        });
        pool p = open();
        auto it = *simpo::object<counter>::find(p, "it");
        EXPECT_EQ(it.call<&counter::sum>(), 5U) << name(m);
    }
}

TEST_F(Settle, SectionsOfAGroupThatGoesOnAreThereAfterAKill) {
    in = mode::power;
    killed_after([](pool& p) {
        const durable_together group{p}; // which never ends
        ring* const r = p.root<ring>();
        by_redo(r, &r->put);
        settle(p);
        ::kill(::getpid(), SIGKILL);
    });
    pool p = open();
    EXPECT_EQ(p.root<ring>()->put, 1U);
}

/// They take effect at once, and its log would know nothing of it.
TEST_F(Settle, CallsThatAreForNoSectionEndTheProcessInOneWithItsName) {
    using one_call = void (*)(pool&, ring*, staged&);
    constexpr one_call calls[] = {
        [](pool&, ring*, staged& owner) { owner.reset(); },
        [](pool& p, ring*, staged&) { static_cast<void>(staged::in(p, 64)); },
        [](pool&, ring* r, staged&) { static_cast<void>(staged::near(r, 64)); },
        [](pool& p, ring*, staged& owner) { staged::copy(p, owner.get(), "12345678", 8); },
        [](pool&, ring*, staged& owner) { staged::copy_words(owner.get(), "12345678", 8); },
        [](pool&, ring*, staged& owner) { staged::note_written(owner.get(), 8); },
        [](pool& p, ring*, staged&) { settle(p); },
        [](pool& p, ring*, staged&) { return_spare_blocks(p); },
    };
    const std::string said = path + ".said";
    for (const one_call& one : calls) {
        const pid_t child = ::fork();
        if (child == 0) {
            pool p = open();
            (void)!::freopen(said.c_str(), "w", stderr);
            ::setvbuf(stderr, nullptr, _IONBF, 0);
            ring* const r = p.root<ring>();
            staged owner = std::move(*staged::in(p, 64));
            const call args{r, &r->put};
            hf_undo_begin(&function, &args);
            one(p, r, owner);
            ::_exit(0);
        }
        int how = 0;
        ASSERT_EQ(::waitpid(child, &how, 0), child);
        EXPECT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == SIGABRT) << &one - calls;
        std::ostringstream words;
        words << std::ifstream(said).rdbuf();
        EXPECT_NE(words.str().find("expected no open section, found count (here)"),
                  std::string::npos)
            << &one - calls << ": " << words.str();
        EXPECT_EQ(open().root<ring>()->put, 0U) << "rolled back";
    }
    ::unlink(said.c_str());
}

} // namespace
