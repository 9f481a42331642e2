// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions of the C and C++ libraries that sections call in versions of the runtime's own
// (src/section/c_library.cpp), under the oracle: over inputs in the pool, and into locals.
#include "oracle.hpp"

#include <holdfast/abi/holdfast_abi.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <strings.h>

using oracle::at;

// The log of the section that is open.
extern "C" void hf_c_overwrite(const void* address, std::uint64_t bytes) noexcept {
#if defined(UNDO)
    hf_undo_log(address, bytes);
#else
    hf_clobber_log(address, bytes);
#endif
}

namespace {
struct page {
    char text[64];
    char other[64];
    long number;
    double real[4];
    int whole[8];
    float narrow[2];
    std::size_t length;
};
page* fill() {
    auto* p = at<page>(0);
    std::strcpy(p->text, "Persistent");
    std::strcpy(p->other, " 42 memory; 0x1F");
    p->number = 37;
    for (int i = 0; i < 4; ++i) p->real[i] = 1.5 + i;
    for (int i = 0; i < 8; ++i) p->whole[i] = i * 37 % 11;
    p->narrow[0] = 2.25F;
    return p;
}
} // namespace
#define ON_A_PAGE(name) SCENARIO(name, [] { fill(); }, [] { name(at<page>(0)); })

HF_TXFUNC void concatenates(page* p) noexcept {
    std::strcat(p->text, p->other);
    std::strncat(p->text, p->other + 3, 5);
    p->length = std::strlen(p->text);
}
ON_A_PAGE(concatenates)

HF_TXFUNC void copies_until(page* p) noexcept {
    const void* behind = memccpy(p->text + 2, p->other, ';', 40);
    p->number += behind != nullptr;
    p->number += memccpy(p->text + 30, p->other, '!', 4) == nullptr;
}
ON_A_PAGE(copies_until)

HF_TXFUNC void prints(page* p) noexcept {
    p->number += std::snprintf(p->text, sizeof p->text, "%s is %ld, %.2f %5d%%", p->other + 1,
                               p->number, p->real[1], p->whole[3]);
    char local[16];
    p->length = std::size_t(std::snprintf(local, sizeof local, "%-20s|", p->text));
    std::strcpy(p->other, local);
    p->whole[0] = std::sprintf(p->other + 20, "%c%x", 'a', p->whole[1]);
}
ON_A_PAGE(prints)

HF_TXFUNC void prints_a_long_text(page* p) noexcept {
    char local[1200];
    p->number = std::snprintf(local, sizeof local, "%1000d%s", p->whole[2], p->text);
    p->text[0] = local[999];
}
ON_A_PAGE(prints_a_long_text)

HF_TXFUNC void searches(page* p) noexcept {
    const char* found = std::strpbrk(p->text, "st");
    p->number += found - p->text + (strcasecmp(p->text, "pERSISTENT") == 0) +
                 (strncasecmp(p->other, " 42 MEM", 7) == 0);
}
ON_A_PAGE(searches)

HF_TXFUNC void converts(page* p) noexcept {
    for (char& c : p->text) c = char(std::isupper(c) ? std::tolower(c) : std::toupper(c));
    int digits = 0;
    for (char c : p->other) digits += std::isdigit(c) != 0 || std::isspace(c) != 0;
    p->number += digits;
}
ON_A_PAGE(converts)

HF_TXFUNC void reads_numbers(page* p) noexcept {
    char* behind = nullptr;
    p->number += std::atoi(p->other) + std::strtol(p->other, &behind, 10);
    p->number += long(std::strtoul(p->other + 12, nullptr, 16)) + (behind - p->other);
    p->real[0] += std::strtod("2.5e3", nullptr) + std::atof(p->other);
}
ON_A_PAGE(reads_numbers)

static int by_value(const void* a, const void* b) {
    return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}
HF_TXFUNC void sorts(page* p) noexcept {
    std::qsort(p->whole, 8, sizeof(int), by_value);
    p->whole[0] += p->whole[7];
}
ON_A_PAGE(sorts)

HF_TXFUNC void sorts_stably(page* p) noexcept {
    std::stable_sort(p->whole, p->whole + 8, [](int a, int b) { return a % 3 < b % 3; });
    std::inplace_merge(p->real, p->real + 2, p->real + 4, std::greater<>());
}
ON_A_PAGE(sorts_stably)

HF_TXFUNC void calculates(page* p) noexcept {
    p->real[0] = std::frexp(p->real[1] * 40, &p->whole[0]);
    p->real[2] = std::modf(p->real[3] * 1.3, &p->real[1]);
    p->narrow[0] = std::modf(p->narrow[0], &p->narrow[1]);
    p->real[3] = std::nextafter(p->real[3], 9.0) + std::lgamma(p->real[2] + 3);
    p->real[1] += std::remquo(p->real[3], 3.0, &p->whole[1]);
}
ON_A_PAGE(calculates)

HF_TXFUNC void multiplies(page* p) noexcept {
    std::complex<double> z{p->real[0], p->real[1]};
    z = z * std::complex<double>{p->real[2], p->real[3]} / z;
    p->real[0] = z.real() + std::abs(z);
    p->real[1] = std::arg(z);
}
ON_A_PAGE(multiplies)

HF_TXFUNC void draws(page* p) noexcept {
    std::minstd_rand source(unsigned(p->number));
    std::normal_distribution<double> around(2, 3);
    for (double& x : p->real) x += around(source);
}
ON_A_PAGE(draws)

// --- Functions that are known -------------------------------------------------------------------

static void doubles(page* p) { p->number *= 2; }
static void adds(page* p) { p->number += p->whole[1]; }
static void writes(page* p) { std::strcat(p->text, "!"); }
static void (*const steps[])(page*) = {doubles, adds, writes};
HF_TXFUNC void chooses(page* p) noexcept {
    for (int i = 0; i < 5; ++i) steps[(p->number + i) % 3](p);
}
ON_A_PAGE(chooses)

struct step {
    const char* name;
    void (*run)(page*);
};
static constexpr step named[] = {{"double", doubles}, {"add", adds}};
HF_TXFUNC void finds(page* p) noexcept {
    for (const step& s : named)
        if (s.name[0] != p->text[1]) s.run(p);
}
ON_A_PAGE(finds)

HF_TXFUNC void picks(page* p) noexcept {
    void (*f)(page*) = p->number > 30 ? doubles : adds;
    f(p);
}
ON_A_PAGE(picks)

struct shape {
    virtual long area() const noexcept = 0;
};
struct square : shape {
    long side;
    explicit square(long s) : side(s) {}
    long area() const noexcept override { return side * side; }
};
struct strip : shape {
    long length;
    explicit strip(long l) : length(l) {}
    long area() const noexcept override { return length; }
};
HF_TXFUNC void measures(page* p) noexcept {
    square a{p->number};
    strip b{p->whole[1]};
    const shape* one = &a;
    const shape& other = b;
    p->number = one->area() + other.area();
}
ON_A_PAGE(measures)

HF_TXFUNC void calls_a_function_object(page* p) noexcept {
    long by = 3;
    std::function<long(long)> f = [by, p](long x) { return x * by + p->whole[1]; };
    p->number = f(p->number);
    f = nullptr;
    p->number += bool(f);
}
ON_A_PAGE(calls_a_function_object)
