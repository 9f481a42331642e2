// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sections that take and release locks of the pool inside, for engine justdo: several, nested, hand
// over hand, shared, tried, by their own calls and by the standard library's guards, and in helpers
// that return with a lock held. With LOCKS_UNMARKED no mark names these functions
// (-holdfast-between-locks).
#include "oracle.hpp"

#include <holdfast/alloc.hpp>
#include <holdfast/lock.hpp>

#include <atomic>
#include <mutex>
#include <shared_mutex>

#ifdef LOCKS_UNMARKED
#undef HF_TXFUNC
#define HF_TXFUNC __attribute__((noinline))
#endif

using oracle::at;

namespace {

struct account {
    hf::mutex lock;
    long cents;
};

struct place {
    hf::mutex lock;
    place* next;
    long value;
};

} // namespace

extern "C" bool stepping_is_lock(std::size_t offset) noexcept {
    return offset == 64 || offset == 128 || (offset >= 512 && offset < 768 && offset % 64 == 0);
}

HF_TXFUNC void transfer_inside(account* from, account* to, long cents) noexcept {
    const std::unique_lock first{from->lock};
    const std::unique_lock second{to->lock};
    from->cents -= cents;
    to->cents += cents;
}
SCENARIO(
    transfer_inside, [] { at<account>(64)->cents = 100; },
    [] { transfer_inside(at<account>(64), at<account>(128), 30); })

// Each is held until the next one is; what is stored under the first is seen when it is let go.
HF_TXFUNC void hand_over_hand(place* at_place) noexcept {
    at_place->lock.lock();
    long sum = 0;
    while (at_place->next != nullptr) {
        at_place->value += ++sum;
        place* next = at_place->next;
        next->lock.lock();
        at_place->lock.unlock();
        sum += next->value;
        at_place = next;
    }
    at_place->value += sum;
    at_place->lock.unlock();
}
SCENARIO(
    hand_over_hand,
    [] {
        for (int i = 0; i < 4; ++i) {
            at<place>(512 + 64 * i)->next = i < 3 ? at<place>(512 + 64 * (i + 1)) : nullptr;
            at<place>(512 + 64 * i)->value = 10 * i;
        }
    },
    [] { hand_over_hand(at<place>(512)); })

HF_TXFUNC void reads_under_one(account* from, account* to) noexcept {
    from->lock.lock_shared();
    const long found = from->cents;
    to->lock.lock();
    to->cents += found;
    to->lock.unlock();
    from->lock.unlock_shared();
}
SCENARIO(
    reads_under_one, [] { at<account>(64)->cents = 100; },
    [] { reads_under_one(at<account>(64), at<account>(128)); })

// Tries one lock while it holds the other. If the first is not free, it releases both and takes the
// other one first.
HF_TXFUNC void transfer_scoped(account* from, account* to, long cents) noexcept {
    const std::scoped_lock both{from->lock, to->lock};
    from->cents -= cents;
    to->cents += cents;
}
SCENARIO(
    transfer_scoped, [] { at<account>(64)->cents = 100; },
    [] { transfer_scoped(at<account>(64), at<account>(128), 30); })

// How often it was not free must not show: a local in the frame is counted up meanwhile.
HF_TXFUNC void tries_until_held(account* a, long* counts) noexcept {
    long seen[4] = {};
    long round = 0;
    while (!a->lock.try_lock()) seen[++round & 3] += 1;
    a->cents += 5;
    counts[0] += a->cents;
    counts[a->cents & 3] += 1;
    a->lock.unlock();
}
SCENARIO(
    tries_until_held, [] { at<account>(64)->cents = 7; },
    [] { tries_until_held(at<account>(64), at<long>(256)); })

// The loop's register is set again while nothing has moved the program counter.
HF_TXFUNC void tries_and_counts(account* a, account* b) noexcept {
    a->lock.lock();
    a->cents += 1;
    for (long round = 1;; round = round * 3 + 1) {
        if (b->lock.try_lock()) break;
        if (round > 100000) round = 1;
    }
    b->cents += a->cents;
    a->cents *= 2;
    b->lock.unlock();
    a->lock.unlock();
}
SCENARIO(
    tries_and_counts, [] { at<account>(64)->cents = 11; },
    [] { tries_and_counts(at<account>(64), at<account>(128)); })

// The counter was saved before the lock was asked for, and has another value behind it.
HF_TXFUNC void tries_each_round(account* a, account* b) noexcept {
    const std::unique_lock held{a->lock};
    for (long i = 1; i < 4; ++i) {
        while (!b->lock.try_lock()) {}
        b->cents = b->cents * 3 + i;
        b->lock.unlock();
    }
    a->cents += b->cents;
}
SCENARIO(
    tries_each_round, [] { at<account>(64)->cents = 11; },
    [] { tries_each_round(at<account>(64), at<account>(128)); })

static place* step_to(place* from) noexcept {
    place* const next = from->next;
    if (next != nullptr) next->lock.lock();
    from->lock.unlock();
    return next;
}
static place* first_of(place* p) noexcept {
    p->lock.lock();
    return p;
}
// Helpers take what the next one lets go.
HF_TXFUNC void hand_over_hand_in_helpers(place* p, long value) noexcept {
#ifdef LOCKS_UNMARKED
    p->lock.lock();
#else
    first_of(p);
#endif
    for (; p != nullptr; p = step_to(p)) {
        p->value += value;
        value += p->value;
    }
}
SCENARIO(
    hand_over_hand_in_helpers,
    [] {
        for (int i = 0; i < 4; ++i)
            at<place>(512 + 64 * i)->next = i < 3 ? at<place>(512 + 64 * (i + 1)) : nullptr;
    },
    [] { hand_over_hand_in_helpers(at<place>(512), 3); })
#ifdef LOCKS_UNMARKED
[[maybe_unused]] static auto* const used = &first_of;
#endif

HF_TXFUNC long reads_by_guard(account* a, account* b) noexcept {
    long found = 0;
    {
        const std::shared_lock shared{a->lock};
        found = a->cents;
        if (const std::unique_lock tried{b->lock, std::try_to_lock}; tried.owns_lock()) {
            b->cents += found;
            return b->cents;
        }
    }
    const std::lock_guard held{b->lock};
    b->cents += found;
    return b->cents;
}
SCENARIO(
    reads_by_guard, [] { at<account>(64)->cents = 9; },
    [] { reads_by_guard(at<account>(64), at<account>(128)); })

// A failure-atomic function that is called in a section is a plain call.
__attribute__((annotate("holdfast.txfunc"), noinline)) static void add_to(account* a,
                                                                          long cents) noexcept {
    a->cents += cents;
    a->cents ^= 5;
}
HF_TXFUNC void calls_another(account* a, account* b) noexcept {
    const std::unique_lock first{a->lock};
    add_to(a, 3);
    const std::unique_lock second{b->lock};
    add_to(b, a->cents);
}
SCENARIO(
    calls_another, [] { at<account>(64)->cents = 9; },
    [] { calls_another(at<account>(64), at<account>(128)); })

// Other threads read such words without a lock.
HF_TXFUNC void publishes(account* a, long* word) noexcept {
    const std::unique_lock held{a->lock};
    const std::atomic_ref<long> seen{word[0]};
    a->cents += seen.load(std::memory_order_acquire);
    std::atomic_ref<long>{word[1]}.store(a->cents, std::memory_order_release);
    std::atomic_ref<long>{word[2]}.store(a->cents + word[1]);
    std::atomic_ref<short>{*reinterpret_cast<short*>(word + 3)}.store(7, std::memory_order_relaxed);
    word[0] += 2;
}
SCENARIO(
    publishes, [] { at<account>(64)->cents = 9, at<long>(256)[0] = 4; },
    [] { publishes(at<account>(64), at<long>(256)); })

// Only the result's inputs may fault: the values that they are computed from are not kept.
HF_TXFUNC long returns_what_it_loads(account* a, const account* b, const long* words, long count,
                                     long by) noexcept {
    const std::unique_lock held{a->lock};
    long found = 0;
    for (long i = 0; i < count; ++i) {
        a->cents += i;
        found += words[i] / by;
    }
    a->cents += 3;
    found += b->cents;
    a->cents *= 2;
    return found + a->cents % by;
}
SCENARIO(
    returns_what_it_loads,
    [] {
        at<account>(64)->cents = 9;
        for (long i = 0; i < 4; ++i) at<long>(256)[i] = 40 * i;
    },
    [] { returns_what_it_loads(at<account>(64), at<account>(128), at<long>(256), 4, 7); })
