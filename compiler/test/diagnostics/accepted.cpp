// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What looks forbidden and is not.
// RUN: %hf_clangxx -O2 -Werror -c %s -o %t.o
// RUN: %hf_clangxx -O0 -Werror -c %s -o %t.o
// RUN: %hf_clangxx -Os -Werror -c %s -o %t.o
// RUN: %hf_clangxx -O1 -Werror -fsanitize=address,undefined -c %s -o %t.o
// RUN: %hf_clangxx -O2 -Werror -fsanitize=undefined -c %s -o %t.o
// RUN: %hf_clangxx -O1 -Werror -fsanitize=thread -c %s -o %t.o
// RUN: %hf_clangxx -O1 -Werror -fprofile-instr-generate -fcoverage-mapping -c %s -o %t.o
// RUN: %hf_clangxx -O2 -Werror -fprofile-generate -c %s -o %t.o
// RUN: %hf_clangxx -O0 -Werror -finstrument-functions -c %s -o %t.o
// RUN: %hf_clangxx -O2 -Werror -finstrument-functions-after-inlining -c %s -o %t.o
// RUN: %hf_clangxx -O2 -Werror -mllvm -holdfast-engine=undo -c %s -o %t.o
// RUN: %hf_clangxx -O3 -march=x86-64-v4 -Werror -c %s -o %t.o
#include <holdfast/txfunc.hpp>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string_view>
#include <variant>

extern "C" void* hf_alloc(std::size_t) noexcept;

static constexpr const char* names[] = {"one", "two"};
struct base {
    virtual long area() const noexcept { return 1; }
};
struct square final : base {
    long side = 3;
    long area() const noexcept override { return side * side; }
};

HF_TXFUNC void barrier(long* p) noexcept {
    *p += 1;
    asm volatile("" ::: "memory");
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    *p += 2;
}
HF_TXFUNC void literals(char* p, int which) noexcept { std::strcpy(p, names[which & 1]); }
HF_TXFUNC void hides_a_value(long* p) noexcept {
    long x = *p;
    asm volatile("" : "+r"(x) : : "memory");
    *p = x + 1;
}
HF_TXFUNC void differences(long* p, const long* from) noexcept {
    long local[8];
    std::copy_n(from, 8, local);
    p[0] = std::find(local, local + 8, 3) - local;
    p[1] = std::partition_point(local, local + 8, [](long x) { return x < 5; }) - local;
    std::sort(local, local + 8);
    p[2] = local[p[0] & 7] + (&local[p[1] & 7] == &local[2]);
}
HF_TXFUNC void views(long* p, char* text) noexcept {
    std::string_view words[] = {"one", "two", "three"};
    for (std::string_view w : words) *p += long(w.size());
    std::memcpy(text, words[*p % 3].data(), 3);
}
struct chain {
    chain* next;
    long value;
};
HF_TXFUNC void reverses(chain** head) noexcept {
    chain start{nullptr, 0}; // a local that links to the pool, not the other way
    chain* last = &start;
    for (chain* at = *head; at != nullptr; at = at->next) last = last->next = at;
    *head = start.next;
}
HF_TXFUNC void devirtualised(square* s, long* p) noexcept { *p = s->area(); }
HF_TXFUNC void asserts(long* p, double* d) noexcept {
    assert(*p != 0);
    *d = std::sqrt(*d) + std::pow(*d, 3);
}
HF_TXFUNC void libraries(std::array<long, 8>* a, std::variant<long, double>* v, char* s) noexcept {
    std::sort(a->begin(), a->end());
    a->at(3) = std::accumulate(a->begin(), a->end(), 0L);
    if (auto* x = std::get_if<long>(v)) *v = double(*x);
    std::string_view text{s};
    a->front() = long(text.find('x')) + std::memcmp(s, "abc", 3);
}
HF_TXFUNC void conditional(long* a, const long* b, int n) noexcept {
    for (int i = 0; i < n; ++i)
        if (b[i] > 3) a[i] += b[i];
}

HF_PURE long measured(long x) noexcept;
HF_TXFUNC void reports_once(int* p, int i, bool up) noexcept {
    if (up) *p = i << *p;
    else *p = (i) << (*p); // UBSan's two reports become one, of a table that is chosen
}
HF_TXFUNC void pure(long* p) noexcept { *p = measured(*p); }

struct guard {
    long* p;
    ~guard() { *p += 1; }
};
[[gnu::noinline]] static void may_throw_as_far_as_declared(long* p) { *p += 2; }
HF_TXFUNC void cleans_up(long* p) {
    guard g{p};
    may_throw_as_far_as_declared(p);
}

// Preserving through a wrapper, in unoptimised code, after locals were stored to.
HF_TXFUNC void keeps(char* to, const char* bytes, std::size_t count) noexcept {
    std::size_t length = std::min<std::size_t>(count, 16);
    const char* kept = hf::vlog_preserve(bytes, length);
    std::memcpy(to, kept, length);
}

// More blocks than a bounded search of the control flow looks at.
HF_TXFUNC void many_branches(long* to, const long* bytes, bool all) noexcept {
    std::size_t count = 8;
    if (all) count = 24;
    const long* kept = hf::vlog_preserve(bytes, count);
#define HF_STEP(i) if (count > i && kept[i] > i) to[i] += kept[i];
#define HF_STEPS(i) HF_STEP(i) HF_STEP(i + 1) HF_STEP(i + 2) HF_STEP(i + 3) HF_STEP(i + 4) HF_STEP(i + 5)
    HF_STEPS(0) HF_STEPS(6) HF_STEPS(12) HF_STEPS(18)
}

HF_TXFUNC void computed_goto(long* p, int which) noexcept {
    static const void* const targets[] = {&&one, &&two};
    goto* targets[which];
one:
    *p = 1;
    return;
two:
    *p = 2;
}
