// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Promises of HF_PURE that the function's own text breaks.
#include <holdfast/holdfast.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

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
template <class T> HF_PURE T swap_in(T* a, T b) noexcept {
    *(a + 1) = b; // error: 'swap_in' is marked HF_PURE, but stores to what it was given
    return *a;
}
long instantiate(long* n) { return swap_in(n, 3L); }
HF_PURE long copy_whole(counter& to, const counter& from) noexcept {
    to = from; // error: 'copy_whole' is marked HF_PURE, but stores to what it was given
    return to.value;
}
HF_PURE long copy_bytes(counter* to, const counter& from) noexcept {
    std::memcpy(to, &from, sizeof from); // error: 'copy_bytes' is marked HF_PURE, but stores to what it was given
    return to->value;
}
HF_PURE long trade(counter& c, long n) noexcept {
    std::swap(c.value, n); // error: 'trade' is marked HF_PURE, but stores to what it was given
    return n;
}
HF_PURE long make_there(void* at) noexcept {
    return (new (at) counter{})->value; // error: 'make_there' is marked HF_PURE, but stores to what it was given
}
HF_PURE long advance(char* at) noexcept {
    *at++ = 1; // error: 'advance' is marked HF_PURE, but stores to what it was given
    return 0;
}
HF_PURE long in_a_lambda(counter* c) noexcept {
    [&] { c->value = 1; }(); // error: 'in_a_lambda' is marked HF_PURE, but stores to what it was given
    return 0;
}
HF_PURE long element(std::vector<long>& of) noexcept {
    of[0] = 1; // error: 'element' is marked HF_PURE, but stores to what it was given
    return 0;
}

// What keeps its promise.
// [accepted]
HF_PURE long kept_result(long n) noexcept {
    static long known, result;
    if (known != n) known = n, result = n * n;
    return result;
}
HF_PURE long digits(long n) noexcept {
    char text[24];
    char* at = text + sizeof text;
    do *--at = static_cast<char>('0' + n % 10);
    while ((n /= 10) != 0);
    char* first = text;
    *first++ = *at;
    return text + sizeof text - at;
}
HF_PURE long of_its_own(counter c, std::array<long, 4> given) noexcept {
    std::array<long, 4> mine{};
    mine[1] = 2;
    mine.data()[2] = 3;
    given[0] = 1;
    std::for_each(mine.begin(), mine.end(), [](long& each) { each *= 2; });
    struct adder {
        long total = 0;
        void add(long n) { total += n; }
    } sum;
    for (const long each : mine) sum.add(each);
    std::swap(c.value, sum.total);
    std::memset(c.seen, 0, sizeof c.seen);
    counter copy;
    std::memcpy(&copy, &c, sizeof c);
    alignas(counter) std::byte room[sizeof(counter)];
    return copy.value + (new (room) counter{})->value;
}
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
// [/accepted]
