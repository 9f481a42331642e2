// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A section of engine redo is never run again, and can be taken back until its end: it may throw, look at the
// clock and at variables, and abort. For other engines that is refused; what a section of redo cannot take back
// is refused for redo, too.
// RUN: %hf_clangxx -O2 -Werror -mllvm -holdfast-engine=redo -c %s -o %t.o
// RUN: %hf_clangxx -O0 -Werror -mllvm -holdfast-engine=redo -c %s -o %t.o
// RUN: %hf_clangxx -O3 -march=x86-64-v4 -Werror -mllvm -holdfast-engine=redo -c %s -o %t.o
// RUN: %hf_clangxx -O1 -Werror -std=c++23 -stdlib=libc++ -mllvm -holdfast-engine=redo -c %s -o %t.o
// RUN: not %hf_clangxx -O2 -mllvm -holdfast-engine=redo -DERRORS -c %s -o %t.o 2>&1 | FileCheck %s --implicit-check-not=error:
// RUN: not %hf_clangxx -O0 -mllvm -holdfast-engine=redo -DERRORS -c %s -o %t.o 2>&1 | FileCheck %s --implicit-check-not=error:
// RUN: %hf_clangxx -O2 -Rpass-analysis=holdfast -mllvm -holdfast-engine=auto -c %s -o %t.o 2>&1 | FileCheck %s --check-prefix=LISTED
// RUN: not %hf_clangxx -O2 -ferror-limit=0 -c %s -o %t.o 2>&1 | FileCheck %s --check-prefix=CLOBBER
// RUN: not %hf_clangxx -O0 -ferror-limit=0 -mllvm -holdfast-engine=undo -c %s -o %t.o 2>&1 | FileCheck %s --check-prefix=UNDO
#include <holdfast/txfunc.hpp>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <stdexcept>
#include <unistd.h>

struct page {
    std::array<long, 8> numbers;
    long stamp;
    char text[16];
};

#ifndef ERRORS
struct code {
    int value;
};
struct named : std::runtime_error {
    explicit named(const char* what, int number) : std::runtime_error(what), number(number) {}
    int number;
};

HF_TXFUNC bool aborts(page* p) noexcept {
    p->stamp = 1;
    // CLOBBER-DAG: error: hf::abort_section in a section of engine clobber, which cannot take back what it has stored: build it for engine auto; in {{.*}}aborts
    // UNDO-DAG: error: hf::abort_section in a section of engine undo, which cannot take back
    hf::abort_section();
    return false;
}

HF_TXFUNC void throws(page* p, int which) {
    p->stamp = 1;
    // UNDO-DAG: taken_back.cpp:[[@LINE+1]]:{{.*}}error: exception handling ('__cxa_throw'){{.*}}or use engine auto
    if (which == 0) throw code{7};
    if (which == 1) throw named(p->text, 3);
    if (which == 2) throw std::out_of_range("which");
    p->numbers.at(std::size_t(which)) = 5;
}

HF_TXFUNC void catches(page* p, int which) {
    try {
        throws(p, which);
    } catch (const named& e) {
        p->stamp = e.number;
    } catch (const code& e) {
        if (e.value == 3) throw;
        p->stamp = e.value;
    } catch (...) {
        p->stamp = -1;
        throw;
    }
}

HF_TXFUNC void looks_around(page* p) {
    timespec now{};
    // CLOBBER-DAG: error: nondeterministic call of 'clock_gettime'{{.*}}or use engine auto
    clock_gettime(CLOCK_REALTIME, &now);
    p->stamp = now.tv_sec + std::time(nullptr) + std::rand() +
               std::chrono::steady_clock::now().time_since_epoch().count();
    clock_gettime(CLOCK_REALTIME, reinterpret_cast<timespec*>(p->numbers.data()));
    if (const char* home = std::getenv(p->text)) p->numbers[3] = home[0];
    p->numbers[4] = long(__builtin_ia32_rdtsc());
}

HF_TXFUNC void calls_anything(page* p, void (*what)(page*)) {
    // CLOBBER-DAG: taken_back.cpp:[[@LINE+1]]:{{.*}}error: indirect call{{.*}}or use engine auto
    what(p);
}
// What no section may run is no error where no section is known to: here it is only called by address.
// LISTED: taken_back.cpp:[[@LINE+1]]:{{.*}}remark: 'puts_it(page*)' may be called by its address, and is unfit for a section: input or output by 'puts'
static void puts_it(page* p) { std::puts(p->text); }
void (*const volatile anything)(page*) = puts_it;

long counter;
thread_local long mine;
volatile long signalled;
extern const long elsewhere;
HF_TXFUNC void uses_variables(page* p) {
    counter += p->stamp;
    mine = counter;
    p->stamp = counter + mine + signalled + elsewhere;
    signalled = 2;
    // Late, and of what the section has stored.
    const long* kept = hf::vlog_preserve(p->numbers.data(), 2);
    p->numbers[0] = kept[1];
}
// Locals in a chain from a variable or another local.
struct block {
    block* up;
    long depth;
};
block* innermost;
static long depth(const block* b) { return b ? 1 + depth(b->up) : 0; }
HF_TXFUNC void links_from_a_variable(page* p) {
    block mine{innermost, p->stamp};
    innermost = &mine;
    p->stamp = depth(innermost);
    innermost = mine.up;
}
__attribute__((noinline)) static void nest(block** last, page* p, int levels) {
    block mine{*last, 1};
    *last = &mine;
    p->stamp += depth(*last);
    if (levels > 0) nest(last, p, levels - 1);
    *last = mine.up;
}
HF_TXFUNC void links_to_a_local(page* p) {
    block* last = nullptr;
    nest(&last, p, 3);
}
HF_TXFUNC bool says_why(page* p, char* end) {
    // CLOBBER-DAG: taken_back.cpp:[[@LINE+2]]:{{.*}}error: errno, which is volatile: a crash takes it away; return what went wrong, or use engine auto
    // UNDO-DAG: taken_back.cpp:[[@LINE+1]]:{{.*}}error: errno, which is volatile
    errno = 0;
    p->stamp = std::strtol(p->text, &end, 10);
    if (errno != ERANGE) return true;
    p->numbers[0] = errno;
    errno = EINVAL;
    return false;
}
#else
struct meddler {
    page* in;
    ~meddler() { in->stamp = 9; }
};
HF_TXFUNC void throws_a_meddler(page* p) {
    // CHECK-DAG: taken_back.cpp:[[@LINE+1]]:{{.*}}error: exception whose destructor may store to the pool, or is not visible here
    throw meddler{p};
}
HF_TXFUNC void prints(page* p) {
    // CHECK-DAG: taken_back.cpp:[[@LINE+1]]:{{.*}}error: input or output by 'puts'
    std::puts(p->text);
}
long variable;
struct keeper {
    long* at;
};
HF_TXFUNC void keeps(keeper* k) {
    // CHECK-DAG: taken_back.cpp:[[@LINE+1]]:{{.*}}warning: address of global variable 'variable'{{.*}} is stored to the pool
    k->at = &variable;
}
thread_local long mine[4];
HF_TXFUNC void keeps_the_threads(keeper* k, long which) {
    // CHECK-DAG: taken_back.cpp:[[@LINE+1]]:{{.*}}warning: address of thread-local variable 'mine'{{.*}} is stored to the pool
    k->at = &mine[which];
}
HF_TXFUNC void keeps_errno(int** at) {
    // CHECK-DAG: taken_back.cpp:[[@LINE+1]]:{{.*}}warning: address of errno{{.*}} is stored to the pool
    *at = &errno;
}
struct closer {
    ~closer() { std::puts("closed"); }
};
HF_TXFUNC void makes_a_static(page* p) {
    // CHECK-DAG: taken_back.cpp:[[@LINE+2]]:{{.*}}error: atomic operation
    // CHECK-DAG: taken_back.cpp:[[@LINE+1]]:{{.*}}error: initialisation of a function-local static variable
    static closer at_the_end;
    p->stamp = 1;
}
struct marker {
    long value = 1;
    ~marker() { value = 0; }
};
thread_local marker marked;
HF_TXFUNC void looks_at_the_threads(page* p) {
    // CHECK-DAG: error: initialisation of a thread-local variable with a destructor
    p->stamp = marked.value;
}
HF_TXFUNC void looks_up(page* p) {
    // CHECK-DAG: taken_back.cpp:[[@LINE+1]]:{{.*}}error: call of 'getentropy' with the address of memory that may be persistent
    (void)getentropy(p->text, 16);
}
struct chain {
    chain* up;
    long depth;
};
chain* top;
HF_TXFUNC void keeps_for_a_while(chain* c) {
    chain mine{c->up, 3};
    // CHECK-DAG: taken_back.cpp:[[@LINE+1]]:{{.*}}warning: address of a local variable{{.*}} is stored to the pool{{.*}}. A section that keeps it to its end is refused there with open_options::expert.check_pointers; in failure-atomic function 'keeps_for_a_while(chain*)'
    c->up = &mine;
    __builtin_launder(c)->depth += __builtin_launder(c)->up->depth;
    asm volatile("" ::: "memory");
    c->up = mine.up;
}
#endif
