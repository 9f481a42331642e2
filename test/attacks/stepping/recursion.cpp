// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions that call themselves inside of sections, for engines justdo and ido: each with a frame
// of its own.
#include "oracle.hpp"

using oracle::at;

namespace {

struct tree {
    tree *left, *right;
    long key, sum;
};
struct pair {
    long a, b;
    const char* name;
};
const char* const words[] = {"one", "two", "three"};

void grow() {
    tree* t = at<tree>(0);
    for (int i = 0; i < 7; ++i)
        t[i] = {i < 3 ? &t[2 * i + 1] : nullptr, i < 3 ? &t[2 * i + 2] : nullptr, i, i * 5};
}

// The result comes in memory that is read before the next call; a constant's address goes down and
// up.
__attribute__((noinline)) pair both(tree* t, const char* const* word) {
    if (t == nullptr) return {1, 2, *word};
    pair l = both(t->left, word);
    l.a += t->sum;
    const pair r = both(t->right, word);
    t->sum += l.a + r.b;
    t->key = t->sum ^ l.b;
    return {l.a + r.a, t->key, r.name};
}
HF_TXFUNC void results_in_memory(tree* t) noexcept {
    pair p{3, 4, words[0]};
    for (int i = 0; i < 2; ++i) {
        t->key += p.a;
        p = both(t, words + i);
    }
    t->sum += p.name[1];
}
SCENARIO(results_in_memory, grow, [] { results_in_memory(at<tree>(0)); })

// The called function changes a local of its caller.
__attribute__((noinline)) void walk(const tree* t, long* total, int depth) {
    if (t == nullptr) return;
    walk(t->left, total, depth + 1);
    *total += t->key * depth;
    walk(t->right, total, depth + 2);
    *total ^= t->sum;
}
HF_TXFUNC void through_local(tree* t) noexcept {
    long total = 1;
    walk(t, &total, 1);
    t->key = total;
    walk(t, &total, 2);
    t->sum = total;
}
SCENARIO(through_local, grow, [] { through_local(at<tree>(0)); })

long odd(long* p, int n);
__attribute__((noinline)) long even(long* p, int n) {
    if (n == 0) return 0;
    p[n] += odd(p, n - 1);
    return p[n - 1] += 1;
}
__attribute__((noinline)) long odd(long* p, int n) {
    if (n == 0) return 1;
    const long x = even(p, n - 1);
    p[n] = p[n] * 3 + x;
    return p[n - 1] -= x;
}
HF_TXFUNC void by_turns(long* p) noexcept {
    p[9] += even(p, 4);
    p[8] += odd(p, 5);
}
SCENARIO(
    by_turns,
    [] {
        for (int i = 0; i < 10; ++i) at<long>(0)[i] = i * i;
    },
    [] { by_turns(at<long>(0)); })

// The called function stores over what its caller has read since its last step.
__attribute__((noinline)) long put(long* p, int n) {
    p[0] = n;
    if (n == 0) return 7;
    const long below = put(p + 1, n - 1);
    p[0] += below;
    return below + n;
}
HF_TXFUNC void reads_first(long* p) noexcept {
    const long x = p[0], y = p[1];
    const long z = put(p, 3);
    p[6] = x + z;
    p[7] = y;
    const long w = p[2];
    p[5] += put(p + 1, 2) + x + w;
}
SCENARIO(
    reads_first,
    [] {
        for (int i = 0; i < 10; ++i) at<long>(0)[i] = 5 + i * i;
    },
    [] { reads_first(at<long>(0)); })

// The same two frames down, where the caller has made no step yet when it reads.
__attribute__((noinline)) long reads_and_calls(long* p, int n) {
    const long x = p[0];
    const long z = put(p, 2);
    p[5] += x + z;
    return n == 0 ? x : reads_and_calls(p + 1, n - 1) ^ x;
}
HF_TXFUNC void reads_below(long* p) noexcept { p[8] += reads_and_calls(p, 2); }
SCENARIO(
    reads_below,
    [] {
        for (int i = 0; i < 10; ++i) at<long>(0)[i] = 9 + i * i;
    },
    [] { reads_below(at<long>(0)); })

// Called from many places, it stores where nothing was read, and does nothing else.
__attribute__((noinline)) void clear(long* p) {
    p[0] = 3;
    p[1] = 4;
}
__attribute__((noinline)) void clears(long* p, int n) {
    if (n == 0) return;
    clear(p);
    p[2] += n;
    clears(p + 1, n - 1);
    clear(p + 3);
}
HF_TXFUNC void cleared(long* p) noexcept { clears(p, 3); }
SCENARIO(
    cleared,
    [] {
        for (int i = 0; i < 10; ++i) at<long>(0)[i] = 1 + i * i;
    },
    [] { cleared(at<long>(0)); })

// In a loop, calls of a function that returns without a step: values saved for the next step must
// not overwrite those that the step before it has saved.
struct branch {
    long n, sum;
    branch* child[4];
};
__attribute__((noinline)) void spread(branch* b, long by) {
    if (b == nullptr) return;
    for (long i = 0; i < b->n; ++i) {
        b->sum += by + i;
        spread(b->child[i], by * 2);
    }
}
HF_TXFUNC void without_a_step(branch* b) noexcept { spread(b, 1); }
SCENARIO(
    without_a_step,
    [] {
        branch* const b = at<branch>(0);
        b[0] = {4, 0, {nullptr, nullptr, &b[1], nullptr}};
        b[1] = {4, 0, {}};
    },
    [] { without_a_step(at<branch>(0)); })

} // namespace
