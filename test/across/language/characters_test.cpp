// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a section may convert numbers from and to characters, use wide strings, and jump to labels
// by their addresses. What it makes of them is the section's: it is not there after a crash.
// Method: the same as outside of sections; and in a process that dies in the middle. Built with
// profile counters as well, which are no part of the section.
#include "support.hpp"

#include <holdfast/txfunc.hpp>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <limits>
#include <optional>
#include <string>
#include <system_error>

namespace language_test {
namespace {

struct record {
    char text[528];
    wchar_t wide[64];
    double number;
    long steps[3];
};

/// The shortest text, one in fixed notation and one with digits, and what is read back.
template <class Number> Number there_and_back(char* text, Number n, int digits) noexcept {
    char shortest[64] = {}, scientific[64] = {}, fixed[400] = {};
    char* const end = shortest + sizeof shortest;
    std::to_chars(shortest, end, n);
    std::to_chars(scientific, scientific + sizeof scientific, n, std::chars_format::scientific);
    std::to_chars(fixed, fixed + sizeof fixed, n, std::chars_format::fixed, digits);
    std::memcpy(text, shortest, sizeof shortest);
    std::memcpy(text + 64, scientific, sizeof scientific);
    std::memcpy(text + 128, fixed, sizeof fixed);
    Number back = 0;
    const auto read = std::from_chars(shortest, end, back);
    return read.ec == std::errc{} ? back : Number{-1};
}
HF_TXFUNC void writes_float(record* r, float n) noexcept {
    r->number = there_and_back(r->text, n, 2);
}
HF_TXFUNC void writes_double(record* r, double n) noexcept {
    r->number = there_and_back(r->text, n, 3);
}
HF_TXFUNC void writes_long_double(record* r, long double n) noexcept {
    r->number = static_cast<double>(there_and_back(r->text, n, 4));
}

/// Neither a number that does not fit nor a text without one changes anything.
HF_TXFUNC long fails(record* r, double n) noexcept {
    char few[4] = {'o', 'l', 'd', 0};
    const auto made = std::to_chars(few, few + 3, n);
    double kept = 7;
    const auto read = std::from_chars(few, few + 3, kept);
    std::memcpy(r->text, few, sizeof few);
    r->number = kept;
    return (made.ec == std::errc::value_too_large && made.ptr == few + 3 ? 1 : 0) +
           (read.ec == std::errc::invalid_argument && read.ptr == few ? 2 : 0);
}

HF_TXFUNC void writes_wide(record* r, long times) {
    std::wstring text = L"a text that is too long for the object itself";
    text.append(static_cast<std::size_t>(times), L'x');
    text += L'y';
    text.insert(0, L"> ");
    std::wmemcpy(r->wide, text.c_str(), text.size() + 1);
    r->steps[0] = static_cast<long>(text.size());
    r->number = 1;
    if (times == 9) std::abort();
}

HF_TXFUNC void writes_wide_as_c(record* r) noexcept {
    wchar_t text[64] = {}, first[8];
    std::wcscpy(text, L"one ");
    std::wcscat(text, L"two ");
    std::wcsncat(text, L"three", 3);
    std::wcsncpy(first, L"one", 8);
    std::wmemset(first + 3, L'.', 2);
    std::wcscat(text, first);
    r->steps[0] = static_cast<long>(std::wcslen(text)) * (std::wcscmp(first, L"one..") == 0);
    std::wmemmove(r->wide, text, 64);
}

/// An interpreter: each letter is a step.
HF_TXFUNC long interprets(record* r, long program) noexcept {
    static const void* const steps[] = {&&end, &&one, &&two, &&dies};
    long done = 0;
next:
    ++done;
    goto* steps[(program >> 2 * (done - 1)) & 3];
one:
    r->steps[0] += 1;
    goto next;
two:
    r->steps[1] += r->steps[0];
    goto next;
dies:
    std::abort();
end:
    r->steps[2] = done;
    return done;
}

class characters : public pools {
protected:
    characters() { open_again(); }
    void open_again() {
        pool.reset();
        pool.emplace(open(first));
        r = pool->root<record>();
    }
    template <class Section> void dies_in(Section&& section) {
        pool.reset();
        EXPECT_DEATH(
            {
                open_again();
                section();
            },
            "");
        open_again();
    }
    std::optional<hf::pool> pool;
    record* r = nullptr;
};

TEST_F(characters, NumbersAreWrittenAndReadAsOutside) {
    char outside[528] = {};
    for (const double n :
         {0.0, 0.1, -1.5e300, 1.0 / 3, std::numeric_limits<double>::denorm_min()}) {
        writes_double(r, n);
        EXPECT_EQ(r->number, there_and_back(outside, n, 3));
        EXPECT_EQ(r->number, n);
        EXPECT_EQ(std::memcmp(r->text, outside, sizeof outside), 0);
    }
    writes_float(r, 0.1F);
    EXPECT_EQ(there_and_back(outside, 0.1F, 2), 0.1F);
    EXPECT_EQ(std::memcmp(r->text, outside, sizeof outside), 0);
    EXPECT_EQ(r->number, 0.1F);
    writes_long_double(r, 0.1L);
    EXPECT_EQ(there_and_back(outside, 0.1L, 4), 0.1L);
    EXPECT_EQ(std::memcmp(r->text, outside, sizeof outside), 0);
}

TEST_F(characters, WhatDoesNotFitIsNotWritten) {
    EXPECT_EQ(fails(r, 0.125), 3);
    EXPECT_STREQ(r->text, "old");
    EXPECT_EQ(r->number, 7);
}

TEST_F(characters, WideStringsAreMadeAndKept) {
    writes_wide(r, 3);
    EXPECT_EQ(std::wcscmp(r->wide, L"> a text that is too long for the object itselfxxxy"), 0);
    EXPECT_EQ(r->steps[0], static_cast<long>(std::wcslen(r->wide)));
    dies_in([&] { writes_wide(r, 9); });
    EXPECT_EQ(std::wcscmp(r->wide, L"> a text that is too long for the object itselfxxxy"), 0);
}

TEST_F(characters, WideFunctionsOfTheCLibraryWork) {
    writes_wide_as_c(r);
    EXPECT_EQ(std::wcscmp(r->wide, L"one two throne.."), 0);
    EXPECT_EQ(r->steps[0], 16);
}

TEST_F(characters, LabelsAreReachedByTheirAddresses) {
    EXPECT_EQ(interprets(r, 1 | 1 << 2 | 2 << 4 | 1 << 6 | 2 << 8), 6);
    EXPECT_EQ(r->steps[0], 3);
    EXPECT_EQ(r->steps[1], 5);
    dies_in([&] { interprets(r, 1 | 2 << 2 | 3 << 4); });
    EXPECT_EQ(r->steps[0], 3);
    EXPECT_EQ(r->steps[1], 5);
    EXPECT_EQ(r->steps[2], 6);
}

} // namespace
} // namespace language_test
