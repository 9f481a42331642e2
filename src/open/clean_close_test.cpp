// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: of a pool that its header says was closed nothing is pending. Every close leaves it so; one
// that cannot leaves the pool marked open; and where damaged or hostile bytes say otherwise open
// refuses, and runs nothing. Method: closes of every kind, then each lane is read; and a closed
// pool in which one word, 'committed', is lower than it was.
#include <log/word_log.hpp>
#include <open/pool_impl.hpp>
#include <pool/believed.hpp>
#include <pool/header.hpp>
#include <section/list_sections.hpp>
#include <trace/trace.hpp>

#include <holdfast/clobber.hpp>
#include <holdfast/undo.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace hf;
using namespace hf::list_sections;

struct setup {
    const char* name;
    hf::mode mode;
    bool eadr;
};

class CleanClose : public ::testing::TestWithParam<setup> {
protected:
    void SetUp() override {
        path_ = "/dev/shm/hf_clean_close_test." + std::to_string(::getpid());
        ::unlink(path_.c_str());
        options_.layout = "clean_close_test/1";
        options_.create_bytes = options_.max_bytes = 256_KiB;
        options_.max_threads = 3;
        options_.mode = GetParam().mode;
        options_.expert.eadr = GetParam().eadr;
        options_.engines = {clobber::engine(), undo::engine()};
    }
    void TearDown() override { ::unlink(path_.c_str()); }

    pool opened() {
        auto p = pool::open(path_, options_);
        if (!p) std::fprintf(stderr, "%s\n", p.error().what().c_str()), std::abort();
        return std::move(*p);
    }
    status refused(const open_options& with) const {
        auto p = pool::open(path_, with);
        EXPECT_FALSE(p);
        return p ? status{} : p.error();
    }
    /// Pushes the values up to 'last', one of them with engine undo.
    static void push_to(pool& p, std::uint64_t last) {
        list* l = p.root<list>();
        while (l->count < last) push(l->count != 2, l, l->count + 1);
    }
    /// The file's pending sections, seen without changing it.
    std::vector<std::string> pending() {
        std::vector<std::string> out;
        auto file = pool_file::open(path_, file_options_of(options_));
        if (!file) return {file.error().what()};
        if (!(*file)->was_clean()) out.emplace_back("left open");
        heap blocks(**file);
        for (std::uint32_t l = 0; l < (*file)->shape().lane_count; ++l) {
            pending_section found;
            std::uint64_t newest = 0;
            lane_damage damage;
            if (read_lane(**file, blocks, l, found, newest, damage))
                out.push_back("lane " + std::to_string(l) + " pending");
            if (damage.what != nullptr) out.push_back("lane " + std::to_string(l) + " damaged");
        }
        pool_file::abandon(std::move(*file));
        return out;
    }
    void expect_closed(std::uint64_t count) {
        EXPECT_EQ(pending(), std::vector<std::string>{});
        pool p = opened();
        EXPECT_EQ(p.recovered().sections_pending, 0U);
        EXPECT_EQ(fault(p, count), nullptr);
    }
    /// Runs 'body' in a child, which exits with what it returns; that, or minus the signal.
    static int in_child(const std::function<int()>& body) {
        const pid_t child = ::fork();
        if (child == 0) ::_exit(body());
        int how = 0;
        EXPECT_EQ(::waitpid(child, &how, 0), child);
        return WIFEXITED(how) ? WEXITSTATUS(how) : -WTERMSIG(how);
    }
    /// A closed pool of two nodes in which lane 0 has the first one's epoch as its mark; or, where
    /// its log is plain words, says that it ends behind the second one's arguments.
    void lower_the_mark() {
        ::unlink(path_.c_str());
        {
            pool p = opened();
            push_to(p, 2);
        }
        auto file = pool_file::open(path_, file_options_of(options_));
        ASSERT_TRUE(file) << file.error().what();
        lane_header* const header = lane_at(**file, 0);
        if ((*file)->medium().keeps_order()) {
            const std::byte* const log = word_log_room(**file, 0).next;
            std::uint64_t bytes = 0;
            std::memcpy(&bytes, log + word_bytes, sizeof bytes);
            header->logged = static_cast<std::uint64_t>(log - (*file)->base()) +
                             word_log::long_entry_bytes(bytes);
        } else {
            header->committed -= 1;
        }
        pool_file::abandon(std::move(*file));
    }

    std::string path_;
    open_options options_;
};

TEST_P(CleanClose, LeavesNothingPendingWhoeverLeftAMarkOut) {
    {
        pool p = opened();
        push_to(p, 1);
    }
    expect_closed(1); // one thread: in mode pmem its mark is due until the close
    {
        pool p = opened();
        push_to(p, 3);
        pop(true, p.root<list>());
    }
    expect_closed(2);
    { // a section that stores nothing, and so fences nothing, is the last
        pool p = opened();
        list* l = p.root<list>();
        push_to(p, 4);
        hf_clobber_begin(&pop_desc, &l);
        hf_clobber_commit();
    }
    expect_closed(4);
}

TEST_P(CleanClose, LeavesNothingPendingInLanesOfOtherThreads) {
    for (const bool alone : {true, false}) {
        ::unlink(path_.c_str());
        std::optional<pool> p = opened();
        std::promise<void> closed;
        std::vector<std::thread> idle;
        if (!alone) push_to(*p, 1);
        // Four threads, three lanes: the last ones take turns.
        for (std::uint64_t n = 2 - alone; n <= 5; ++n) {
            std::promise<void> pushed;
            idle.emplace_back([&, n, until = closed.get_future().share()] {
                push_to(*p, n);
                pushed.set_value();
                until.wait();
            });
            pushed.get_future().wait();
            if (alone) break; // it is the only one: its mark is due while it idles
            closed = {};
        }
        const std::uint64_t count = p->root<list>()->count;
        p.reset();
        if (alone) closed.set_value();
        for (auto& t : idle) t.join();
        expect_closed(count);
    }
}

TEST_P(CleanClose, LeavesNothingPendingAfterARecovery) {
    for (const bool rolling : {false, true})
        for (int k = 0; k < 24; ++k) {
            ::unlink(path_.c_str());
            in_child([&] {
                pool p = opened();
                push_to(p, 1);
                steps_left = k;
                push(k % 2 == 0, p.root<list>(), 2);
                ::kill(::getpid(), SIGKILL);
                return 0;
            });
            open_options with = options_;
            with.recovery = rolling ? recovery_policy::roll_back : recovery_policy::complete;
            std::uint64_t count = 0;
            {
                auto p = pool::open(path_, with);
                ASSERT_TRUE(p) << p.error().what();
                count = p->root<list>()->count;
            }
            ASSERT_NO_FATAL_FAILURE(expect_closed(count)) << "step " << k;
        }
}

TEST_P(CleanClose, LeavesNothingPendingWhenAChildHadThePoolToo) {
    {
        pool p = opened();
        push_to(p, 1);
        EXPECT_EQ(in_child([&] {
                      pool gone = std::move(p); // the parent's: nothing of it is closed
                      return 0;
                  }),
                  0);
        push_to(p, 2);
    }
    expect_closed(2);
    EXPECT_EQ(in_child([&] {
                  pool p = opened();
                  push_to(p, 3);
                  ::kill(::getpid(), SIGKILL);
                  return 0;
              }),
              -SIGKILL);
    EXPECT_FALSE(pending().empty()); // left open
    { pool p = opened(); }
    expect_closed(3);
}

TEST_P(CleanClose, AReadOnlyOpenChangesNothingOfIt) {
    {
        pool p = opened();
        push_to(p, 2);
    }
    open_options look = options_;
    look.read_only = true;
    {
        auto p = pool::open(path_, look);
        ASSERT_TRUE(p) << p.error().what();
        EXPECT_EQ(fault(*p, 2), nullptr);
    }
    expect_closed(2);
}

/// The pool is an object with static storage, and the program calls exit() inside a section.
TEST_P(CleanClose, IsNoneWhileASectionIsOpen) {
    for (const bool of_another_thread : {false, true}) {
        ::unlink(path_.c_str());
        // Destructors at exit, in their order: the thread's, then the pool's.
        in_child([&] {
            static std::optional<pool> at_exit;
            at_exit = opened();
            push_to(*at_exit, 1);
            const auto half = [] {
                list* l = at_exit->root<list>();
                hf_clobber_begin(&pop_desc, &l);
                store_over_input<true>(&l->count, std::uint64_t{0});
            };
            if (of_another_thread)
                std::thread([&] {
                    half();
                    std::exit(0);
                }).join();
            half();
            std::exit(0);
            return 0;
        });
        EXPECT_EQ(pending(),
                  (std::vector<std::string>{"left open", of_another_thread ? "lane 1 pending"
                                                                           : "lane 0 pending"}));
        pool p = opened();
        EXPECT_EQ(p.recovered().re_executed, 1U);
        EXPECT_EQ(fault(p, 0), nullptr);
    }
}

TEST_P(CleanClose, IsBelievedAndNotALaneThatSaysPending) {
    lower_the_mark();
    for (const bool reading : {false, true}) {
        open_options with = options_;
        with.read_only = reading;
        const status why = refused(with);
        EXPECT_EQ(name(why.code()), "corrupt");
        for (const char* part : {"lane 0", "closed cleanly", "salvage", "holdfast repair"})
            EXPECT_NE(why.what().find(part), std::string::npos) << why.what();
    }
    open_options salvaging = options_;
    salvaging.salvage = true;
    salvaging.read_only = true;
    for (int i = 0; i < 2; ++i) {
        auto p = pool::open(path_, salvaging);
        ASSERT_TRUE(p) << p.error().what();
        EXPECT_EQ(p->recovered().sections_pending, 0U);
        ASSERT_FALSE(p->warnings().empty());
        EXPECT_NE(p->warnings().back().find("salvaged: lane 0"), std::string::npos);
        EXPECT_EQ(fault(*p, 2), nullptr);
        salvaging.read_only = false;
    }
    expect_closed(2);
}

TEST_P(CleanClose, WhatASalvageDisregardsIsGoneAtItsFirstWrite) {
    static int events_left;
    for (int j = 0;; ++j) {
        lower_the_mark();
        const int how = in_child([&] {
            open_options salvaging = options_;
            salvaging.salvage = true;
            events_left = j;
            trace::listen([](const trace::event& what, const void*, std::size_t) {
                if (what == hf::believed::checked) return;
                if (events_left-- == 0) ::kill(::getpid(), SIGKILL);
            });
            auto p = pool::open(path_, salvaging);
            return p ? 0 : 1;
        });
        ASSERT_NE(how, 1);
        open_options again = options_;
        again.salvage = true;
        auto p = pool::open(path_, again);
        ASSERT_TRUE(p) << p.error().what();
        ASSERT_EQ(p->recovered().re_executed, 0U) << "event " << j;
        ASSERT_EQ(fault(*p, 2), nullptr) << "event " << j;
        if (how == 0) break;
    }
}

INSTANTIATE_TEST_SUITE_P(Domains, CleanClose,
                         ::testing::Values(setup{"process", hf::mode::process, false},
                                           setup{"adr", hf::mode::pmem, false},
                                           setup{"eadr", hf::mode::pmem, true}),
                         [](const auto& info) { return info.param.name; });

} // namespace
