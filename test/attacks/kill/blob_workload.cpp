// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Slots that own a block of any size: what the map and the bank do not ask of the allocator. Blocks
// of 16 bytes to 80 KiB are made in the section, or staged before it and adopted, and the old one
// is freed; the pool is small enough to run full, and then an operation changes nothing. journal:
// as in map_workload.cpp.
#include "workload.hpp"

#include <holdfast/author/staged.hpp>
#include <holdfast/lock.hpp>
#include <holdfast/txfunc.hpp>

#include <mutex>

namespace kill_test {
namespace {

constexpr std::uint64_t slots = 48; // of each thread

struct slot {
    hf::mutex lock;
    std::uint64_t* words; // null: empty
    std::uint64_t count;
    std::uint64_t seed; // of the words
    std::uint64_t version;
};
struct board {
    slot of[threads_max][slots];
};

enum class kind : std::uint8_t { put, put_staged, drop };
struct operation {
    kind what;
    std::uint64_t slot, count, seed;
};

operation operation_of(const journal& log, unsigned thread, std::uint64_t n) {
    const std::uint64_t r = mix(log.seed, thread, n);
    const std::uint64_t limits[] = {8, 64, 512, 2048, 10000};
    const std::uint64_t count = 2 + (r >> 40) % limits[(r >> 8) % 5];
    const unsigned percent = r % 100;
    return {percent < 40   ? kind::put
            : percent < 75 ? kind::put_staged
                           : kind::drop,
            (r >> 16) % slots, count, mix(r)};
}

void fill(std::uint64_t* words, std::uint64_t count, std::uint64_t seed) noexcept {
    for (std::uint64_t i = 0; i < count; ++i) words[i] = seed + i * 0x9e3779b97f4a7c15ULL;
}

HF_TXFUNC void swap_in(slot* at, std::uint64_t* words, std::uint64_t count,
                       std::uint64_t seed) noexcept {
    std::uint64_t* old = at->words;
    at->words = words;
    at->count = count;
    at->seed = seed;
    at->version += 1;
    if (old != nullptr) hf_free(old);
}

HF_TXFUNC bool put(slot* at, std::uint64_t count, std::uint64_t seed) noexcept {
    auto* words = hf::make_array<std::uint64_t>(count);
    if (words == nullptr) return false;
    fill(words, count, seed);
    swap_in(at, words, count, seed); // joins this section
    return true;
}

HF_TXFUNC void put_staged(slot* at, std::uint64_t* words, std::uint64_t count,
                          std::uint64_t seed) noexcept {
    hf::staged::adopt(words);
    swap_in(at, words, count, seed);
}

bool perform(hf::pool& pool, slot& at, const operation& op) {
    hf::staged staged;
    if (op.what == kind::put_staged) {
        auto made = hf::staged::in(pool, op.count * sizeof(std::uint64_t));
        if (!made) return false;
        staged = std::move(*made);
        fill(staged.as<std::uint64_t>(), op.count, op.seed);
        hf::staged::persist(pool, staged.get(), op.count * sizeof(std::uint64_t));
        if (op.seed % 8 == 0) { // changed our mind: stage another one and give this one back
            auto other = hf::staged::in(pool, op.count * sizeof(std::uint64_t));
            staged.reset();
            if (!other) return false;
            staged = std::move(*other);
            fill(staged.as<std::uint64_t>(), op.count, op.seed);
            hf::staged::persist(pool, staged.get(), op.count * sizeof(std::uint64_t));
        }
    }
    const std::unique_lock held{at.lock};
    if (op.what == kind::put) return put(&at, op.count, op.seed);
    if (op.what == kind::put_staged)
        put_staged(&at, static_cast<std::uint64_t*>(staged.release()), op.count, op.seed);
    else swap_in(&at, nullptr, 0, 0);
    return true;
}

bool as_left(const slot& at, const journal& log, unsigned thread, std::uint64_t last) {
    if (last == 0) return at.words == nullptr;
    const operation op = operation_of(log, thread, last - 1);
    if (op.what == kind::drop) return at.words == nullptr && at.count == 0;
    if (at.words == nullptr || at.count != op.count || at.seed != op.seed) return false;
    std::vector<std::uint64_t> expected(op.count);
    fill(expected.data(), op.count, op.seed);
    return std::equal(expected.begin(), expected.end(), at.words);
}

class blob_load final : public workload {
public:
    const char* name() const override { return "blob"; }
    void shape(hf::open_options& o, std::uint64_t round) const override {
        o.layout = "kill-blob/1";
        o.create_bytes = round % 2 == 0 ? 512 << 10 : 4 << 20;
        o.max_bytes = 4 << 20;
    }
    void prepare(hf::pool&, journal&) override {}
    [[noreturn]] void run(hf::pool& pool, journal& log, unsigned thread) override {
        board& b = *pool.root<board>();
        thread_journal& mine = log.of[thread];
        for (;;) {
            const std::uint64_t n = mine.acked.load(std::memory_order_relaxed);
            const operation op = operation_of(log, thread, n);
            mine.pending[0] = mine.last[op.slot];
            mine.pending[1] = op.slot;
            mine.start();
            if (perform(pool, b.of[thread][op.slot], op)) mine.last[op.slot] = n + 1;
            mine.ack();
        }
    }
    void verify(hf::pool& pool, journal& log) override;
};

void blob_load::verify(hf::pool& pool, journal& log) {
    board& b = *pool.root<board>();
    block_census census(pool);
    if (!census.reach(&b, sizeof b)) log.fail("the root is in no block of its own");
    for (unsigned t = 0; t < log.threads; ++t) {
        thread_journal& mine = log.of[t];
        if (mine.unfinished()) {
            const std::uint64_t place = mine.pending[1];
            mine.last[place] = mine.pending[0];
            if (!as_left(b.of[t][place], log, t, mine.last[place]))
                mine.last[place] = mine.acked.load() + 1;
            mine.settle();
        }
        for (std::uint64_t s = 0; s < slots; ++s) {
            const slot& at = b.of[t][s];
            if (at.words != nullptr && !census.reach(at.words, at.count * sizeof(std::uint64_t)))
                log.fail("thread %u slot %llu owns no block of its own", t,
                         static_cast<unsigned long long>(s));
            if (as_left(at, log, t, mine.last[s])) continue;
            ++log.lost;
            log.fail("lost: thread %u slot %llu is not as operation %llu left it", t,
                     static_cast<unsigned long long>(s),
                     static_cast<unsigned long long>(mine.last[s]));
        }
    }
    census.report_leaks(pool, log);
}

} // namespace

workload& blob_workload() {
    static blob_load only;
    return only;
}

} // namespace kill_test
