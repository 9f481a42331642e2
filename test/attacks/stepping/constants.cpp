// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sections of engines justdo and ido that keep addresses of constants and functions: in their
// frame's memory, in numbers, in what functions with frames of their own are given and return.
// Another process has them elsewhere.
#include "oracle.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

using oracle::at;

namespace {

void count_up() {
    for (int i = 0; i < 12; ++i) at<long>(0)[i] = 3 * i + 1;
}

HF_TXFUNC void array_of_texts(long* p) noexcept {
    const char* texts[4] = {"alpha", "beta", nullptr, "delta"};
    for (int i = 0; i < 4; ++i) {
        const char* const text = texts[(p[i] + i) & 3];
        p[i] += text != nullptr ? text[1] : 1000;
        texts[p[i] & 3] = texts[i];
    }
    for (int i = 0; i < 4; ++i) p[4 + i] = texts[i] != nullptr ? texts[i][0] : -1;
}
SCENARIO(array_of_texts, count_up, [] { array_of_texts(at<long>(0)); })

struct kind {
    const char* name;
    long factor;
    const long* weights;
};
constexpr long light[] = {1, 2, 3}, heavy[] = {100, 200, 300};
constexpr kind kinds[] = {{"first", 2, light}, {"second", 3, heavy}, {"third", 5, nullptr}};

__attribute__((noinline)) long weigh(kind* k, long* p, int n) {
    if (n == 0) return k->factor;
    p[n] += k->name[n] + (k->weights != nullptr ? k->weights[n % 3] : 7);
    k->weights = k->weights == light ? heavy : light;
    return weigh(k, p, n - 1) + p[n];
}
// A copy of a table's element stays in memory, and what is called changes it.
HF_TXFUNC void copy_of_element(long* p) noexcept {
    kind mine = kinds[p[0] % 3];
    p[0] += weigh(&mine, p, 3);
    p[5] += mine.name[0] + mine.weights[1];
    kind both[2] = {kinds[1], mine};
    p[6] += weigh(&both[p[5] & 1], p + 6, 2);
    p[10] = both[p[6] & 1].name[2];
}
SCENARIO(copy_of_element, count_up, [] { copy_of_element(at<long>(0)); })

// The result's text goes from frame to frame in registers.
__attribute__((noinline)) std::string_view longest(long* p, int n) {
    if (n == 0) return "none";
    const std::string_view below = longest(p + 1, n - 1);
    p[0] += static_cast<long>(below.size());
    const std::string_view mine(kinds[n % 3].name);
    p[1] ^= mine[0];
    return mine.size() + p[0] % 2 > below.size() ? mine : below;
}
HF_TXFUNC void returned_views(long* p) noexcept {
    for (int i = 0; i < 2; ++i) {
        const std::string_view found = longest(p, 3);
        p[8] += found[1];
        p[9 + i] = static_cast<long>(found.size()) + found.back();
    }
}
SCENARIO(returned_views, count_up, [] { returned_views(at<long>(0)); })

// In memory.
__attribute__((noinline)) kind grown(const kind& from, long* p, int n) {
    if (n == 0) return from;
    kind k = grown(from, p + 1, n - 1);
    p[0] += k.factor;
    k.factor += p[1];
    if (n == 2) k.name = "grown";
    return k;
}
HF_TXFUNC void returned_structures(long* p) noexcept {
    const kind k = grown({"fresh", p[2], heavy}, p, 3);
    p[7] += k.name[0] + k.factor;
    p[8] = k.weights[2];
}
SCENARIO(returned_structures, count_up, [] { returned_structures(at<long>(0)); })

long twice(long x) { return 2 * x; }
long squared(long x) { return x * x; }
using change = long (*)(long);
// Which function it is, not a call of it.
HF_TXFUNC void array_of_functions(long* p) noexcept {
    change changes[3] = {twice, squared, nullptr};
    for (int i = 0; i < 3; ++i) {
        const change c = changes[(p[i] + i) % 3];
        p[i] += c == twice ? twice(p[i]) : c == squared ? squared(p[i]) : -1;
        changes[i] = changes[p[i + 1] % 3];
    }
    p[5] = changes[0] == changes[1];
}
SCENARIO(array_of_functions, count_up, [] { array_of_functions(at<long>(0)); })

HF_TXFUNC void numbers_of_addresses(long* p) noexcept {
    std::uintptr_t words[2] = {reinterpret_cast<std::uintptr_t>(&light[0]),
                               reinterpret_cast<std::uintptr_t>(&heavy[0])};
    std::uintptr_t word = words[p[0] & 1] + sizeof(long);
    p[0] += 1;
    p[1] = *reinterpret_cast<const long*>(word);
    words[p[0] & 1] = word;
    word += (p[1] & 1) * sizeof(long);
    p[2] = *reinterpret_cast<const long*>(word);
    p[3] = *reinterpret_cast<const long*>(words[(p[0] + p[2]) & 1]);
    p[4] = static_cast<long>(word % alignof(long));
    // With an address that is not known before.
    const kind* const which = &kinds[p[5] % 3];
    words[p[0] & 1] = reinterpret_cast<std::uintptr_t>(which) + (p[4] << 3);
    const std::uintptr_t kept = reinterpret_cast<std::uintptr_t>(which->name) ^ 1;
    p[5] += 1;
    p[6] = reinterpret_cast<const kind*>(words[p[0] & 1])->factor;
    p[7] = *reinterpret_cast<const char*>(kept ^ 1);
}
SCENARIO(numbers_of_addresses, count_up, [] { numbers_of_addresses(at<long>(0)); })

// The bytes behind such an address, when nobody knows which constant it is. The model that mutants
// of the analysis run on copies only within the pool.
#if !defined(COPIES_WITHIN_POOL)
constexpr std::string_view words[] = {"zero", "a word of more than eight bytes", "two"};
HF_TXFUNC void texts_copied(long* p) noexcept {
    std::string_view kept[2] = {words[p[0] % 3], words[p[1] % 3]};
    p[0] += 1;
    const std::string_view one = kept[p[0] & 1];
    std::copy(one.begin(), one.end(), reinterpret_cast<char*>(p + 2));
    std::strcpy(reinterpret_cast<char*>(p + 7), kinds[p[1] % 3].name);
    // The source, which the next store overwrites, had its bytes before.
    std::memcpy(p + 10, p + 2, 8);
    kept[1] = words[p[0] % 3];
    std::memcpy(p + 2, kept[p[0] & 1].data(), 4);
    p[1] += p[10] & 3;
}
SCENARIO(texts_copied, count_up, [] { texts_copied(at<long>(0)); })
HF_TXFUNC void text_or_pool_copied(long* p) noexcept {
    const char* from[2] = {kinds[p[0] % 3].name, reinterpret_cast<const char*>(p + 6)};
    p[0] += 1;
    for (int i = 0; i < 3; ++i) {
        const char* const there = from[(p[0] + i) & 1];
        std::memmove(reinterpret_cast<char*>(p + 6) + i, there,
                     5); // overlaps, where it is the pool's
        p[1] += p[6] & 255;
    }
}
SCENARIO(text_or_pool_copied, count_up, [] { text_or_pool_copied(at<long>(0)); })
#endif

} // namespace
