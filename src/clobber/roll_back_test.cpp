// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: no pool is lost to its own recovery. A section of engine clobber that cannot be completed
// (it aborts, faults, loops, belongs to another build, finds no room) leaves a pool that opens with
// recovery_policy::roll_back, every byte and every block as before the section. Method: a section
// instrumented by hand, with inputs and outputs, blocks taken and freed; a child is killed before
// each of its steps; then everything is compared with what stood before.
#include <log/lane.hpp>
#include <open/pool_impl.hpp>
#include <pool/believed.hpp>
#include <pool/header.hpp>
#include <trace/trace.hpp>

#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/alloc.hpp>
#include <holdfast/author/blocks.hpp>
#include <holdfast/author/persist.hpp>
#include <holdfast/author/staged.hpp>
#include <holdfast/clobber.hpp>
#include <holdfast/undo.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace {

using namespace hf;

constexpr std::size_t wide = 600; // words: more than half a lane of the pool holds

struct node {
    std::uint64_t words[30];
};
struct root {
    std::uint64_t input, half_input;
    std::uint64_t blind[6];
    node* head;
    std::uint64_t array[64];
    std::uint64_t table[wide];
};

enum class trouble : std::uint8_t { none, aborts, terminates, null, spins, spins_storing, no_room };

// In this process.
int steps_left = -1;
trouble in_section = trouble::none;
volatile int always = 1;

void step() {
    if (steps_left >= 0 && steps_left-- == 0) ::kill(::getpid(), SIGKILL);
}
template <class T> void over_input(T* to, T value) {
    hf_clobber_log(to, sizeof(T));
    step();
    *const_cast<volatile T*>(to) = value;
    step();
}
template <class T> void blind(T* to, T value) {
    hf_note_store(to, sizeof(T));
    step();
    *const_cast<volatile T*>(to) = value;
    step();
}

__attribute__((no_sanitize("address", "undefined"))) void misbehave(root* r) {
    switch (in_section) {
    case trouble::none: return;
    case trouble::aborts: std::abort();
    case trouble::terminates: std::terminate();
    case trouble::null: *static_cast<volatile int*>(nullptr) = 1; return;
    case trouble::spins:
        while (always != 0) {}
        return;
    case trouble::spins_storing:
        while (always != 0) {
            hf_note_store(&r->blind[4], 8);
            const_cast<volatile std::uint64_t&>(r->blind[4]) += 1;
        }
        return;
    case trouble::no_room: hf_pool_full(40);
    }
}

struct change_args {
    root* r;
    std::uint64_t by;
};
void change_body(const change_args& a) {
    root* r = a.r;
    blind(&r->blind[0], a.by);
    over_input(&r->input, r->input + a.by);
    auto* fresh = static_cast<node*>(hf_alloc(sizeof(node)));
    hf_note_store(fresh, sizeof *fresh);
    for (std::uint64_t& w : fresh->words) w = a.by;
    step();
    node* old = r->head;
    over_input(&r->head, fresh);
    if (old != nullptr) hf_free(old);
    hf_note_store(&r->blind[1], 16); // two in one note
    r->blind[1] = r->blind[2] = a.by;
    step();
    blind(&r->blind[0], a.by + 1);             // twice
    over_input(&r->blind[0], r->blind[0] + 1); // what it has stored itself
    hf_note_store(r->array, sizeof r->array);
    for (std::uint64_t& w : r->array) w = a.by;
    step();
    blind(reinterpret_cast<std::uint8_t*>(&r->blind[5]) + 3, std::uint8_t{7}); // part of a word
    misbehave(r);
    blind(&r->blind[3], a.by);
    over_input(&r->half_input, r->half_input + 1);
}
/// Overwrites more words, one by one, than a lane holds records of.
void table_body(const change_args& a) {
    over_input(&a.r->input, a.r->input + a.by);
    for (std::uint64_t& w : a.r->table) over_input(&w, w + a.by);
    misbehave(a.r);
}
/// The same as an output, in one note.
void fill_body(const change_args& a) {
    over_input(&a.r->input, a.r->input + a.by);
    hf_note_store(a.r->table, sizeof a.r->table);
    step();
    for (std::uint64_t& w : a.r->table) w = a.by;
    step();
    over_input(&a.r->half_input, a.r->half_input + 1);
}
/// Keeps what it overwrites behind its first step alone.
void late_body(const change_args& a) {
    over_input(&a.r->input, a.r->input + a.by);
    blind(&a.r->blind[0], a.by);
}

const hf_arg schema[] = {{0, 8, HF_ARG_POOL_POINTER}, {8, 8, HF_ARG_VALUE}};
template <void (*Body)(const change_args&)> void again(const void* packed) {
    Body(*static_cast<const change_args*>(packed));
}
const hf_txfunc change{HF_ABI_VERSION,    sizeof(change_args),  7301,   1,
                       "change",          "roll_back_test.cpp", schema, 2,
                       again<change_body>};
const hf_txfunc table{HF_ABI_VERSION,   sizeof(change_args),  7302,   1,
                      "table",          "roll_back_test.cpp", schema, 2,
                      again<table_body>};
const hf_txfunc fill{HF_ABI_VERSION,  sizeof(change_args),  7303,   1,
                     "fill",          "roll_back_test.cpp", schema, 2,
                     again<fill_body>};
const hf_txfunc late{HF_ABI_VERSION,  sizeof(change_args),  7304,   1,
                     "late",          "roll_back_test.cpp", schema, 2,
                     again<late_body>};
[[maybe_unused]] const bool registered = [] {
    for (const hf_txfunc* f : {&change, &table, &fill, &late}) hf_txfunc_register(f);
    return true;
}();

void run(const hf_txfunc& function, root* r, std::uint64_t by) {
    const change_args args{r, by};
    hf_clobber_begin(&function, &args);
    function.re_execute(&args);
    step();
    hf_clobber_commit();
}

/// Everything that a section may change.
struct content {
    root r;
    node at_head;
    std::uint64_t blocks, bytes;
    static content of(pool& p) {
        content c{};
        const root* r = p.root<root>();
        std::memcpy(&c.r, r, sizeof c.r);
        if (r->head != nullptr) c.at_head = *r->head;
        const alloc_account sum = account(p);
        c.blocks = sum.blocks;
        c.bytes = sum.block_bytes;
        return c;
    }
    bool operator==(const content& o) const { return std::memcmp(this, &o, sizeof *this) == 0; }
};

struct setup {
    const char* name;
    hf::mode mode;
    bool eadr;
};

class RollBack : public ::testing::TestWithParam<setup> {
protected:
    static std::vector<engine_ptr> engines(bool keeping) {
        return {clobber::engine({.keep_overwritten = keeping, .recovery_ms_max = 20}),
                undo::engine()};
    }
    void SetUp() override {
        path = "/dev/shm/hf_roll_back_test." + std::to_string(::getpid());
        ::unlink(path.c_str());
        options.layout = "roll_back_test/1";
        options.create_bytes = options.max_bytes = 256_KiB;
        options.max_threads = 2;
        options.mode = GetParam().mode;
        options.expert.eadr = GetParam().eadr;
        options.engines = engines(true);
        rolling = options;
        rolling.recovery = recovery_policy::roll_back;
        steps_left = -1;
        in_section = trouble::none;
    }
    void TearDown() override { ::unlink(path.c_str()); }

    /// True when 'body' ended by itself; else it was killed, or aborted.
    static bool in_child(const std::function<void()>& body) {
        const pid_t child = ::fork();
        if (child == 0) {
            const rlimit no_core{0, 0};
            ::setrlimit(RLIMIT_CORE, &no_core);
            ::signal(SIGABRT, SIG_DFL);
            body();
            ::_exit(::testing::Test::HasFailure() ? 3 : 0);
        }
        int how = 0;
        EXPECT_EQ(::waitpid(child, &how, 0), child);
        EXPECT_TRUE(WIFSIGNALED(how) || WEXITSTATUS(how) == 0);
        return WIFEXITED(how);
    }
    /// A pool in which a section has been before; what it holds.
    content made() {
        ::unlink(path.c_str());
        auto p = pool::open(path, options);
        EXPECT_TRUE(p) << p.error().what();
        run(change, p->root<root>(), 3);
        return content::of(*p);
    }
    /// Runs 'function' in a child that dies before step 'k'; true when it ends. 'after': what the
    /// pool holds then.
    bool dies(const hf_txfunc& function, int k) {
        return in_child([&] {
            auto p = pool::open(path, options);
            ASSERT_TRUE(p) << p.error().what();
            steps_left = k;
            run(function, p->root<root>(), 5);
            steps_left = -1;
            ::kill(::getpid(), SIGKILL); // it is finished, and its mark may be left out
        });
    }
    content opened(const open_options& with) {
        auto p = pool::open(path, with);
        EXPECT_TRUE(p) << p.error().what();
        if (!p) return {};
        report = p->recovered();
        return content::of(*p);
    }
    /// The reason why the pool cannot be opened.
    status refused(const open_options& with) {
        auto p = pool::open(path, with);
        EXPECT_FALSE(p);
        return p ? status{} : p.error();
    }
    /// A pool that nobody can roll back for certain is not shown as if it were, unless insisted on.
    void expect_shown_under_salvage_only() {
        open_options look = options;
        look.read_only = true;
        const status why = refused(look);
        EXPECT_EQ(name(why.code()), "torn");
        for (const char* part : {"cannot be rolled back", "complete it", "salvage"})
            EXPECT_NE(why.what().find(part), std::string::npos) << why.what();
        look.salvage = true;
        opened(look);
        EXPECT_EQ(report.rolled_back, 1U);
    }

    std::string path;
    open_options options, rolling;
    recovery_report report;
};

constexpr int steps = 20; // of change_body, and the one before the commit

TEST_P(RollBack, ASectionKilledAtAnyStepIsGone) {
    for (int k = 0; k <= steps; ++k) {
        const content before = made();
        dies(change, k);
        const content now = opened(rolling);
        if (report.rolled_back == 1) {
            ASSERT_EQ(now, before) << "step " << k;
        } else { // what is finished stays
            ASSERT_EQ(k, steps);
            ASSERT_EQ(now.r.input, before.r.input + 5);
            ASSERT_EQ(now.r.half_input, before.r.half_input + 1);
        }
    }
}

// Whether its log can show it or not.
TEST_P(RollBack, ASectionThatReturnedIsNotPendingAfterAKill) {
    for (const hf_txfunc* function : {&change, &table, &fill}) {
        made();
        dies(*function, 1 << 20);
        opened(rolling);
        EXPECT_EQ(report.sections_pending, 0U) << function->name;
    }
}

// Sections take turns in the halves of a lane: what the last but one has kept is still there.
TEST_P(RollBack, WhatAnEarlierSectionKeptIsNotRestored) {
    void* const shared =
        ::mmap(nullptr, sizeof(content), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(shared, MAP_FAILED);
    for (const int k : {0, 1}) { // it has kept nothing yet
        made();
        EXPECT_FALSE(in_child([&] {
            auto p = pool::open(path, options);
            ASSERT_TRUE(p) << p.error().what();
            for (const std::uint64_t by : {4, 6}) run(late, p->root<root>(), by);
            const content before = content::of(*p);
            std::memcpy(shared, &before, sizeof before);
            steps_left = k;
            run(late, p->root<root>(), 5);
        }));
        const content now = opened(rolling);
        EXPECT_EQ(std::memcmp(&now, shared, sizeof now), 0) << "step " << k;
        EXPECT_EQ(report.rolled_back, 1U);
    }
    ::munmap(shared, sizeof(content));
}

TEST_P(RollBack, AKillWhileRollingBackIsCuredByTheNext) {
    static int events_left;
    for (const int k : {9, 19})
        for (int j = 0; j < 30; j += 3) {
            const content before = made();
            dies(change, k);
            in_child([&] {
                events_left = j;
                trace::listen([](const trace::event&, const void*, std::size_t) {
                    if (events_left-- == 0) ::kill(::getpid(), SIGKILL);
                });
                (void)pool::open(path, rolling);
                ::kill(::getpid(), SIGKILL);
            });
            ASSERT_EQ(opened(rolling), before) << "step " << k << ", event " << j;
        }
}

TEST_P(RollBack, AReExecutionThatIsStoppedAnywhereIsUndoneToo) {
    for (const trouble t : {trouble::aborts, trouble::terminates, trouble::null, trouble::spins,
                            trouble::spins_storing})
        for (const int k : {2, 8, 16}) { // the re-execution goes on where the first run had ended
            const bool waits = t == trouble::spins || t == trouble::spins_storing;
            if (waits && k != 8) continue;
            const content before = made();
            dies(change, k);
            in_section = t;
            for (int tries = 0; tries < 2; ++tries) {
                const status why = refused(options);
                EXPECT_EQ(name(why.code()), "corrupt");
                for (const char* part : {"change (roll_back_test.cpp)", "roll_back", "read_only"})
                    EXPECT_NE(why.what().find(part), std::string::npos) << why.what();
            }
            const content now = opened(rolling);
            EXPECT_EQ(report.rolled_back, 1U);
            ASSERT_EQ(now, before) << "trouble " << static_cast<int>(t) << ", step " << k;
            in_section = trouble::none;
            // The pool works as before.
            ASSERT_FALSE(dies(change, k));
            ASSERT_EQ(opened(options).r.input, before.r.input + 5);
        }
}

TEST_P(RollBack, ASectionThatAbortsInItsFirstRunIsUndone) {
    const content before = made();
    in_section = trouble::aborts;
    ASSERT_FALSE(dies(change, -1));
    EXPECT_NE(refused(options).what().find("SIGABRT"), std::string::npos);
    EXPECT_EQ(opened(rolling), before);
}

TEST_P(RollBack, NeedsNoFunctionOfThisBuild) {
    const content before = made();
    in_child([&] {
        hf_txfunc other = change; // another build's
        other.version = 2;
        auto p = pool::open(path, options);
        ASSERT_TRUE(p) << p.error().what();
        steps_left = 17;
        run(other, p->root<root>(), 5);
    });
    const status why = refused(options);
    EXPECT_EQ(name(why.code()), "function_changed");
    EXPECT_NE(why.what().find("roll_back"), std::string::npos) << why.what();
    EXPECT_EQ(opened(rolling), before);
}

TEST_P(RollBack, ALogThatOutgrowsAFullPoolIsRolledBackAndThePoolOpens) {
    const content before = made();
    const auto fill_the_pool = [&] {
        auto p = pool::open(path, options);
        ASSERT_TRUE(p) << p.error().what();
        while (hf_alloc(4096) != nullptr) {}
        run(table, p->root<root>(), 5);
    };
    ASSERT_FALSE(in_child(fill_the_pool)) << "there was room for the log after all";
    const content now = opened(options);
    EXPECT_EQ(report.no_room, 1U);
    EXPECT_EQ(report.rolled_back, 1U);
    EXPECT_EQ(std::memcmp(&now.r, &before.r, sizeof now.r), 0);
}

TEST_P(RollBack, ALogThatOutgrowsAFullPoolIsCompletedWithALargerLimit) {
    const content before = made();
    ASSERT_FALSE(in_child([&] {
        auto p = pool::open(path, options);
        ASSERT_TRUE(p) << p.error().what();
        while (hf_alloc(4096) != nullptr) {}
        run(table, p->root<root>(), 5);
    }));
    options.max_bytes = 1_MiB;
    const content now = opened(options);
    EXPECT_EQ(report.re_executed, 1U);
    EXPECT_EQ(now.r.table[wide - 1], before.r.table[wide - 1] + 5);
    options.max_bytes = 256_KiB; // says nothing about a pool that has more
    auto p = pool::open(path, options);
    ASSERT_TRUE(p) << p.error().what();
    EXPECT_EQ(p->max_bytes(), 1_MiB);
}

TEST_P(RollBack, LogsFindRoomInAFullPool) {
    options.create_bytes = options.max_bytes = 2_MiB;
    made();
    auto p = pool::open(path, options);
    ASSERT_TRUE(p) << p.error().what();
    while (hf_alloc(4096) != nullptr) {}
    while (hf_alloc(16) != nullptr) {}
    for (int i = 0; i < 20; ++i) run(table, p->root<root>(), 5); // and it is given back
    EXPECT_EQ(p->root<root>()->table[0], 100U);
    EXPECT_EQ(hf_alloc(4096), nullptr) << "what is kept for logs is for nobody else";
}

TEST_P(RollBack, CodeThatCannotBeToldOfAFullPoolIsRolledBack) {
    const content before = made();
    in_section = trouble::no_room;
    ASSERT_FALSE(dies(change, -1));
    EXPECT_EQ(opened(options), before);
    EXPECT_EQ(report.no_room, 1U);
}

TEST_P(RollBack, WhatCouldNotBeKeptIsNotRolledBackUnasked) {
    for (const int k : {4, 6}) { // before the last store, and finished
        const content before = made();
        in_child([&] {
            auto p = pool::open(path, options);
            ASSERT_TRUE(p) << p.error().what();
            while (hf_alloc(4096) != nullptr) {}
            steps_left = k;
            run(fill, p->root<root>(), 5);
            ::kill(::getpid(), SIGKILL);
        });
        if (k == 4) {
            EXPECT_EQ(name(refused(rolling).code()), "torn");
            expect_shown_under_salvage_only();
        }
        const content now = opened(options);
        EXPECT_EQ(now.r.input, before.r.input + 5);
        EXPECT_EQ(now.r.half_input, before.r.half_input + 1);
        EXPECT_EQ(now.r.table[9], 5U);
    }
}

TEST_P(RollBack, WithoutKeptBytesOnlyCompletingIsLeft) {
    const content before = made();
    options.engines = engines(false);
    dies(change, 9);
    EXPECT_EQ(name(refused(rolling).code()), "torn");
    expect_shown_under_salvage_only();
    EXPECT_EQ(opened(options).r.input, before.r.input + 5);
    // A recovery that keeps, of a section that did not, may be cut short as well.
    dies(change, 9);
    options.engines = engines(true);
    in_section = trouble::aborts;
    EXPECT_EQ(name(refused(options).code()), "corrupt");
    EXPECT_EQ(name(refused(rolling).code()), "torn");
    in_section = trouble::none;
    EXPECT_EQ(opened(options).r.input, before.r.input + 10);
    dies(change, 9);
    opened(rolling);
    EXPECT_EQ(report.rolled_back, 1U);
}

/// Makes the header look as after a failure of the machine.
void machine_went_down(const std::string& path) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    for (const std::uint64_t at : {header_a_offset, header_b_offset}) {
        pool_header h;
        file.seekg(static_cast<std::streamoff>(at)).read(reinterpret_cast<char*>(&h), sizeof h);
        std::strcpy(h.boot_id, "00000000-1111-2222-3333-444444444444");
        h.checksum = header_checksum(h);
        file.seekp(static_cast<std::streamoff>(at)).write(reinterpret_cast<char*>(&h), sizeof h);
    }
}

TEST_P(RollBack, WhatTheMachineTookStaysLostWhenRecoveryIsCutShort) {
    if (GetParam().mode == hf::mode::process) return; // does not open at all
    const bool lost = !GetParam().eadr;
    const content before = made();
    dies(change, 9);
    machine_went_down(path);
    if (lost) {
        EXPECT_EQ(name(refused(rolling).code()), "torn");
        open_options elsewhere = rolling; // in a mode that never loses stores itself
        elsewhere.mode = hf::mode::process;
        EXPECT_EQ(name(refused(elsewhere).code()), "torn");
        expect_shown_under_salvage_only();
    }
    in_section = trouble::aborts;
    EXPECT_EQ(name(refused(options).code()), "corrupt");
    in_section = trouble::none;
    if (lost) {
        EXPECT_EQ(name(refused(rolling).code()), "torn"); // though this boot has opened it
        EXPECT_EQ(opened(options).r.input, before.r.input + 5);
        dies(change, 9); // nothing older is pending
    }
    opened(rolling);
    EXPECT_EQ(report.rolled_back, 1U);
}

// After a failure of the machine, kept records prove nothing, valid or not.
TEST_P(RollBack, KeptRecordsAreReadUnlessTheMachineWentDown) {
    if (GetParam().mode == hf::mode::process || GetParam().eadr) return; // logs plain words
    static std::vector<std::pair<const std::byte*, std::size_t>> read_ranges;
    for (const bool lost : {false, true}) {
        made();
        dies(change, 14);
        if (lost) machine_went_down(path);
        read_ranges.clear();
        const trace::listening reads(
            [](const trace::event& what, const void* at, std::size_t bytes) {
                if (what == believed::checked)
                    read_ranges.emplace_back(static_cast<const std::byte*>(at), bytes);
            });
        const auto p = pool::open(path, options);
        ASSERT_TRUE(p) << p.error().what();
        EXPECT_EQ(p->recovered().re_executed, 1U);
        pool_file& file = *p->internals().file;
        std::size_t kept = 0;
        for (const auto& [at, bytes] : read_ranges)
            for (const std::uint64_t half : {0U, 1U})
                for (std::uint32_t lane = 0; lane < file.shape().lane_count; ++lane)
                    kept += at + bytes == lane_start(file, lane, half).kept;
        EXPECT_EQ(kept > 0, !lost);
    }
}

// The word that names a root may be stored and not yet flushed when a process is killed.
TEST_P(RollBack, WhatAKilledProcessStoredLastIsWrittenBack) {
    if (GetParam().mode == hf::mode::process || GetParam().eadr) return; // nothing has to be
    static std::vector<std::pair<const std::byte*, std::size_t>> flushed;
    made();
    dies(change, 9);
    flushed.clear();
    const trace::listening reads([](const trace::event& what, const void* at, std::size_t bytes) {
        if (what == trace::flush) flushed.emplace_back(static_cast<const std::byte*>(at), bytes);
    });
    const auto p = pool::open(path, options);
    ASSERT_TRUE(p) << p.error().what();
    const auto* words = reinterpret_cast<const std::byte*>(p->internals().file->roots());
    EXPECT_TRUE(std::ranges::any_of(flushed, [&](const auto& range) {
        return range.first <= words && words + sizeof(root_words) <= range.first + range.second;
    }));
}

// Left in ADR, opened as if caches had outlived the failure.
TEST_P(RollBack, CachesThatDidNotPersistAreNotBelievedLater) {
    if (GetParam().mode == hf::mode::process || GetParam().eadr) return;
    const content before = made();
    dies(change, 9);
    machine_went_down(path);
    open_options believing = rolling;
    believing.expert.eadr = true;
    EXPECT_EQ(name(refused(believing).code()), "torn");
    EXPECT_EQ(opened(options).r.input, before.r.input + 5);
}

// Left where caches persist, opened as if they were lost: its log has no checks, so nothing would
// show what is missing.
TEST_P(RollBack, APoolOfCachesThatPersistIsRefusedElsewhereOnceTheMachineWentDown) {
    if (!GetParam().eadr) return;
    const content before = made();
    dies(change, 9);
    machine_went_down(path);
    open_options elsewhere = options;
    elsewhere.expert.eadr = false;
    EXPECT_NE(refused(elsewhere).what().find("caches that persist"), std::string::npos);
    elsewhere.mode = mode::process;
    EXPECT_EQ(name(refused(elsewhere).code()), "torn");
    EXPECT_EQ(opened(options).r.input, before.r.input + 5);
}

std::string bytes_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

TEST_P(RollBack, ReadOnlyShowsThePoolWithoutThePendingSectionAndWritesNothing) {
    for (const int k : {5, 15}) {
        const content before = made();
        dies(change, k);
        const std::string file = bytes_of(path);
        open_options look;
        look.layout = options.layout;
        look.engines = options.engines;
        look.read_only = true;
        for (int twice = 0; twice < 2; ++twice) {
            EXPECT_EQ(opened(look), before);
            EXPECT_EQ(report.rolled_back, 1U);
            EXPECT_EQ(bytes_of(path), file) << "read-only wrote";
        }
        auto p = pool::open(path, look);
        ASSERT_TRUE(p) << p.error().what();
        EXPECT_EQ(hf_alloc(40), nullptr);
        EXPECT_EQ(name(staged::in(*p, 40).error().code()), "permission");
        p = pool::open("/nowhere", look); // closes it
        EXPECT_DEATH(
            {
                auto mine = pool::open(path, look);
                run(change, mine->root<root>(), 1);
            },
            "read-only");
    }
}

TEST_P(RollBack, ReadersMayBeManyAndKeepWritersOut) {
    made();
    open_options look = options;
    look.read_only = true;
    int to_child[2], to_parent[2];
    ASSERT_EQ(::pipe(to_child), 0);
    ASSERT_EQ(::pipe(to_parent), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        auto p = pool::open(path, look);
        char go = p ? 'y' : 'n';
        (void)!::write(to_parent[1], &go, 1);
        (void)!::read(to_child[0], &go, 1);
        ::_exit(0);
    }
    char there = 0;
    ASSERT_EQ(::read(to_parent[0], &there, 1), 1);
    EXPECT_EQ(there, 'y');
    EXPECT_TRUE(pool::open(path, look));
    EXPECT_EQ(name(refused(options).code()), "in_use");
    ASSERT_EQ(::write(to_child[1], "x", 1), 1);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    EXPECT_TRUE(pool::open(path, options));
}

TEST_P(RollBack, ReadOnlyMakesNoPool) {
    open_options look = options;
    look.read_only = true;
    EXPECT_EQ(name(refused(look).code()), "not_found");
    EXPECT_NE(::access(path.c_str(), F_OK), 0);
}

INSTANTIATE_TEST_SUITE_P(Domains, RollBack,
                         ::testing::Values(setup{"process", hf::mode::process, false},
                                           setup{"adr", hf::mode::pmem, false},
                                           setup{"eadr", hf::mode::pmem, true}),
                         [](const auto& info) { return info.param.name; });

} // namespace
