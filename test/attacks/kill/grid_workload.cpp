// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sections that overwrite many of their own inputs, some of them often: their logs hold words twice
// and outgrow the lane into blocks of the heap. A step that is lost, repeated, or restored to the
// wrong age changes everything after it.
// journal: last[] is a thread's grid as it was after operation pending[0], which verification
// checked.
#include "workload.hpp"

#include <holdfast/lock.hpp>
#include <holdfast/txfunc.hpp>

#include <mutex>

namespace kill_test {
namespace {

constexpr std::uint64_t words = 1024; // of each thread
static_assert(words <= places_max);

struct grid {
    hf::mutex lock;
    std::uint64_t word[words];
};
struct grids {
    grid of[threads_max];
};

// 64 bits that look random from two others; cheap, and nothing but arithmetic.
constexpr std::uint64_t stir(std::uint64_t seed, std::uint64_t step) {
    const std::uint64_t x = (seed + step) * 0x9e3779b97f4a7c15ULL;
    return (x ^ x >> 29) * 0xbf58476d1ce4e5b9ULL;
}

inline void steps(std::uint64_t* word, std::uint64_t count, std::uint64_t seed) noexcept {
    for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t r = stir(seed, i);
        // Half of the steps stay among a few words.
        const std::uint64_t to = (r >> 32) % (r >> 63 != 0 ? words : 80), from = (r >> 20) % words;
        word[to] = word[to] * 3 + word[from] + i;
    }
}

HF_TXFUNC void change(std::uint64_t* word, std::uint64_t count, std::uint64_t seed) noexcept {
    steps(word, count, seed);
}

struct operation {
    std::uint64_t count, seed;
};
operation operation_of(const journal& log, unsigned thread, std::uint64_t n) {
    const std::uint64_t r = mix(log.seed, thread, n);
    return {1 + (r >> 8) % (r % 16 == 0 ? 4000 : 60), mix(r)};
}

class grid_load final : public workload {
public:
    const char* name() const override { return "grid"; }
    void shape(hf::open_options& o, std::uint64_t) const override {
        o.layout = "kill-grid/1";
        o.create_bytes = 1 << 20;
        o.max_bytes = 32 << 20;
    }
    void prepare(hf::pool&, journal&) override {}
    [[noreturn]] void run(hf::pool& pool, journal& log, unsigned thread) override {
        grid& g = pool.root<grids>()->of[thread];
        thread_journal& mine = log.of[thread];
        for (;;) {
            const operation op =
                operation_of(log, thread, mine.acked.load(std::memory_order_relaxed));
            mine.start();
            const std::unique_lock held{g.lock};
            change(g.word, op.count, op.seed);
            mine.ack();
        }
    }
    void verify(hf::pool& pool, journal& log) override;
};

void grid_load::verify(hf::pool& pool, journal& log) {
    grids& all = *pool.root<grids>();
    for (unsigned t = 0; t < log.threads; ++t) {
        thread_journal& mine = log.of[t];
        const auto replay = [&](std::uint64_t n) {
            const operation op = operation_of(log, t, n);
            steps(mine.last, op.count, op.seed);
        };
        const auto agrees = [&] {
            return std::equal(mine.last, mine.last + words, all.of[t].word);
        };
        for (std::uint64_t n = mine.pending[0]; n < mine.acked.load(); ++n) replay(n);
        if (mine.unfinished() && !agrees()) { // not absent: then it must be whole
            replay(mine.acked.load());
            mine.settle();
        }
        mine.started.store(mine.acked.load());
        mine.pending[0] = mine.acked.load();
        if (agrees()) continue;
        ++log.lost;
        log.fail("lost: thread %u's grid is not as operation %llu left it", t,
                 static_cast<unsigned long long>(mine.acked.load()));
    }
    block_census census(pool);
    if (!census.reach(&all, sizeof all)) log.fail("the root is in no block of its own");
    census.report_leaks(pool, log); // a log's segments are gone with its section
}

} // namespace

workload& grid_workload() {
    static grid_load only;
    return only;
}

} // namespace kill_test
