// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Promises of HF_PURE that the function's own text breaks.
#include <holdfast/holdfast.hpp>

struct counter {
    long value;
    long seen[4];
    HF_PURE long next() { return ++value; } // error: 'next' is marked HF_PURE, but stores to what it was given
};
long calls;

HF_PURE void log_it(long value) noexcept; // error: 'log_it' is marked HF_PURE, but returns nothing
HF_PURE long add(counter* c) noexcept {
    c->value += 1; // error: 'add' is marked HF_PURE, but stores to what it was given
    return c->value;
}
HF_PURE long mark(counter& c, int at) noexcept {
    c.seen[at] = 1; // error: 'mark' is marked HF_PURE, but stores to what it was given
    return at;
}
HF_PURE long count(long n) noexcept {
    calls++; // error: 'count' is marked HF_PURE, but stores to 'calls', which is no variable of its own
    return n;
}
HF_PURE long remember(long n) noexcept {
    static long last;
    const long before = last;
    last = n; // error: 'remember' is marked HF_PURE, but stores to 'last'
    return before;
}
template <class T> HF_PURE T swap_in(T* a, T b) noexcept {
    *(a + 1) = b; // error: 'swap_in' is marked HF_PURE, but stores to what it was given
    return *a;
}
long instantiate(long* n) { return swap_in(n, 3L); }

// What keeps its promise.
HF_PURE long sum(const counter* c, long n) noexcept {
    long parts[4] = {}, total = 0;
    counter mine{};
    for (long i = 0; i < 4; ++i) parts[i] = c->seen[i] + n;
    for (long* p = parts; p != parts + 4; ++p) *p += 1, total += *p;
    n += total;
    mine.value = n;
    mine.seen[1]--;
    return mine.value;
}
