// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions written against the rewriting of accesses for a write buffer (compiler/transform/Buffer*):
// each stores first, so that what it does next must find it, and could miss it by one mistake.
#include "oracle.hpp"

#include <holdfast/abi/holdfast_abi.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <strings.h>

using oracle::at;

// Sections of engine redo give the C library nothing but volatile and fresh memory; the form for
// media that keep order logs what the library is about to store to.
extern "C" void hf_c_overwrite(const void* address, std::uint64_t bytes) noexcept {
    if (oracle::runs_in_order()) return hf_undo_log(address, bytes);
    const auto* to = static_cast<const std::byte*>(address);
    if (to >= oracle::pool && to < oracle::pool + oracle::heap_bytes) {
        std::printf("FAIL hf_c_overwrite: %zu bytes in place\n", std::size_t(bytes));
        std::exit(1);
    }
    hf_redo_note(address, bytes);
}

namespace {
struct page {
    char text[64];
    char other[64];
    long numbers[8];
    double real[2];
    int whole[8];
    char* end;
    long result;
};
page* fill() {
    auto* p = at<page>(0);
    std::strcpy(p->text, "persistent: memory");
    std::strcpy(p->other, " 42nd; 7.25 words");
    for (int i = 0; i < 8; ++i) p->numbers[i] = 100 + i;
    for (int i = 0; i < 8; ++i) p->whole[i] = i * 37 % 11;
    return p;
}
} // namespace
#define ON_A_PAGE(name) SCENARIO(name, [] { fill(); }, [] { name(at<page>(0)); })

// --- Pointers into what was searched --------------------------------------------------------------

HF_TXFUNC void finds_characters(page* p) noexcept {
    p->text[4] = '#';
    p->result = std::strchr(p->text, '#') - p->text;
    p->result = p->result * 64 + (std::strrchr(p->text, 'm') - p->text);
    p->result = p->result * 2 + (std::strchr(p->text, '?') == nullptr);
    p->end = static_cast<char*>(std::memchr(p->text, '#', 64));
    p->result = p->result * 64 + (static_cast<char*>(memrchr(p->text, 'e', 12)) - p->text);
    p->result = p->result * 2 + (std::memchr(p->text, '#', 3) == nullptr);
    p->result = p->result * 64 + (static_cast<char*>(rawmemchr(p->text, ':')) - p->text);
    *p->end = '!';
}
ON_A_PAGE(finds_characters)

// The address that a function returned is what the next store is made at.
HF_TXFUNC void stores_at_results(page* p) noexcept {
    p->text[2] = ',';
    *std::strchr(p->text, ',') = '.';
    *stpcpy(p->other, p->text) = '$';
    *static_cast<char*>(mempcpy(p->text, p->other, std::size_t(p->numbers[5] - 100))) = '&';
    *static_cast<char*>(std::memset(p->other + 40, 'x', std::size_t(p->numbers[4] - 100))) = 'y';
}
ON_A_PAGE(stores_at_results)

HF_TXFUNC void finds_strings(page* p) noexcept {
    p->text[13] = 'a';
    p->other[2] = 'x';
    p->result = std::strstr(p->text, "mamo") - p->text;
    p->result = p->result * 64 + (std::strpbrk(p->text, ";:") - p->text);
    p->result = p->result * 64 + long(std::strspn(p->text, "prse"));
    p->result += long(std::strcspn(p->text, "a"));
    std::memcpy(p->text + 30, "mo", 3);
    p->end = static_cast<char*>(memmem(p->text, 40, p->text + 30, 2));
    p->result = p->result * 64 + (p->end - p->text);
    p->result = p->result * 64 + (strchrnul(p->other, '?') - p->other);
}
ON_A_PAGE(finds_strings)

// --- Lengths and comparisons ----------------------------------------------------------------------

HF_TXFUNC void measures(page* p) noexcept {
    p->text[10] = '\0';
    p->result = long(std::strlen(p->text)) * 64 + long(strnlen(p->text, 64)) * 8;
    p->result += long(strnlen(p->text, 3));
    p->text[10] = '-';
    p->result = p->result * 64 + long(std::strlen(p->text));
}
ON_A_PAGE(measures)

HF_TXFUNC void compares(page* p) noexcept {
    auto sign = [](int n) { return (n > 0) - (n < 0) + 1; };
    std::memcpy(p->other, p->text, 12);
    auto add = [p, sign](int n) { p->result = p->result * 3 + sign(n); };
    add(std::memcmp(p->text, p->other, 12));
    add(std::memcmp(p->text, p->other, 14));
    add(std::strcmp(p->text, p->other));
    add(std::strncmp(p->text, p->other, 12));
    p->other[0] = 'P';
    add(strcasecmp(p->text, p->other));
    add(strncasecmp(p->text, p->other, 12));
    add(std::memcmp(p->text, p->other, std::size_t(p->numbers[0] - 100)));
}
ON_A_PAGE(compares)

// --- Strings --------------------------------------------------------------------------------------

HF_TXFUNC void copies_strings(page* p) noexcept {
    char local[64];
    p->other[5] = '\0';
    std::strcpy(p->text, p->other);
    p->result = stpcpy(p->text + 20, p->text) - p->text;
    std::strcpy(local, p->text + 20);
    local[0] = '<';
    std::strcpy(p->other + 8, local);
    std::strncpy(p->other + 20, p->text, 3);
    std::strncpy(p->other + 24, p->text, 20);
    std::strncpy(local, p->other + 8, 4);
    p->result += static_cast<char*>(mempcpy(p->text + 40, local, 3)) - p->text;
    bcopy(p->text, p->text + 2, 6);
    bzero(p->text + 50, 4);
}
ON_A_PAGE(copies_strings)

HF_TXFUNC void appends_strings(page* p) noexcept {
    char local[64] = "<";
    p->result = std::strcat(p->text, p->other) - p->text; // nothing is buffered yet
    p->other[5] = '\0';
    std::strcat(p->text, p->other);
    std::strcat(local, p->text + 30);
    std::strcat(p->other, local);
    std::strcat(std::strcat(p->other, ";"), p->text + 12);
    p->text[3] = '\0';
    std::strcat(p->text, local + 7);
}
ON_A_PAGE(appends_strings)

HF_TXFUNC void reads_numbers(page* p) noexcept {
    char* behind = nullptr;
    p->other[2] = '7';
    p->numbers[0] = std::strtol(p->other, &behind, 10);
    p->numbers[1] = behind - p->other;
    p->numbers[2] = long(std::strtod(p->other + 6, &p->end) * 100);
    p->numbers[3] = p->end - p->other;
    p->numbers[4] = std::atoi(p->other) + std::atol(p->other);
    p->numbers[4] += long(std::strtoul(p->other + 1, nullptr, 16));
}
ON_A_PAGE(reads_numbers)

HF_TXFUNC void second_results(page* p) noexcept {
    p->real[0] = 12.375;
    p->real[1] = std::frexp(p->real[0], &p->whole[1]);
    p->real[1] += std::modf(p->real[0], &p->real[0]);
    p->result = p->whole[1];
}
ON_A_PAGE(second_results)

// --- Copies ---------------------------------------------------------------------------------------

HF_TXFUNC void moves_over_itself(page* p, std::size_t n) noexcept {
    p->numbers[2] = -1;
    std::memmove(p->numbers + 1, p->numbers, n);
    std::memmove(p->numbers, p->numbers + 2, n);
    std::memset(reinterpret_cast<char*>(p->numbers) + 3, int(p->numbers[1]), n / 3);
}
SCENARIO(moves_over_itself, [] { fill(); }, [] { moves_over_itself(at<page>(0), 40); })

HF_TXFUNC void through_fresh(page* p) noexcept {
    auto* block = static_cast<page*>(hf_alloc(sizeof(page)));
    if (block == nullptr) return;
    p->numbers[3] = 5;
    *block = *p;
    block->numbers[3]++;
    std::strcpy(block->text, p->other);
    std::strncpy(block->other, p->text, 20);
    std::memcpy(p->numbers, block->numbers, sizeof p->numbers);
    p->end = block->other;
}
ON_A_PAGE(through_fresh)

// --- Widths ---------------------------------------------------------------------------------------

struct __attribute__((packed)) crooked {
    char first;
    long number;
    int part : 13;
    int rest : 27;
    long double wide;
    __int128 huge;
};
HF_TXFUNC void unaligned(crooked* c) noexcept {
    c->number = 77;
    c->part = 1000;
    c->rest = -5;
    c->wide = 1.25L;
    c->huge = (__int128{c->number} << 70) + c->part;
    c->number += c->rest + long(c->wide * 4) + long(c->huge >> 64);
    c->first = char(c->number);
}
SCENARIO(unaligned, [] { std::memset(oracle::pool, 7, 128); }, [] { unaligned(at<crooked>(1)); })

HF_TXFUNC void vectorised(int* a, const int* b, int n) noexcept {
    for (int i = 0; i < n; ++i)
        if (b[i] > 2) a[i] += b[i];
    for (int i = 0; i < n; ++i) a[i] = a[i] * 3 + 1;
    for (int i = 0; i < n; ++i)
        if (a[i] & 4) a[i] = b[a[i] & 15];
}
SCENARIO(vectorised, [] { for (int i = 0; i < 64; ++i) at<int>(0)[i] = i * 37 % 11; },
         [] { vectorised(at<int>(4), at<int>(128), 19); })

// --- Aggregates in calls --------------------------------------------------------------------------

HF_TXFUNC void aggregates(oracle::digested* d, unsigned long* sum) noexcept {
    d->x[2] = 6;
    *sum = oracle_digest(*d);
    *d = oracle_spread(*sum);
    *sum += oracle_digest(*d);
}
SCENARIO(aggregates, [] { at<long>(0)[1] = 3; },
         [] { aggregates(at<oracle::digested>(0), at<unsigned long>(64)); })

// --- More looks into the buffer than it keeps places ----------------------------------------------

HF_TXFUNC void many_at_once(page* p) noexcept {
    for (long& n : p->numbers) n *= 3;
    p->result = p->numbers[0] + p->numbers[1] * 2 + p->numbers[2] * 3 + p->numbers[3] * 4 +
                p->numbers[4] * 5 + p->numbers[5] * 6 + p->numbers[6] * 7 + p->numbers[7] * 8 +
                p->whole[0] + p->whole[1] * 2 + p->whole[2] * 3 + p->whole[3] * 4;
}
ON_A_PAGE(many_at_once)

// A helper stores; a helper reads, before and after.
__attribute__((noinline)) static long sum(const page* p) { return p->numbers[0] + p->numbers[1]; }
__attribute__((noinline)) static void change(page* p) { p->numbers[0] += 1000; }
HF_TXFUNC void helpers(page* p) noexcept {
    const long before = sum(p), direct = p->numbers[0];
    change(p);
    p->result = before + sum(p) * 3 + (p->numbers[0] - direct);
}
ON_A_PAGE(helpers)
