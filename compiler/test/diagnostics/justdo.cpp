// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Engine justdo: what a section could not go on with after a crash is refused; what others refuse because
// they run a section again is too, where it dies with the process.
// RUN: not %hf_clangxx -O1 -mllvm -holdfast-engine=justdo -DERRORS -c %s -o %t.o 2>&1 | FileCheck %s
// RUN: not %hf_clangxx -O0 -mllvm -holdfast-engine=justdo -DERRORS -c %s -o %t.o 2>&1 | FileCheck %s
// RUN: %hf_clangxx -O1 -mllvm -holdfast-engine=justdo -c %s -o %t.o
// RUN: %hf_clangxx -O0 -mllvm -holdfast-engine=justdo -c %s -o %t.o
// RUN: %hf_clangxx -Os -mllvm -holdfast-engine=justdo -DGUARDS -c %s -o %t.o
// RUN: not %hf_clangxx -O1 -mllvm -holdfast-engine=justdo -mllvm -holdfast-between-locks -DUNMARKED -c %s -o %t.o 2>&1 | FileCheck %s --check-prefix=UNMARKED
// RUN: not %hf_clangxx -O1 -mllvm -holdfast-engine=clobber -c %s -o %t.o 2>&1 | FileCheck %s --check-prefix=LOCK
// RUN: not %hf_clangxx -O1 -mllvm -holdfast-engine=justdo -DLATE -c %s -o %t.o 2>&1 | FileCheck %s --check-prefix=LATE
// RUN: not %hf_clangxx -O1 -mllvm -holdfast-engine=justdo -mllvm -holdfast-relocatable -c %s -o %t.o 2>&1 | FileCheck %s --check-prefix=RELOCATE
// RELOCATE: error: -holdfast-relocatable does not work with sections of engine justdo
#include <holdfast/alloc.hpp>
#include <holdfast/author/staged.hpp>
#include <holdfast/lock.hpp>
#include <holdfast/txfunc.hpp>

#include <cstdio>
#include <cstring>
#include <mutex>

struct tree {
    tree *left, *right;
    long sum;
};
long counter;

#ifdef ERRORS
HF_TXFUNC void prints(char* text, long x) noexcept {
    // CHECK-DAG: justdo.cpp:[[@LINE+1]]:5: error: call of 'snprintf', which may change what it has read: {{.*}}; in failure-atomic function 'prints(char*, long)'
    std::snprintf(text, 8, "%ld", x);
}
HF_TXFUNC void pads(char* text, const char* from) noexcept {
    // CHECK-DAG: justdo.cpp:[[@LINE+1]]:5: error: call of 'strncpy', which a section of engine justdo could not go on in the midst of; in failure-atomic function 'pads(char*, char const*)'
    std::strncpy(text, from, 8);
}
HF_TXFUNC void counts(long* p) noexcept {
    // CHECK-DAG: justdo.cpp:[[@LINE+1]]:{{[0-9]+}}: error: unpreserved volatile input: global variable 'counter' is neither
    *p = counter;
}
HF_TXFUNC void has_any_size(long* p, unsigned long n) noexcept {
    // CHECK-DAG: justdo.cpp:[[@LINE+1]]:{{[0-9]+}}: error: local variable of a size that is not constant
    auto* words = static_cast<long*>(__builtin_alloca(n));
    for (unsigned long i = 0; i < n / 8; ++i) words[i] = p[i];
    for (unsigned long i = 0; i < n / 8; ++i) p[i] = words[n / 8 - i - 1];
}
HF_TXFUNC void adopts(void** p, void* block) noexcept {
    // CHECK-DAG: error: a staged block is adopted
    hf_adopt(block);
    *p = block;
}
HF_TXFUNC void exchanges(long* p) noexcept {
    // CHECK-DAG: justdo.cpp:[[@LINE+1]]:{{[0-9]+}}: error: atomic operation: take locks before calling the failure-atomic function; in failure-atomic function 'exchanges(long*)'
    *p = __atomic_exchange_n(p + 1, 3, __ATOMIC_SEQ_CST);
}
#endif

#ifdef LATE
// The section begins where every path to a store still is one: before these are preserved.
HF_TXFUNC void chooses(long* p, const long* a, const long* b, bool which) noexcept {
    if (which) {
        p[0] = *hf::vlog_preserve(a);
        p[1] = 1;
    } else {
        // LATE-DAG: error: hf_vlog_preserve in a loop, or where the section has begun
        p[1] = *hf::vlog_preserve(b);
        p[0] = 2;
    }
}
// Called again it would be read again.
__attribute__((noinline)) static long add_up(const tree* t, const long* volatile_word) {
    if (t == nullptr) return 0;
    // LATE-DAG: error: hf_vlog_preserve in a function that recurses: preserve before it is called; in 'add_up(tree const*, long const*)', reached from failure-atomic function 'recurses(tree*, long const*)'
    const long* const kept = hf::vlog_preserve(volatile_word);
    return t->sum + add_up(t->left, volatile_word) + add_up(t->right, volatile_word) + *kept;
}
HF_TXFUNC void recurses(tree* t, const long* volatile_word) noexcept {
    t->sum = add_up(t, volatile_word);
}
#endif

HF_TXFUNC void tries(hf::mutex* m, long* p) noexcept {
    if (!m->try_lock()) return;
    *p += __atomic_load_n(p + 1, __ATOMIC_ACQUIRE);
    m->unlock();
}
struct account {
    hf::mutex lock;
    long cents;
};
// LOCK: justdo.cpp:[[@LINE+3]]:{{[0-9]+}}: error: synchronisation by 'hf::shared_mutex::lock()': take locks before calling the failure-atomic function; in failure-atomic function 'transfer(account*, account*, long)'
// LOCK-DAG: error: synchronisation by 'hf::shared_mutex::unlock()'
HF_TXFUNC void transfer(account* from, account* to, long cents) noexcept {
    from->lock.lock();
    to->lock.lock();
    from->cents -= cents;
    to->cents += cents;
    to->lock.unlock();
    from->lock.unlock();
}
#ifdef UNMARKED
// Nobody has marked it: it takes a lock.
void takes_a_lock(account* a) noexcept {
    const std::unique_lock held{a->lock};
    // UNMARKED: justdo.cpp:[[@LINE+1]]:{{[0-9]+}}: error: write to global variable 'counter', which is volatile: recovery does not restore it; in function that takes locks of the pool 'takes_a_lock(account*)'
    counter = 5;
    // A word of the pool's is another matter.
    a->cents += 5;
}
#endif
#ifdef GUARDS
// noexcept ends behind a cleanup that lets a lock go: no handler.
HF_TXFUNC void adds_up(account* over, account* from, account* to, int n) noexcept {
    const std::unique_lock outer{over->lock};
    for (int i = 0; i < n; ++i) {
        const std::scoped_lock held{from->lock, to->lock};
        to->cents += i;
    }
}
#endif
