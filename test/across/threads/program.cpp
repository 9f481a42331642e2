// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: ThreadSanitizer finds a user's races on the pool with the library as it is installed, and
// nothing else. Method: program MODE POOL WHAT, built with the sanitizer, does in two threads
//
//   race    the same counter in two sections without a lock: it must be found
//   locked  the same with the counter's lock
//   shared  sections with the lock, and readers that share it
//   blocks  blocks that one thread frees and the other gets, without a lock
//   handed  all blocks of the pool, one thread after the other
//
// The threads take turns by relaxed atomics, which order nothing for the sanitizer.
#include <holdfast/alloc.hpp>
#include <holdfast/engines.hpp>
#include <holdfast/lock.hpp>
#include <holdfast/pool.hpp>
#include <holdfast/txfunc.hpp>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <sched.h>
#include <shared_mutex>
#include <string>
#include <thread>

namespace {

struct big;
struct counter {
    hf::mutex lock;
    long value;
    char text[64];
    long* block;
    big* all;
};
struct counters {
    counter ours, of[2];
};

HF_TXFUNC void add(counter* c, long by) noexcept { // [race]
    c->value += by;
    std::memset(c->text, static_cast<int>(by), sizeof c->text);
}

HF_TXFUNC void replace(counter* c) noexcept {
    hf_free(c->block);
    long* const block = hf::make<long>(c->value);
    if (block != nullptr) *block += 1;
    c->block = block;
}

struct big {
    big* next;
};

/// Takes what the pool has left, and returns how many blocks that is.
HF_TXFUNC long take_all(counter* c) noexcept {
    long count = 0;
    for (; auto* const block = static_cast<big*>(hf_alloc(64 << 10)); ++count) {
        block->next = c->all;
        c->all = block;
    }
    return count;
}

HF_TXFUNC void drop_all(counter* c) noexcept {
    while (big* const block = c->all) {
        c->all = block->next;
        hf_free(block);
    }
}

std::atomic<int> turn{0};
void wait_for(int t) {
    while (turn.load(std::memory_order_relaxed) != t) ::sched_yield();
}
void pass_to(int t) { turn.store(t, std::memory_order_relaxed); }

void change(counter* c, bool locked, long by) {
    std::unique_lock held{c->lock, std::defer_lock};
    if (locked) held.lock();
    add(c, by);
}

/// Both have used the library before they meet.
void meet(counters* all, int me, bool locked) {
    wait_for(me);
    add(&all->of[me], 1);
    pass_to(me + 1);
    wait_for(me + 2);
    change(&all->ours, locked, me);
    pass_to(me + 3);
}

void share(counters* all, int me) {
    for (int i = 0; i < 200; ++i)
        if ((i + me) % 2 == 0) {
            change(&all->ours, true, i);
        } else {
            const std::shared_lock held{all->ours.lock};
            if (all->ours.value < 0) std::abort();
        }
}

void replace_often(counters* all, int me) {
    for (int i = 0; i < 500; ++i) replace(&all->of[me]);
}

/// Each gets all blocks that the other has freed.
void hand_over(counters* all, int me) {
    for (int round = 0; round < 4; ++round) {
        wait_for(2 * round + me);
        if (take_all(&all->of[me]) < 16) std::abort();
        drop_all(&all->of[me]);
        add(&all->of[me], 1); // what the last section has freed may wait for this one
        pass_to(2 * round + me + 1);
    }
}

} // namespace

int main(int, char** arguments) {
    const std::string mode = arguments[1], path = arguments[2], what = arguments[3];
    hf::open_options o;
    o.layout = "threads/1";
    o.create_bytes = o.max_bytes = 4 << 20;
    o.mode = mode == "pmem"    ? hf::mode::pmem
             : mode == "power" ? hf::mode::power
                               : hf::mode::process;
    o.engines = hf::engines_of_build();
    auto pool = hf::pool::open(path, o);
    if (!pool) return std::fprintf(stderr, "%s\n", pool.error().what().c_str()), 1;
    auto* const all = pool->root<counters>();
    auto work = [&](int me) {
        if (what == "shared") share(all, me);
        else if (what == "handed") hand_over(all, me);
        else if (what == "blocks") replace_often(all, me);
        else meet(all, me, what == "locked");
    };
    std::thread other{work, 1};
    work(0);
    other.join();
    std::printf("%ld\n", all->ours.value);
}
