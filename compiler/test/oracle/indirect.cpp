// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions written against indirect and virtual calls of sections (compiler/transform/DispatchCalls): what
// they reach is chosen at run time, by variables that another file might have changed, and must be an
// instance like those that direct calls reach. For engine redo alone.
#include "oracle.hpp"

#include <functional>
#include <new>
#include <stdexcept>

using oracle::at;

// Others might define these, and change the variables.
namespace by_address {

#define FILLED(name, ...)                                                                          \
    SCENARIO(                                                                                      \
        name,                                                                                      \
        [] {                                                                                       \
            for (long i = 0; i < 32; ++i) at<long>(0)[i] = i * 37 % 11;                            \
        },                                                                                         \
        __VA_ARGS__)

// --- Function pointers ----------------------------------------------------------------------------

using step = void (*)(long*);
using order = bool (*)(const long*, const long*);

static void doubles(long* p) { *p *= 2; }
static void adds_the_next(long* p) { *p += p[1]; }
static bool up(const long* a, const long* b) { return *a < *b; }
static bool down(const long* a, const long* b) { return *b < *a; }

step steps[] = {doubles, adds_the_next};
order orders[] = {up, down};

// Nothing but the call stores: the loads behind it must find that.
HF_TXFUNC long calls_and_reads(long* p, int which) {
    steps[which](p);
    p[8] = p[0];
    return p[0];
}
FILLED(calls_and_reads_the_first, [] { (void)calls_and_reads(at<long>(8), 0); })
FILLED(calls_and_reads_the_second, [] { (void)calls_and_reads(at<long>(8), 1); })

HF_TXFUNC void chain(long* p, int n) {
    for (int i = 0; i < n; ++i) steps[(p[i] + i) & 1](p + i);
}
FILLED(chain, [] { chain(at<long>(0), 7); })

static void sort(long* first, long* last, order before) {
    for (long* i = first; i != last; ++i)
        for (long* j = i; j != first && before(j, j - 1); --j) std::swap(*j, *(j - 1));
}
HF_TXFUNC void sorts(long* p, int n, int which) { sort(p, p + n, orders[which]); }
FILLED(sorts_up, [] { sorts(at<long>(0), 9, 0); })
FILLED(sorts_down, [] { sorts(at<long>(0), 9, 1); })

// An argument that is a pointer to a function, which no pool is looked for behind.
HF_TXFUNC void given(long* p, step what) {
    p[1] = 5;
    what(p);
}
FILLED(given, [] { given(at<long>(0), adds_the_next); })

static long depth(long* p, long n);
long (*deeper)(long*, long) = depth;
static long depth(long* p, long n) {
    p[n] += n == 0 ? 1 : deeper(p, n - 1);
    return p[n];
}
HF_TXFUNC void recursion(long* p) { p[10] = deeper(p, 5); }
FILLED(recursion_by_address, [] { recursion(at<long>(0)); })

// --- Memory ---------------------------------------------------------------------------------------

static oracle::digested twice(oracle::digested from) {
    for (unsigned long& x : from.x) x *= 2;
    return from;
}
oracle::digested (*changes)(oracle::digested) = twice;
HF_TXFUNC void aggregates(oracle::digested* d) {
    d[0].x[1] = 7;
    d[1] = changes(d[0]);
    d[0] = changes(d[1]);
}
FILLED(aggregates_by_address, [] { aggregates(at<oracle::digested>(0)); })

static long* makes(long value) {
    auto* block = static_cast<long*>(hf_alloc(4 * sizeof(long)));
    if (block != nullptr) block[1] = value;
    return block;
}
static void fills(long* block, const long* from) { block[2] = block[1] + *from; }
long* (*maker)(long) = makes;
void (*filler)(long*, const long*) = fills;
HF_TXFUNC void fresh(long** p, long* from) {
    *from += 3;
    long* block = maker(*from);
    if (block == nullptr) return;
    auto* mine = static_cast<long*>(hf_alloc(4 * sizeof(long)));
    if (mine == nullptr) return;
    mine[1] = *from;
    filler(mine, from);
    filler(block, mine + 2);
    block[0] = mine[2];
    *p = block;
}
FILLED(fresh_by_address, [] { fresh(at<long*>(512), at<long>(8)); })

// --- Virtual functions ----------------------------------------------------------------------------

namespace {
struct shape {
    long side = 3;
    virtual ~shape() = default;
    virtual void put(long* to) { *to = side; }
    virtual long area(const long* scale) const = 0;
};
struct square : shape {
    void put(long* to) override {
        shape::put(to);
        to[1] = area(to);
    }
    long area(const long* scale) const override { return side * side * *scale; }
};
struct strip : shape {
    long area(const long* scale) const override { return side + *scale; }
};
square a_square;
strip a_strip;
} // namespace
shape* shapes[] = {&a_square, &a_strip};

HF_TXFUNC void of_objects(long* p, shape* const* all, int n) {
    for (int i = 0; i < n; ++i) {
        all[i]->put(p + 2 * i);
        p[8] += all[i]->area(p + 2 * i);
    }
}
FILLED(virtual_of_objects, [] { of_objects(at<long>(0), shapes, 2); })

void (shape::*member)(long*) = &shape::put;
HF_TXFUNC void by_member(long* p, shape* s) {
    (s->*member)(p);
    p[2] += p[0];
}
FILLED(virtual_by_member, [] { by_member(at<long>(0), shapes[0]); })

HF_TXFUNC void local_objects(long* p, int which) {
    square one;
    strip other;
    one.side = *p;
    shape* both[] = {&other, &one};
    both[(*p + which) & 1]->put(p);
    p[3] = both[which]->area(p);
}
FILLED(virtual_of_locals, [] { local_objects(at<long>(0), 0); })

// --- std::function --------------------------------------------------------------------------------

std::function<void(long)> anything;
HF_TXFUNC void of_function(long* p) {
    for (long i = 1; i < 4; ++i) anything(i);
    p[5] = p[1];
}
FILLED(function_of_another, [] {
    anything = [p = at<long>(0)](long n) { p[n % 2] += p[n] * n; };
    of_function(at<long>(0));
})

HF_TXFUNC void makes_function(long* p, int n) {
    for (int i = 0; i < n; ++i) {
        std::function<long(long)> f;
        if (p[i] & 1)
            f = [p](long x) { return p[0] += x; };
        else
            f = [p, i](long x) { return p[i] -= x; };
        p[8] += f(i);
    }
}
FILLED(function_of_its_own, [] { makes_function(at<long>(0), 6); })

// --- Exceptions -----------------------------------------------------------------------------------

static void throws(long* p) {
    p[0] = -1;
    if (p[1] != 0) throw p[1];
}
step thrower = throws;
HF_TXFUNC void catches(long* p) {
    try {
        thrower(p);
    } catch (long n) {
        p[2] = n + p[0];
    }
    p[1] = 0;
    thrower(p);
}
FILLED(caught_inside, [] { catches(at<long>(0)); })

HF_TXFUNC void leaves(long* p) {
    p[3] = 8;
    thrower(p);
    p[4] = 9;
}
FILLED(left_through_address, [] {
    try {
        leaves(at<long>(0));
    } catch (long) {
        oracle::left_by_exception();
    }
})

} // namespace by_address
