// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Threads of a deterministic program, which each life of the process runs again from its beginning.
// Calls that survived are not made a second time, and return their earlier answers, although the
// answers count the calls of all threads. A thread's answers decide its next call. When its program
// has ended it begins the next one. journal: an operation is a step of a program; 'last' holds what
// a thread had learned after each; 'pending' the calls that survive for sure, those that it may
// have made, their program, and the time of that program's beginning.
#include "workload.hpp"
#include <simpo/core.hpp>

#include <holdfast/simpo/caller.hpp>

#include <array>
#include <cstdlib>

namespace kill_test {
namespace {

using namespace hf;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr u64 steps = 120; // of a program; half of them answer

/// For each thread, which of its program's calls is next.
class ledger {
public:
    static constexpr simpo::class_name simpo_class{"ledger", 1};

    void add(u32 thread, u64 program, u64 call) noexcept {
        part& its = of_[thread % threads_max];
        const bool begins = program == its.program + 1 && call == 0;
        faults_ += !begins && (program != its.program || call != its.next);
        its = {program, call + 1};
        cells_[mix(program, call) % cells_.size()] += 1;
        ++all_;
    }
    u64 add_and_count(u32 thread, u64 program, u64 call) noexcept {
        return add(thread, program, call), all_;
    }
    u64 count() const noexcept { return all_; }
    /// Program and call, in the order in which they come.
    u64 next(u32 thread) const { return of_[thread].program * (2 * steps) + of_[thread].next; }
    bool whole() const {
        u64 sum = 0;
        for (const u64 c : cells_) sum += c;
        return faults_ == 0 && sum == all_;
    }

private:
    struct part {
        u64 program = 0, next = 0;
    };
    std::array<part, threads_max> of_{};
    std::array<u64, 512> cells_{};
    u64 all_ = 0, faults_ = 0;
};

class retraced_load final : public workload {
public:
    const char* name() const override { return "retraced"; }
    void shape(open_options& o, u64) const override {
        o.layout = "kill-simpo-retraced/1";
        o.create_bytes = 1 << 20;
        o.max_bytes = 16 << 20;
        o.engines.push_back(simpo::engine());
    }
    void prepare(pool& in, journal& log) override {
        if (simpo::object<ledger>::find(in, "ledger")) return;
        const simpo::object_options how{.log_bytes = log.seed % 2 == 0 ? 2048U : 32768U,
                                        .callers =
                                            2 * threads_max, // a program and the one before it
                                        .results = steps};
        if (auto made = simpo::object<ledger>::create(in, "ledger", how); !made)
            log.fail("%s", made.error().what().c_str());
    }
    [[noreturn]] void run(pool& in, journal& log, unsigned thread) override {
        auto found = simpo::object<ledger>::find(in, "ledger");
        if (!found) log.fail("%s", found.error().what().c_str()), std::abort();
        for (u64 program = log.of[thread].acked.load() / steps;; ++program)
            run_program(*found, log, thread, program);
    }
    void verify(pool& in, journal& log) override;

private:
    static u64 identity_of(unsigned thread, u64 program) {
        return program * threads_max + thread + 1;
    }
    static void run_program(simpo::object<ledger> on, journal& log, unsigned thread, u64 program);
};

template <class T> T must(const result<T>& one, journal& log) {
    if (!one) log.fail("%s", one.error().what().c_str()), std::abort();
    return *one;
}

void retraced_load::run_program(simpo::object<ledger> on, journal& log, unsigned thread,
                                u64 program) {
    thread_journal& mine = log.of[thread];
    if (program != 0) // unless an earlier life has
        (void)simpo::retraced<ledger>::end(on, identity_of(thread, program - 1));
    auto it = must(simpo::retraced<ledger>::of(on, identity_of(thread, program)), log);
    u64 learned = mix(log.seed, thread, program), calls = 0;
    for (u64 step = 0; step < steps; ++step) {
        const bool anew = program * steps + step >= mine.acked.load();
        if (anew) mine.pending[1] = (program + 1) * (2 * steps) + calls + 1;
        if (anew) mine.start();
        const u64 kind = step + 1 == steps ? 0 : learned % 8;
        if (kind >= 4) {
            it.defer<&ledger::add>(thread, program + 1, calls++);
            learned = mix(learned);
        } else if (kind == 3) {
            learned = mix(learned, must(it.call<&ledger::count>(), log));
        } else {
            learned = mix(learned,
                          must(it.call<&ledger::add_and_count>(thread, program + 1, calls++), log));
        }
        if (!anew && mine.last[step] != learned)
            log.fail("thread %u, program %llu, step %llu: it learned something else than before",
                     thread, static_cast<unsigned long long>(program),
                     static_cast<unsigned long long>(step));
        if (!anew) continue;
        mine.last[step] = learned;
        if (kind < 4 && calls != 0) mine.pending[0] = (program + 1) * (2 * steps) + calls;
        mine.ack();
    }
}

void retraced_load::verify(pool& in, journal& log) {
    auto all = simpo::object<ledger>::find(in, "ledger");
    if (!all && log.acknowledged() == 0) return; // killed before it was made
    if (!all) return log.fail("%s", all.error().what().c_str());
    all->internals().look([&](const void* at) {
        const ledger& is = *static_cast<const ledger*>(at);
        if (!is.whole()) log.fail("a call was made twice, or not, or out of its order");
        for (unsigned t = 0; t < log.threads; ++t) {
            thread_journal& mine = log.of[t];
            const u64 found = is.next(t);
            if (found < mine.pending[0] || found > mine.pending[1]) {
                ++log.lost;
                log.fail("lost: thread %u is at call %llu, expected %llu to %llu", t,
                         static_cast<unsigned long long>(found),
                         static_cast<unsigned long long>(mine.pending[0]),
                         static_cast<unsigned long long>(mine.pending[1]));
            }
            if (!mine.unfinished()) continue;
            ++log.pending;
            mine.started.store(mine.acked.load()); // the next life runs the step again
        }
    });
}

} // namespace

workload& simpo_retraced_workload() {
    static retraced_load only;
    return only;
}

} // namespace kill_test
