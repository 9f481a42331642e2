// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A dozen objects in a pool with room for a few, so nearly every operation brings one back from its
// file, and makes another one go. An operation is a deferred call and an instant one of the same
// object; its number decides which. journal: only 'started' and 'acked'.
#include "workload.hpp"
#include <simpo/objects.hpp>

#include <holdfast/simpo/swap.hpp>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace kill_test {
namespace {

using namespace hf;
using u64 = std::uint64_t;

constexpr unsigned pages = 12;

/// For each thread, how many operations had their two calls made here, and which was the last.
class page {
public:
    static constexpr simpo::class_name simpo_class{"page", 1};

    void first(std::uint32_t thread, u64 operation) noexcept {
        part& its = of_[thread % threads_max];
        its.begun = operation + 1;
        cells_[mix(thread, operation) % cells_.size()] += 1;
        ++all_;
    }
    u64 second(std::uint32_t thread, u64 operation) noexcept {
        part& its = of_[thread % threads_max];
        faults_ += its.begun != operation + 1;
        ++its.made;
        its.last = operation + 1;
        return ++all_;
    }
    u64 made(std::uint32_t thread) const noexcept { return of_[thread % threads_max].made; }
    u64 last(std::uint32_t thread) const noexcept { return of_[thread % threads_max].last; }
    bool whole() const {
        u64 firsts = 0, seconds = 0;
        for (const u64 c : cells_) firsts += c;
        for (const part& p : of_) seconds += p.made;
        return faults_ == 0 && firsts + seconds == all_;
    }

private:
    struct part {
        u64 made = 0, begun = 0, last = 0;
    };
    std::array<part, threads_max> of_{};
    std::array<u64, 8000> cells_{};
    u64 all_ = 0, faults_ = 0;
};

u64 page_of(const journal& log, unsigned thread, u64 operation) {
    return mix(log.seed, thread, operation) % pages;
}
std::string name_of(u64 n) { return "page " + std::to_string(n); }

class swap_load final : public workload {
public:
    const char* name() const override { return "swap"; }
    void shape(open_options& o, u64) const override {
        o.layout = "kill-swap/1";
        o.create_bytes = 256 << 10;
        o.max_bytes = 1 << 20; // five pages at most
        o.engines.push_back(simpo::engine());
    }
    void prepare(pool& in, journal& log) override {
        swap(in, log);
        for (u64 n = 0; n < pages; ++n) {
            if (simpo::object<page>::find(in, name_of(n))) continue;
            const simpo::object_options how{log.seed % 2 == 0 ? 2048U : 16384U};
            if (auto made = simpo::object<page>::create(in, name_of(n), how); !made)
                log.fail("%s", made.error().what().c_str());
        }
    }
    [[noreturn]] void run(pool& in, journal& log, unsigned thread) override {
        thread_journal& mine = log.of[thread];
        for (;;) {
            mine.start();
            const u64 n = mine.acked.load();
            auto found = simpo::object<page>::find(in, name_of(page_of(log, thread, n)));
            if (!found) log.fail("%s", found.error().what().c_str()), std::abort();
            found->defer<&page::first>(thread, n);
            (void)found->call<&page::second>(thread, n);
            mine.ack();
        }
    }
    void verify(pool& in, journal& log) override;

private:
    static void swap(pool& in, journal& log) {
        const std::string folder = std::string(in.path()) + ".swapped";
        status s = simpo::swap_to(in, folder);
        if (s.code() == errc::exists && log.acknowledged() == 0) { // of the pool before this one
            std::filesystem::remove_all(folder);
            s = simpo::swap_to(in, folder);
        }
        if (!s.ok()) log.fail("%s", s.what().c_str());
    }
};

void swap_load::verify(pool& in, journal& log) {
    if (log.acknowledged() == 0 && simpo::list(in)->size() < pages) return; // still being made
    swap(in, log);
    std::array<std::array<u64, threads_max>, pages> made{}, last{};
    for (u64 n = 0; n < pages; ++n) {
        auto found = simpo::object<page>::find(in, name_of(n));
        if (!found) return log.fail("%s", found.error().what().c_str());
        if (!found->call<&page::whole>()) log.fail("page %llu is not whole", (unsigned long long)n);
        for (std::uint32_t t = 0; t < log.threads; ++t) {
            made[n][t] = found->call<&page::made>(t);
            last[n][t] = found->call<&page::last>(t);
        }
    }
    for (unsigned t = 0; t < log.threads; ++t) {
        thread_journal& mine = log.of[t];
        std::array<u64, pages> expected{};
        for (u64 i = 0; i < mine.acked.load(); ++i) ++expected[page_of(log, t, i)];
        const u64 in_progress = mine.unfinished() ? page_of(log, t, mine.acked.load()) : pages;
        bool completed = false;
        for (u64 n = 0; n < pages; ++n) {
            const bool one_more = n == in_progress && last[n][t] == mine.acked.load() + 1;
            completed |= one_more;
            if (made[n][t] == expected[n] + one_more) continue;
            ++log.lost;
            log.fail("lost: page %llu has %llu operations of thread %u, expected %llu",
                     (unsigned long long)n, (unsigned long long)made[n][t], t,
                     (unsigned long long)expected[n]);
        }
        if (!mine.unfinished()) continue;
        ++log.pending;
        if (completed) {
            mine.settle();
        } else {
            ++log.discarded;
            mine.started.store(mine.acked.load());
        }
    }
    block_census blocks(in);
    (*simpo::objects_of(in))->for_each_block([&](const void* block) {
        if (!blocks.reach(block, 1)) log.fail("a block of an object is not allocated");
    });
    blocks.report_leaks(in, log);
}

} // namespace

workload& simpo_swap_workload() {
    static swap_load only;
    return only;
}

} // namespace kill_test
