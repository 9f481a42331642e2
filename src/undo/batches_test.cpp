// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: in mode power no failure leaves a part of a section of engine undo, whatever other threads
//       and engines make durable meanwhile, on the same lines too; and each can be taken back.
// Method: sections instrumented by hand; a child process works, and is killed, by a thread that has
//         been promised something while another is in a section; its parent opens the pool and
//         looks. Where the promise waits for that section, as it should, the section goes on after
//         a while.
#include <open/pool_impl.hpp>
#include <pool/test_support.hpp>
#include <trace/trace.hpp>

#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/alloc.hpp>
#include <holdfast/author/blocks.hpp>
#include <holdfast/author/persist.hpp>
#include <holdfast/clobber.hpp>
#include <holdfast/pool.hpp>
#include <holdfast/redo.hpp>
#include <holdfast/txfunc.hpp>
#include <holdfast/undo.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace {

using namespace hf;

struct words {
    alignas(64) std::uint64_t line[8]; // stored to by several
    std::uint64_t* block;
    // More lines than a batch has, and more old words than a lane.
    alignas(64) std::uint64_t wide[3000];
};
constexpr hf_arg schema[] = {{0, 8, HF_ARG_POOL_POINTER}};
void add_body(const void* packed) {
    auto* const to = &(*static_cast<words* const*>(packed))->line[0];
    hf_clobber_log(to, sizeof *to);
    *const_cast<volatile std::uint64_t*>(to) = *to + 1;
}
const hf_txfunc function{HF_ABI_VERSION, 8, 7392, 1, "change", "here", schema, 1, add_body};
[[maybe_unused]] const bool registered = (hf_txfunc_register(&function), true);

void store(std::uint64_t* to, std::uint64_t value) {
    hf_undo_log(to, sizeof value);
    *const_cast<volatile std::uint64_t*>(to) = value;
}
/// The compiler's entry in line.
void store_in_line(std::uint64_t* to, std::uint64_t value) {
    if (hf_words.next >= hf_words.limit) return store(to, value);
    const auto offset = static_cast<std::uint64_t>(reinterpret_cast<char*>(to) - hf_words.base);
    const std::uint64_t entry[] = {std::uint64_t{0x88} << 56 | offset, *to};
    std::memcpy(hf_words.next, entry, sizeof entry);
    hf_words.next += sizeof entry;
    *hf_words.logged = static_cast<std::uint64_t>(hf_words.next - hf_words.base);
    *const_cast<volatile std::uint64_t*>(to) = value;
}
template <class Body> void section(words* w, Body&& body) {
    hf_undo_begin(&function, &w);
    body();
    hf_undo_commit();
}
void by_redo(words* w, std::uint64_t* to, std::uint64_t value) {
    hf_redo_begin(&function, &w);
    *static_cast<std::uint64_t*>(hf_redo_write(to, sizeof value)) = value;
    hf_redo_commit();
}
void add_by_redo(words* w) { by_redo(w, &w->line[0], w->line[0] + 1); }
void add_by_clobber(words* w) {
    hf_clobber_begin(&function, &w);
    add_body(&w);
    hf_clobber_commit();
}

struct Batches : ::testing::Test {
    Batches() { remove(); }
    ~Batches() override { remove(); }
    void remove() const {
        for (const char* suffix : {"", "-power"}) ::unlink((path + suffix).c_str());
    }
    pool open() const {
        open_options o;
        o.layout = "batches/1";
        o.create_bytes = o.max_bytes = 1_MiB;
        o.mode = mode::power;
        o.max_threads = 4;
        o.engines = {undo::engine(), redo::engine(), clobber::engine()};
        auto opened = pool::open(path, o);
        if (!opened) {
            std::fprintf(stderr, "%s\n", opened.error().what().c_str());
            ::_exit(2);
        }
        return std::move(*opened);
    }
    int in_child(const std::function<void(pool&, words*)>& body) const {
        const pid_t child = ::fork();
        if (child == 0) {
            ::alarm(30); // a promise that waits for ever
            {
                pool p = open();
                body(p, p.root<words>());
            }
            ::_exit(HasFailure() ? 1 : 0);
        }
        int how = 0;
        EXPECT_EQ(::waitpid(child, &how, 0), child);
        return how;
    }
    void killed(const std::function<void(pool&, words*)>& body) const {
        const int how = in_child(body);
        EXPECT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL) << how;
    }
    /// Another thread does so, and kills the process when it has been promised that; this one goes
    /// on if that takes long.
    static std::thread promised_to_another(const std::function<void()>& what) {
        std::thread other([what] {
            what();
            ::kill(::getpid(), SIGKILL);
        });
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        return other;
    }

    const std::string path = "/dev/shm/hf_batches_test." + std::to_string(::getpid());
};

TEST_F(Batches, HaveNoPartOfASectionThatRunsThoughAnotherOnItsLineIsPromised) {
    killed([](pool&, words* w) {
        hf_undo_begin(&function, &w);
        store_in_line(&w->line[0], 1);
        std::thread other = promised_to_another(
            [w] { section(w, [w] { store(&w->line[1], 1), store(&w->line[3], 1); }); });
        store_in_line(&w->line[2], 1);
        hf_undo_commit();
        other.join();
    });
    pool p = open();
    const words* const w = p.root<words>();
    EXPECT_EQ(w->line[0], w->line[2]);
    EXPECT_EQ(w->line[1], 1U);
    EXPECT_EQ(w->line[3], 1U);
    EXPECT_EQ(p.recovered().sections_pending, 0U);
}

TEST_F(Batches, HaveNoPartOfASectionThatRunsBesideOneOfEngineRedo) {
    killed([](pool&, words* w) {
        hf_undo_begin(&function, &w);
        store_in_line(&w->line[0], 1);
        std::thread other = promised_to_another([w] { by_redo(w, &w->line[1], 1); });
        store_in_line(&w->line[2], 1);
        hf_undo_commit();
        other.join();
    });
    pool p = open();
    const words* const w = p.root<words>();
    EXPECT_EQ(w->line[0], w->line[2]);
    EXPECT_EQ(w->line[1], 1U);
}

TEST_F(Batches, HaveNoPartOfASectionThatRunsWhenAllIsSettled) {
    killed([](pool& p, words* w) {
        section(w, [w] { store(&w->line[1], 1); });
        hf_undo_begin(&function, &w);
        store_in_line(&w->line[0], 1);
        store_in_line(reinterpret_cast<std::uint64_t*>(&w->block),
                      reinterpret_cast<std::uint64_t>(hf_alloc(200)));
        std::thread other = promised_to_another([&p, w] {
            const durable_together group{p};
            section(w, [w] { store(&w->line[3], 1), hf_free(hf_alloc(500)); });
        });
        store_in_line(&w->line[2], 1);
        hf_undo_commit();
        other.join();
    });
    pool p = open();
    const words* const w = p.root<words>();
    EXPECT_EQ(w->line[0], w->line[2]);
    EXPECT_EQ(w->block != nullptr, w->line[0] == 1);
    EXPECT_EQ(w->line[1], 1U);
    EXPECT_EQ(w->line[3], 1U);
}

/// As many sections and blocks as there were promises.
TEST_F(Batches, HaveAllOfWhatReturned) {
    const std::uint64_t before = [this] {
        pool p = open();
        (void)p.root<words>();
        return account(p).blocks;
    }();
    killed([](pool&, words* w) {
        for (std::uint64_t n = 1; n <= 40; ++n)
            section(w, [w, n] {
                auto* const made = static_cast<std::uint64_t*>(hf_alloc(8 * (1 + n % 30)));
                if (hf_words.next >= hf_words.limit) hf_note_store(made, 8 * (1 + n % 30));
                for (std::uint64_t i = 0; i <= n % 30; ++i)
                    const_cast<volatile std::uint64_t*>(made)[i] = n;
                if (w->block != nullptr) hf_free(w->block);
                store_in_line(reinterpret_cast<std::uint64_t*>(&w->block),
                              reinterpret_cast<std::uint64_t>(made));
                store_in_line(&w->line[n % 8], n);
            });
        ::kill(::getpid(), SIGKILL);
    });
    pool p = open();
    const words* const w = p.root<words>();
    for (std::uint64_t n = 33; n <= 40; ++n) EXPECT_EQ(w->line[n % 8], n);
    ASSERT_NE(w->block, nullptr);
    for (std::uint64_t i = 0; i <= 40 % 30; ++i) EXPECT_EQ(w->block[i], 40U);
    // The block of the last section is allocated, and no other is.
    EXPECT_NE(block_bytes(p, w->block), 0U);
    EXPECT_EQ(account(p).blocks, before + 1);
}

TEST_F(Batches, ArePromisedWhileASectionRunsWhoseLogIsOnTheDisk) {
    for (const bool in_line : {false, true}) {
        remove();
        killed([in_line](pool&, words* w) {
            hf_undo_begin(&function, &w);
            for (std::uint64_t n = 0; n < std::size(w->wide); ++n) {
                (in_line ? store_in_line : store)(&w->wide[n], n + 1);
                if (n % 100 < 7) (in_line ? store_in_line : store)(&w->line[n < 1000 ? 0 : 5], n);
            }
            std::thread([w] {
                section(w, [w] { store(&w->line[1], 1), store(&w->line[3], 1); });
                by_redo(w, &w->line[4], 1);
                ::kill(::getpid(), SIGKILL);
            }).join();
        });
        // The next one is killed when it has recovered; the one behind that finds the same.
        killed([](pool& p, words*) {
            EXPECT_EQ(p.recovered().rolled_back, 1U);
            if (!HasFailure()) ::kill(::getpid(), SIGKILL);
        });
        pool p = open();
        const words* const w = p.root<words>();
        for (const std::uint64_t word : w->wide) ASSERT_EQ(word, 0U);
        EXPECT_EQ(w->line[0], 0U);
        EXPECT_EQ(w->line[5], 0U);
        EXPECT_EQ(w->line[1], 1U);
        EXPECT_EQ(w->line[3], 1U);
        EXPECT_EQ(w->line[4], 1U);
    }
}

/// Takes small blocks of one chunk, from a thread of its own. It takes the second when a large
/// block's bit beside theirs has just been set, and kills the process when that is promised.
class neighbour {
public:
    explicit neighbour(pool& in, words* w)
        : thread_([this, w] {
              take_one(w);
              taken_ = true, taken_.notify_all();
              asked_.wait(false);
              take_one(w);
              ::kill(::getpid(), SIGKILL);
          }) {
        taken_.wait(false);
        const void* const bits = bits_of(in, w->block);
        line_ = reinterpret_cast<std::uintptr_t>(bits) / 64;
        here = this;
        trace::listen(at_event);
    }

private:
    static const void* bits_of(pool& in, const void* block) {
        return in.internals().blocks.durable().word_of(in.internals().offset_of(block));
    }
    static void take_one(words* w) {
        section(w, [w] {
            void* const made = hf_alloc(64);
            store(reinterpret_cast<std::uint64_t*>(&w->block),
                  reinterpret_cast<std::uint64_t>(made));
        });
    }
    static void at_event(const trace::event& what, const void* address, std::size_t) {
        const bool beside = reinterpret_cast<std::uintptr_t>(address) / 64 == here->line_;
        if (what != trace::store || !beside || std::this_thread::get_id() != here->section_) return;
        here->asked_ = true, here->asked_.notify_all();
        for (;;) ::pause();
    }
    static inline neighbour* here = nullptr;

    std::atomic<bool> taken_{false}, asked_{false};
    std::thread::id section_ = std::this_thread::get_id();
    std::uintptr_t line_ = 0;
    std::thread thread_;
};

TEST_F(Batches, HaveNoLargeBlocksBitBeforeItsChunkIsNamed) {
    constexpr std::uint64_t chunk_bytes = 4096;
    unsigned met = 0;
    for (std::uint64_t chunks_before : {0, 1}) { // two chunks have their bits on one line
        remove();
        const int how = in_child([&](pool& p, words* w) {
            if (chunks_before != 0)
                section(w, [w] {
                    auto* const made = hf_alloc(chunk_bytes);
                    store(&w->line[7], reinterpret_cast<std::uint64_t>(made));
                });
            const auto& beside = *new neighbour(p, w); // its thread may wait for ever
            section(w, [w] {
                auto* const made = hf_alloc(chunk_bytes);
                store(&w->line[6], reinterpret_cast<std::uint64_t>(made));
                for (std::uint64_t n = 0; n < std::size(w->wide); ++n) store(&w->wide[n], n + 1);
            });
            (void)beside;
            ::_exit(HasFailure() ? 1 : 0); // no such block was beside
        });
        if (WIFEXITED(how)) {
            EXPECT_EQ(WEXITSTATUS(how), 0);
            continue;
        }
        ++met;
        pool p = open();
        EXPECT_EQ(p.recovered().rolled_back, 1U);
        const words* const w = p.root<words>();
        EXPECT_EQ(w->line[6], 0U);
        EXPECT_EQ(w->wide[0], 0U);
        EXPECT_EQ(block_bytes(p, w->block), 64U);
        EXPECT_EQ(account(p).blocks, 3 + chunks_before); // the root's, and two small ones
    }
    EXPECT_NE(met, 0U) << "no such block was beside";
}

/// A section that puts its log on the disk, and finds room for its lines though another one runs.
constexpr std::uint64_t many = 600;
void change_many(words* w) {
    section(w, [w] {
        for (std::uint64_t n = 0; n < many; ++n) store_in_line(&w->wide[n], n + 1);
        store_in_line(reinterpret_cast<std::uint64_t*>(&w->block),
                      reinterpret_cast<std::uint64_t>(hf_alloc(300)));
    });
}

TEST_F(Batches, HaveAllOfALongSectionThatReturnedWhenAnotherIsPromised) {
    killed([](pool& p, words* w) {
        const durable_together group{p}; // the long one itself is not promised
        change_many(w);
        std::thread([w] {
            section(w, [w] { store(&w->line[1], 1); });
            ::kill(::getpid(), SIGKILL);
        }).join();
    });
    pool p = open();
    const words* const w = p.root<words>();
    EXPECT_EQ(p.recovered().sections_pending, 0U);
    for (std::uint64_t n = 0; n < many; ++n) ASSERT_EQ(w->wide[n], n + 1);
    EXPECT_NE(block_bytes(p, w->block), 0U);
}

/// The end of the long one's log waits for a section that stores nothing, and comes to the disk
/// with the lines of the next: its log must have ended by then.
TEST_F(Batches, HaveNoLogOfASectionThatReturnsBehindALongOne) {
    killed([](pool& p, words* w) {
        {
            const durable_together group{p};
            std::atomic<bool> runs{false}, ends{false};
            std::thread other([&] {
                hf_undo_begin(&function, &w);
                runs = true, runs.notify_all();
                ends.wait(false);
                hf_undo_commit();
            });
            runs.wait(false);
            change_many(w);
            ends = true, ends.notify_all();
            other.join();
            section(w, [w] { store_in_line(&w->line[0], 7); });
        }
        ::kill(::getpid(), SIGKILL);
    });
    pool p = open();
    EXPECT_EQ(p.recovered().sections_pending, 0U);
    EXPECT_EQ(p.root<words>()->line[0], 7U);
}

TEST_F(Batches, HaveALongSectionThatReturnedAndWhatCameBehindIt) {
    killed([](pool& p, words* w) {
        { // the end of the long one's log waits for the lines of the other
            const durable_together group{p};
            section(w, [w] {
                for (std::uint64_t n = 0; n < std::size(w->wide); ++n)
                    store_in_line(&w->wide[n], n);
                store_in_line(reinterpret_cast<std::uint64_t*>(&w->block),
                              reinterpret_cast<std::uint64_t>(hf_alloc(300 << 10)));
            });
            section(w, [w] {
                store_in_line(&w->wide[0], 7);
                store_in_line(&w->line[0], 7);
            });
        }
        ::kill(::getpid(), SIGKILL);
    });
    pool p = open();
    const words* const w = p.root<words>();
    EXPECT_EQ(p.recovered().sections_pending, 0U);
    EXPECT_EQ(w->wide[0], 7U);
    EXPECT_EQ(w->line[0], 7U);
    for (std::uint64_t n = 1; n < std::size(w->wide); ++n) ASSERT_EQ(w->wide[n], n);
}

/// Engines redo and clobber leave their marks to the thread's next section, which leaves no record
/// of its own.
TEST_F(Batches, TakeNothingBackThatASectionOfAnotherEngineIsFollowedBy) {
    for (const auto by : {add_by_redo, add_by_clobber}) {
        remove();
        killed([by](pool& p, words* w) {
            by(w);
            {
                const durable_together group{p};
                section(w, [w] { store(&w->line[0], 2); });
            }
            ::kill(::getpid(), SIGKILL);
        });
        pool p = open();
        EXPECT_EQ(p.root<words>()->line[0], 2U);
        EXPECT_EQ(p.recovered().sections_pending, 0U);
    }
}

TEST_F(Batches, HaveNothingOfASectionThatIsTakenBack) {
    // At its end, or by an exception (hf_undo_abort).
    for (const auto& [wide, is_left] :
         {std::pair{4U, false}, {4U, true}, {3000U, false}, {3000U, true}}) {
        remove();
        killed([wide, is_left](pool& p, words* w) {
            section(w, [w] { store(&w->line[0], 1); });
            hf_undo_begin(&function, &w);
            for (std::uint64_t n = 0; n < wide; ++n) store_in_line(&w->wide[n], n + 1);
            store(&w->line[0], 2);
            (void)hf_alloc(1000);
            if (!is_left) hf_abort_section();
            is_left ? hf_undo_abort() : hf_undo_commit();
            EXPECT_EQ(w->line[0], 1U);
            for (const std::uint64_t word : w->wide) ASSERT_EQ(word, 0U);
            section(w, [w] { store(&w->line[1], 3); });
            settle(p);
            if (!HasFailure()) ::kill(::getpid(), SIGKILL);
        });
        pool p = open();
        const words* const w = p.root<words>();
        EXPECT_EQ(p.recovered().sections_pending, 0U);
        EXPECT_EQ(w->line[0], 1U);
        EXPECT_EQ(w->line[1], 3U);
        for (const std::uint64_t word : w->wide) ASSERT_EQ(word, 0U);
    }
}

TEST_F(Batches, HaveNothingOfASectionThatItsThreadDoesNotEnd) {
    EXPECT_EQ(in_child([](pool& p, words* w) {
                  std::thread([w] {
                      hf_undo_begin(&function, &w);
                      store_in_line(&w->line[0], 1);
                  }).join();
                  EXPECT_EQ(w->line[0], 0U);
                  section(w, [w] { store(&w->line[1], 1); });
                  settle(p);
              }),
              0);
    pool p = open();
    EXPECT_EQ(p.recovered().sections_pending, 0U);
    EXPECT_EQ(p.root<words>()->line[0], 0U);
    EXPECT_EQ(p.root<words>()->line[1], 1U);
}

TEST_F(Batches, HaveNothingOfASectionWhoseLogFindsThePoolFull) {
    const int how = in_child([](pool& p, words* w) {
        section(w, [w] { store(&w->line[1], 1); });
        section(w, [] {
            while (hf_alloc(4096) != nullptr) {}
        });
        std::FILE* const errors = std::freopen("/dev/null", "w", stderr);
        (void)errors, (void)p;
        section(w, [w] {
            for (std::uint64_t& word : w->wide) store(&word, 1);
        });
    });
    EXPECT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == SIGABRT) << how;
    pool p = open();
    const words* const w = p.root<words>();
    EXPECT_EQ(w->line[1], 1U);
    for (const std::uint64_t word : w->wide) ASSERT_EQ(word, 0U);
}

/// One ordering point, and the lines that it has stored to: no log.
TEST_F(Batches, CostASectionOnlyTheLinesItHasStoredTo) {
    EXPECT_EQ(in_child([](pool& p, words* w) {
                  const durable_together group{p};
                  section(w, [w] { store(&w->line[0], 1); });
                  const persist::counters before = persist::thread_counters();
                  section(w, [w] {
                      for (unsigned n = 0; n < 4; ++n) store(&w->wide[8 * n], 1);
                  });
                  section(w, [] {});
                  const persist::counters now = persist::thread_counters();
                  EXPECT_EQ(now.fences - before.fences, 1U);
                  EXPECT_EQ(now.flushes - before.flushes, 4U);
                  EXPECT_EQ(now.nt_stores, before.nt_stores);
                  EXPECT_EQ(now.log_entries - before.log_entries, 4U);
              }),
              0);
}

} // namespace
