// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One persistent object that all threads change: an operation is a few deferred calls and an
// instant one, which commits them together with the deferred calls of others. So any first part of
// an operation that was cut short may be there: calls of one thread keep their order, and the
// thread goes on behind the last one. Beside it the first thread makes and destroys objects.
// journal: only 'started' and 'acked'.
#include "workload.hpp"
#include <simpo/objects.hpp>

#include <holdfast/simpo.hpp>

#include <array>
#include <cstdlib>
#include <string>

namespace kill_test {
namespace {

using namespace hf;
using u64 = std::uint64_t;

/// For each thread, how many calls have been made, and a hash of them in their order.
class tally {
public:
    static constexpr simpo::class_name simpo_class{"tally", 1};

    void add(std::uint32_t thread, u64 number) noexcept {
        u64& next = next_[thread % threads_max];
        gaps_ += number != next;
        next = number + 1;
        u64& hash = hash_[thread % threads_max];
        hash = mix(hash, thread, number);
        cells_[hash % cells_.size()] += 1; // pieces of a checkpoint here and there
        ++all_;
    }
    u64 add_and_count(std::uint32_t thread, u64 number) noexcept {
        return add(thread, number), all_;
    }
    u64 next(std::uint32_t thread) const { return next_[thread]; }
    /// The fault; null: none.
    const char* fault(unsigned threads) const {
        u64 calls = 0, cells = 0;
        for (const u64 c : cells_) cells += c;
        for (std::uint32_t t = 0; t < threads; ++t) {
            u64 hash = 0;
            for (u64 n = 0; n < next_[t]; ++n) hash = mix(hash, t, n);
            if (hash != hash_[t]) return "its hash";
            calls += next_[t];
        }
        return gaps_ != 0                       ? "the order of calls"
               : calls != all_ || cells != all_ ? "a sum"
                                                : nullptr;
    }

private:
    std::array<u64, threads_max> next_{}, hash_{};
    std::array<u64, 2048> cells_{};
    u64 all_ = 0, gaps_ = 0;
};

/// Calls of a thread's first operations.
u64 calls_of(const journal& log, unsigned thread, u64 operations) {
    u64 sum = 0;
    for (u64 n = 0; n < operations; ++n) sum += 1 + mix(log.seed, thread, n) % 12;
    return sum;
}

class simpo_load final : public workload {
public:
    const char* name() const override { return "simpo"; }
    void shape(open_options& o, u64) const override {
        o.layout = "kill-simpo/1";
        o.create_bytes = 1 << 20;
        o.max_bytes = 16 << 20;
        o.engines.push_back(simpo::engine());
    }
    void prepare(pool& in, journal& log) override {
        if (simpo::object<tally>::find(in, "tally")) return;
        const simpo::object_options how{log.seed % 2 == 0 ? 4096U : 65536U};
        if (auto made = simpo::object<tally>::create(in, "tally", how); !made)
            log.fail("%s", made.error().what().c_str());
    }
    [[noreturn]] void run(pool& in, journal& log, unsigned thread) override {
        auto all = must(simpo::object<tally>::find(in, "tally"), log);
        thread_journal& mine = log.of[thread];
        u64 end = calls_of(log, thread, mine.acked.load());
        for (u64 next = all.call<&tally::next>(thread);;) {
            end += 1 + mix(log.seed, thread, mine.acked.load()) % 12;
            mine.start();
            for (; next + 1 < end; ++next) all.defer<&tally::add>(thread, next);
            if (next < end) (void)all.call<&tally::add_and_count>(thread, next++);
            mine.ack();
            if (thread == 0 && end % 7 == 0) come_and_go(in, log);
        }
    }
    void verify(pool& in, journal& log) override;

private:
    template <class T> static T must(result<T> one, journal& log) {
        if (!one) log.fail("%s", one.error().what().c_str()), std::abort();
        return *one;
    }
    static void come_and_go(pool& in, journal& log) {
        if (auto old = simpo::object<tally>::find(in, "other")) {
            if (const status s = simpo::object<tally>::destroy(in, "other"); !s.ok())
                log.fail("%s", s.what().c_str()), std::abort();
            return;
        }
        auto other = must(simpo::object<tally>::create(in, "other"), log);
        other.defer<&tally::add>(0U, u64{0});
        if (log.of[0].acked.load() % 2 == 0) other.sync();
    }
    static void verify(const tally& is, journal& log, unsigned thread);
};

void simpo_load::verify(const tally& is, journal& log, unsigned thread) {
    thread_journal& mine = log.of[thread];
    const u64 least = calls_of(log, thread, mine.acked.load());
    const u64 most = calls_of(log, thread, mine.started.load()), found = is.next(thread);
    if (found < least || found > most) {
        ++log.lost;
        log.fail("lost: %llu calls of thread %u, expected %llu to %llu",
                 static_cast<unsigned long long>(found), thread,
                 static_cast<unsigned long long>(least), static_cast<unsigned long long>(most));
    }
    if (!mine.unfinished()) return;
    ++log.pending;
    if (found == most) return mine.settle();
    if (found != least) return; // begun, and the thread goes on behind it
    ++log.discarded;
    mine.started.store(mine.acked.load());
}

void simpo_load::verify(pool& in, journal& log) {
    auto all = simpo::object<tally>::find(in, "tally");
    if (!all && log.acknowledged() == 0) return; // killed before it was made
    if (!all) return log.fail("%s", all.error().what().c_str());
    all->internals().look([&](const void* at) {
        const tally& is = *static_cast<const tally*>(at);
        if (const char* wrong = is.fault(log.threads); wrong != nullptr)
            log.fail("the object is not what its calls leave: %s", wrong);
        for (unsigned t = 0; t < log.threads; ++t) verify(is, log, t);
    });
    if (auto other = simpo::object<tally>::find(in, "other"))
        if (other->call<&tally::next>(0U) > 1) log.fail("an object has calls of another one");
    block_census blocks(in);
    const auto objects = simpo::objects_of(in);
    (*objects)->for_each_block([&](const void* block) {
        if (!blocks.reach(block, 1)) log.fail("a block of an object is not allocated");
    });
    blocks.report_leaks(in, log);
}

} // namespace

std::vector<workload*> workloads() {
    static simpo_load only;
    return {&only, &simpo_structures_workload(), &simpo_retraced_workload(), &simpo_swap_workload(),
            &simpo_history_workload()};
}

} // namespace kill_test
