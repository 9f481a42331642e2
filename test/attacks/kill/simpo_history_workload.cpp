// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One persistent object whose history is kept, with a log of a few dozen calls: all the time one of
// the threads moves calls from the log to the file. Afterwards the file and the log together have
// each call once, in its order, and lead to the object as it is. journal: only 'started' and
// 'acked'.
#include "workload.hpp"

#include <holdfast/simpo/history.hpp>
#include <holdfast/simpo/zstd.hpp>

#include <array>
#include <cstdlib>
#include <string>

namespace kill_test {
namespace {

using namespace hf;
using u64 = std::uint64_t;

constexpr std::size_t calls_kept_max = 100'000; // then a history begins anew

class ledger {
public:
    static constexpr simpo::class_name simpo_class{"ledger", 1};

    void enter(std::uint32_t thread, u64 number) noexcept {
        u64& next = next_[thread % threads_max];
        gaps_ += number != next;
        next = number + 1;
        hash_ = mix(hash_, thread, number);
    }
    u64 enter_and_sum(std::uint32_t thread, u64 number) noexcept {
        return enter(thread, number), hash_;
    }
    u64 next(std::uint32_t thread) const { return next_[thread]; }
    u64 hash() const { return hash_; }
    u64 gaps() const { return gaps_; }

private:
    std::array<u64, threads_max> next_{};
    u64 hash_ = 0, gaps_ = 0;
};

/// Calls of a thread's first operations.
u64 calls_of(const journal& log, unsigned thread, u64 operations) {
    u64 sum = 0;
    for (u64 n = 0; n < operations; ++n) sum += 1 + mix(log.seed, thread, n) % 4;
    return sum;
}

class history_load final : public workload {
public:
    const char* name() const override { return "history"; }
    void shape(open_options& o, u64) const override {
        o.layout = "kill-history/1";
        o.create_bytes = 256 << 10;
        o.max_bytes = 4 << 20;
        o.engines.push_back(simpo::engine());
    }
    void prepare(pool& in, journal& log) override {
        if (!simpo::object<ledger>::find(in, "ledger")) {
            const simpo::object_options how{log.seed % 2 == 0 ? 1024U : 4096U};
            if (auto made = simpo::object<ledger>::create(in, "ledger", how); !made)
                must(made.error(), log);
        }
        if (const auto all = simpo::history(in, "ledger", &packing());
            all && all->size() > calls_kept_max)
            must(simpo::end_history(in, "ledger"), log);
        must(simpo::keep_history(in, "ledger",
                                 {.packing = log.seed % 3 == 0 ? &packing() : nullptr}),
             log);
    }
    [[noreturn]] void run(pool& in, journal& log, unsigned thread) override {
        auto all = simpo::object<ledger>::find(in, "ledger");
        if (!all) log.fail("%s", all.error().what().c_str()), std::abort();
        thread_journal& mine = log.of[thread];
        u64 end = calls_of(log, thread, mine.acked.load());
        for (u64 next = all->call<&ledger::next>(thread);;) {
            end += 1 + mix(log.seed, thread, mine.acked.load()) % 4;
            mine.start();
            for (; next + 1 < end; ++next) all->defer<&ledger::enter>(thread, next);
            if (next < end) (void)all->call<&ledger::enter_and_sum>(thread, next++);
            mine.ack();
            if (thread == 0 && next % 64 == 0) all->checkpoint();
        }
    }
    void verify(pool& in, journal& log) override;

private:
    static const simpo::zstd& packing() {
        static const simpo::zstd only(1);
        return only;
    }
    static void must(const status& done, journal& log) {
        if (!done.ok()) log.fail("%s", done.what().c_str()), std::abort();
    }
};

void history_load::verify(pool& in, journal& log) {
    auto all = simpo::object<ledger>::find(in, "ledger");
    if (!all && log.acknowledged() == 0) return; // killed before it was made
    if (!all) return log.fail("%s", all.error().what().c_str());
    const auto calls = simpo::history(in, "ledger", &packing());
    if (!calls && calls.error().code() == errc::not_found) return; // between its end and the next
    if (!calls) return log.fail("%s", calls.error().what().c_str());
    const auto begun = simpo::past<ledger>::open(in, "ledger", 0, &packing());
    if (!begun) return log.fail("%s", begun.error().what().c_str());
    ledger now = **begun;
    for (const simpo::past_call& c : *calls) {
        if (c.arguments.size() != 2)
            return log.fail("call %llu has no two arguments", (unsigned long long)c.number);
        now.enter(static_cast<std::uint32_t>(std::stoul(c.arguments[0])),
                  std::stoull(c.arguments[1]));
    }
    if (now.gaps() != 0 || now.hash() != all->call<&ledger::hash>()) {
        ++log.lost;
        log.fail("lost: %zu calls of the history do not lead to the object: %llu are missing or "
                 "doubled",
                 calls->size(), (unsigned long long)now.gaps());
    }
    const u64 middle = calls->empty() ? 0 : mix(log.seed, calls->size()) % calls->size();
    const auto then = simpo::past<ledger>::open(in, "ledger", middle, &packing());
    if (!then) return log.fail("%s", then.error().what().c_str());
    for (unsigned t = 0; t < log.threads; ++t) {
        thread_journal& mine = log.of[t];
        const u64 least = calls_of(log, t, mine.acked.load());
        const u64 most = calls_of(log, t, mine.started.load());
        const u64 found = now.next(t);
        if (found < least || found > most || (*then)->next(t) > found) {
            ++log.lost;
            log.fail("lost: %llu calls of thread %u, expected %llu to %llu",
                     (unsigned long long)found, t, (unsigned long long)least,
                     (unsigned long long)most);
        }
        if (!mine.unfinished()) continue;
        ++log.pending;
        if (found == most) {
            mine.settle();
        } else if (found == least) {
            ++log.discarded;
            mine.started.store(mine.acked.load());
        }
    }
}

} // namespace

workload& simpo_history_workload() {
    static history_load only;
    return only;
}

} // namespace kill_test
