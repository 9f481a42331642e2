// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The five structures with locks of their own, side by side in one root: threads put into and take
// out of a queue and a stack that all share, change keys of their own in a sorted list and a map,
// whose nodes others walk over, and append to a vector and change its elements, without a lock.
// journal: last[] has a place for each key and element, with 1 + number of the operation that
// changed it last, and counts; pending[0] is the place, pending[1] what it was.
#include "workload.hpp"
#include <structures/growing_vector.hpp>
#include <structures/list_map.hpp>
#include <structures/locked_stack.hpp>
#include <structures/sorted_list.hpp>
#include <structures/two_lock_queue.hpp>

namespace kill_test {
namespace {

using word = std::uint64_t;
struct root {
    hf::structures::two_lock_queue<word> queue;
    hf::structures::locked_stack<word> stack;
    hf::structures::sorted_list<word, word> list;
    hf::structures::list_map<word, word, 64> map;
    hf::structures::growing_vector vector;

    template <class F> void for_each_block(F f) const {
        queue.for_each_block(f), stack.for_each_block(f), list.for_each_block(f);
        map.for_each_block(f), vector.for_each_block(f);
    }
    bool check() const {
        return queue.check() && stack.check() && list.check() && map.check() && vector.check();
    }
};

// Places of a thread.
constexpr std::uint64_t keys = 100, in_list = 0, in_map = keys, in_vector = 2 * keys,
                        enqueued = 3 * keys, dequeued = enqueued + 1, pushed = enqueued + 2,
                        popped = enqueued + 3, appended = enqueued + 4;
constexpr std::uint64_t appended_max = 1 << 16, elements = keys * threads_max;

struct operation {
    std::uint64_t place;
    bool erases; // of the list and the map
};
operation operation_of(const journal& log, unsigned thread, std::uint64_t n) {
    const std::uint64_t r = mix(log.seed, thread, n), key = (r >> 32) % keys;
    const bool second = r / 8 % 100 < 52; // the queue and the stack stay short
    switch (r % 8) {
    case 0: return {second ? dequeued : enqueued, false};
    case 1: return {second ? popped : pushed, false};
    case 2:
    case 3: return {in_list + key, r / 8 % 2 == 0};
    case 4:
    case 5: return {in_map + key, r / 8 % 2 == 0};
    case 6: return {in_vector + key, false};
    default: return {appended, false};
    }
}
word key_of(unsigned thread, std::uint64_t place) { return place * threads_max + thread; }
word mark(unsigned thread, std::uint64_t number) { return word{thread} << 48 | number; }

/// Returns whether it was done.
bool perform(root& at, const journal& log, unsigned thread, std::uint64_t n,
             const thread_journal& mine) {
    const auto [place, erases] = operation_of(log, thread, n);
    const word key = key_of(thread, place % keys), value = mix(log.seed, thread, n),
               next = mark(thread, mine.last[place] + 1);
    word found = 0;
    switch (place) {
    case enqueued: return at.queue.enqueue(next);
    case dequeued: return at.queue.dequeue(&found);
    case pushed: return at.stack.push(next);
    case popped: return at.stack.pop(&found);
    case appended: return mine.last[place] < appended_max && at.vector.push_back(next);
    default: break;
    }
    if (place >= in_vector) return at.vector.set(key, value);
    if (place >= in_map) return erases ? at.map.erase(key), true : at.map.insert(key, value);
    return erases ? at.list.erase(key), true : at.list.insert(key, value);
}

/// Whether the key, or element, is as operation 'last - 1' left it.
bool as_left(root& at, const journal& log, unsigned thread, std::uint64_t place,
             std::uint64_t last) {
    const word key = key_of(thread, place % keys);
    word found = 0;
    const bool there = place >= in_vector ? at.vector.get(key, &found)
                       : place >= in_map  ? at.map.find(key, &found)
                                          : at.list.find(key, &found);
    if (last == 0) return place >= in_vector ? there && found == 0 : !there;
    if (operation_of(log, thread, last - 1).erases) return !there;
    return there && found == mix(log.seed, thread, last - 1);
}

class locked_load final : public workload {
public:
    const char* name() const override { return "locked"; }
    void shape(hf::open_options& o, std::uint64_t round) const override {
        o.layout = "kill-locked/1";
        o.create_bytes = round % 2 == 0 ? 1 << 20 : 8 << 20;
        o.max_bytes = 64 << 20;
    }
    void prepare(hf::pool& pool, journal& log) override {
        root& at = *pool.root<root>();
        while (at.vector.size() < elements)
            if (!at.vector.push_back(0)) return log.fail("no room for the vector");
    }
    [[noreturn]] void run(hf::pool& pool, journal& log, unsigned thread) override;
    void verify(hf::pool& pool, journal& log) override;

private:
    void verify_marks(journal& log, const std::vector<word>& in, unsigned t, std::uint64_t place);
    void verify_counts(journal& log, std::uint64_t size, std::uint64_t in, std::uint64_t out);
};

void locked_load::run(hf::pool& pool, journal& log, unsigned thread) {
    root& at = *pool.root<root>();
    thread_journal& mine = log.of[thread];
    for (;;) {
        const std::uint64_t n = mine.acked.load(std::memory_order_relaxed);
        const std::uint64_t place = operation_of(log, thread, n).place;
        mine.pending[0] = place;
        mine.pending[1] = mine.last[place];
        mine.start();
        if (perform(at, log, thread, n, mine))
            mine.last[place] = place >= enqueued ? mine.last[place] + 1 : n + 1;
        mine.ack();
    }
}

/// What a thread has put in, as far as it is still there: in order, and, of what nobody or the
/// oldest only is taken, without gaps up to the last one. Settles one that was being put in.
void locked_load::verify_marks(journal& log, const std::vector<word>& in, unsigned t,
                               std::uint64_t place) {
    thread_journal& mine = log.of[t];
    const bool pending = mine.unfinished() && mine.pending[0] == place;
    const bool in_a_row = place != pushed, all_stay = place == appended;
    std::uint64_t last = 0;
    for (const word each : in) {
        if (each >> 48 != t) continue;
        const std::uint64_t number = each & (word{1} << 48) - 1;
        if (last != 0 && (in_a_row ? number != last + 1 : number <= last))
            ++log.lost, log.fail("thread %u, place %llu: %llu behind %llu", t,
                                 static_cast<unsigned long long>(place),
                                 static_cast<unsigned long long>(number),
                                 static_cast<unsigned long long>(last));
        last = number;
    }
    const std::uint64_t known = mine.last[place];
    if (last > known + (pending ? 1 : 0) || (in_a_row && last < known && (last != 0 || all_stay)))
        ++log.lost,
            log.fail("thread %u, place %llu: the last one is %llu, expected %llu", t,
                     static_cast<unsigned long long>(place), static_cast<unsigned long long>(last),
                     static_cast<unsigned long long>(known));
    // Where it is not there it was not put in, or another thread has taken it since.
    if (pending && (last > known || (last == 0 && !all_stay))) mine.last[place] = known + 1;
}

/// How many there are: no more were taken out than others' operations may have. Settles those.
void locked_load::verify_counts(journal& log, std::uint64_t size, std::uint64_t in,
                                std::uint64_t out) {
    std::uint64_t ins = 0, outs = 0, pending_ins = 0, pending_outs = 0;
    for (unsigned t = 0; t < log.threads; ++t) {
        const thread_journal& its = log.of[t];
        const std::uint64_t place = its.unfinished() ? its.pending[0] : ~std::uint64_t{0};
        ins += place == in ? its.pending[1] : its.last[in];
        outs += place == out ? its.pending[1] : its.last[out];
        pending_ins += place == in ? 1 : 0;
        pending_outs += place == out ? 1 : 0;
    }
    if (size + outs + pending_outs < ins || size + outs > ins + pending_ins)
        ++log.lost,
            log.fail("lost: %llu are there; %llu and %llu more were put in, %llu and %llu "
                     "more taken out",
                     static_cast<unsigned long long>(size), static_cast<unsigned long long>(ins),
                     static_cast<unsigned long long>(pending_ins),
                     static_cast<unsigned long long>(outs),
                     static_cast<unsigned long long>(pending_outs));
    std::uint64_t now = 0;
    for (unsigned t = 0; t < log.threads; ++t) now += log.of[t].last[in] - log.of[t].last[out];
    log.of[0].last[out] += now - size; // modulo 2^64
}

void locked_load::verify(hf::pool& pool, journal& log) {
    root& at = *pool.root<root>();
    if (!at.check()) log.fail("the structures' invariants do not hold");
    if (at.vector.size() < elements) { // killed before there were threads
        if (log.acknowledged() != 0) ++log.lost, log.fail("lost: elements of the vector");
        return;
    }
    std::vector<word> queued, stacked, listed;
    at.queue.for_each([&](word each) { queued.push_back(each); });
    at.stack.for_each([&](word each) { stacked.push_back(each); });
    std::ranges::reverse(stacked);
    for (word i = elements, value = 0; at.vector.get(i, &value); ++i) listed.push_back(value);
    for (unsigned t = 0; t < log.threads; ++t) {
        verify_marks(log, queued, t, enqueued);
        verify_marks(log, stacked, t, pushed);
        verify_marks(log, listed, t, appended);
    }
    verify_counts(log, queued.size(), enqueued, dequeued);
    verify_counts(log, stacked.size(), pushed, popped);
    std::uint64_t all = 0;
    for (unsigned t = 0; t < log.threads; ++t) {
        thread_journal& mine = log.of[t];
        const std::uint64_t place = mine.pending[0], n = mine.acked.load();
        if (mine.unfinished() && place < enqueued) {
            mine.last[place] = mine.pending[1];
            if (!as_left(at, log, t, place, mine.last[place]) && as_left(at, log, t, place, n + 1))
                mine.last[place] = n + 1;
        }
        mine.settle();
        for (std::uint64_t k = 0; k < enqueued; ++k)
            if (!as_left(at, log, t, k, mine.last[k]))
                ++log.lost, log.fail("lost: thread %u place %llu is not as operation %llu left it",
                                     t, static_cast<unsigned long long>(k),
                                     static_cast<unsigned long long>(mine.last[k]));
        all += mine.last[appended];
    }
    if (listed.size() != all)
        ++log.lost, log.fail("the vector has %zu values, expected %llu", listed.size(),
                             static_cast<unsigned long long>(all));
    block_census census(pool);
    at.for_each_block([&](const void* block) {
        if (!census.reach(block, 1)) log.fail("%p is in no block of its own", block);
    });
    if (!census.reach(&at, sizeof at)) log.fail("the root is in no block of its own");
    census.report_leaks(pool, log);
}

} // namespace

workload& locked_workload() {
    static locked_load only;
    return only;
}

} // namespace kill_test
