// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What sections call instead of functions of the C library; the compiler plugin knows the names
// (compiler/analysis/Calls.cpp).
//
// (1) What they overwrite is logged first: only they know how much it is.
// (2) They work as in the C locale, whichever the process has set: a re-execution runs in another
//     process.
// (3) They keep nothing in global variables, and sort in one order however much memory there is.
#include <base/assert.hpp>
#include <section/c_library.hpp>

#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/abi/relocate_abi.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <locale.h>
#include <new>
#include <strings.h>
#include <system_error>

namespace {

locale_t c_locale() noexcept {
    static const locale_t only = ::newlocale(LC_ALL_MASK, "C", nullptr);
    if (only == nullptr) hf::fatal("no memory for the C locale");
    return only;
}

template <class T> void store(T* to, T value) noexcept {
    hf_c_overwrite(to, sizeof value);
    *to = value;
}

/// A pointer into a text: in a relocated pool it has its canonical form.
void store_end(char** to, char* end, const char* where) noexcept {
    store(to, static_cast<char*>(hf_relocated_store(to, end, where)));
}

void copy(char* to, const void* from, std::size_t bytes) noexcept {
    hf_c_overwrite(to, bytes);
    std::memcpy(to, from, bytes);
}

void copy_wide(wchar_t* to, const wchar_t* from, std::size_t count) noexcept {
    hf_c_overwrite(to, count * sizeof(wchar_t));
    std::wmemcpy(to, from, count);
}

/// The thread's locale is the C locale for as long as this lives.
class in_c_locale {
public:
    in_c_locale() noexcept : before_(::uselocale(c_locale())) {}
    in_c_locale(const in_c_locale&) = delete;
    in_c_locale& operator=(const in_c_locale&) = delete;
    ~in_c_locale() { ::uselocale(before_); }

private:
    locale_t before_;
};

/// vsnprintf, by way of volatile memory: how long the text is shows when it is made.
int print(char* to, std::size_t bytes, const char* format, va_list args) noexcept {
    const in_c_locale everywhere;
    char small[512];
    va_list again;
    va_copy(again, args);
    const int length = std::vsnprintf(small, sizeof small, format, args);
    char* large = nullptr;
    if (length >= static_cast<int>(sizeof small)) {
        const std::size_t room = static_cast<std::size_t>(length) + 1;
        large = static_cast<char*>(std::malloc(room));
        if (large == nullptr) hf::fatal("snprintf in a section: no memory for %zu bytes", room);
        std::vsnprintf(large, room, format, again);
    }
    va_end(again);
    if (length >= 0 && bytes != 0) {
        const std::size_t kept = std::min(static_cast<std::size_t>(length), bytes - 1);
        hf_c_overwrite(to, kept + 1);
        std::memcpy(to, large == nullptr ? small : large, kept);
        to[kept] = '\0';
    }
    std::free(large);
    return length;
}

/// std::to_chars, by way of volatile memory likewise.
template <class... How>
std::to_chars_result print_number(char* first, char* last, How... how) noexcept {
    const auto room = static_cast<std::size_t>(last - first);
    char small[512];
    char* large = nullptr;
    char* text = small;
    std::to_chars_result made = std::to_chars(text, text + std::min(room, sizeof small), how...);
    if (made.ec != std::errc{} && room > sizeof small) {
        text = large = static_cast<char*>(std::malloc(room));
        if (large == nullptr) hf::fatal("to_chars in a section: no memory for %zu bytes", room);
        made = std::to_chars(text, text + room, how...);
    }
    const auto length = static_cast<std::size_t>(made.ptr - text);
    if (made.ec == std::errc{}) copy(first, text, length);
    std::free(large);
    return {made.ec == std::errc{} ? first + length : last, made.ec};
}

/// Fortified callers say how much room there is.
void check_room(std::size_t wanted, std::size_t room, const char* function) noexcept {
    if (wanted > room) hf::fatal("%s: buffer overflow in a section", function);
}

struct elements {
    char* first;
    std::size_t bytes; // of one
    int (*compare)(const void*, const void*);

    char* at(std::size_t i) const noexcept { return first + i * bytes; }
    void swap(std::size_t one, std::size_t other) const noexcept {
        std::swap_ranges(at(one), at(one) + bytes, at(other));
    }
    /// Lets an element sink to its place in the heap of the first 'count'.
    void sink(std::size_t i, std::size_t count) const {
        for (std::size_t child; (child = 2 * i + 1) < count; i = child) {
            if (child + 1 < count && compare(at(child), at(child + 1)) < 0) ++child;
            if (compare(at(i), at(child)) >= 0) return;
            swap(i, child);
        }
    }
};

} // namespace

extern "C" {

// Characters.
#define HF_OF_CHARACTER(name)                                                                      \
    int hf_c_##name(int c) noexcept { return ::name##_l(c, c_locale()); }
HF_OF_CHARACTER(isalnum)
HF_OF_CHARACTER(isalpha)
HF_OF_CHARACTER(isblank)
HF_OF_CHARACTER(iscntrl)
HF_OF_CHARACTER(isdigit)
HF_OF_CHARACTER(isgraph)
HF_OF_CHARACTER(islower)
HF_OF_CHARACTER(isprint)
HF_OF_CHARACTER(ispunct)
HF_OF_CHARACTER(isspace)
HF_OF_CHARACTER(isupper)
HF_OF_CHARACTER(isxdigit)
HF_OF_CHARACTER(tolower)
HF_OF_CHARACTER(toupper)
#undef HF_OF_CHARACTER

// Inlined by the C library's headers, the functions above are accesses of its tables.
const unsigned short** hf_c_ctype_b_loc() noexcept {
    static const unsigned short* table = c_locale()->__ctype_b;
    return &table;
}
const int** hf_c_ctype_tolower_loc() noexcept {
    static const int* table = c_locale()->__ctype_tolower;
    return &table;
}
const int** hf_c_ctype_toupper_loc() noexcept {
    static const int* table = c_locale()->__ctype_toupper;
    return &table;
}

// Strings.
int hf_c_strcasecmp(const char* a, const char* b) noexcept {
    return ::strcasecmp_l(a, b, c_locale());
}
int hf_c_strncasecmp(const char* a, const char* b, std::size_t most) noexcept {
    return ::strncasecmp_l(a, b, most, c_locale());
}
char* hf_c_strcat(char* to, const char* from) noexcept {
    copy(to + std::strlen(to), from, std::strlen(from) + 1);
    return to;
}
char* hf_c_strncat(char* to, const char* from, std::size_t most) noexcept {
    char* end = to + std::strlen(to);
    const std::size_t length = ::strnlen(from, most);
    hf_c_overwrite(end, length + 1);
    std::memcpy(end, from, length);
    end[length] = '\0';
    return to;
}
char* hf_c_strcat_chk(char* to, const char* from, std::size_t room) noexcept {
    check_room(std::strlen(to) + std::strlen(from) + 1, room, "strcat");
    return hf_c_strcat(to, from);
}
char* hf_c_strncat_chk(char* to, const char* from, std::size_t most, std::size_t room) noexcept {
    check_room(std::strlen(to) + ::strnlen(from, most) + 1, room, "strncat");
    return hf_c_strncat(to, from, most);
}
void* hf_c_memccpy(void* to, const void* from, int last, std::size_t most) noexcept {
    const auto* start = static_cast<const char*>(from);
    const auto* found = static_cast<const char*>(std::memchr(from, last, most));
    const std::size_t bytes = found == nullptr ? most : static_cast<std::size_t>(found - start) + 1;
    copy(static_cast<char*>(to), from, bytes);
    return found == nullptr ? nullptr : static_cast<char*>(to) + bytes;
}

// Numbers in text.
int hf_c_atoi(const char* text) noexcept {
    return static_cast<int>(::strtol_l(text, nullptr, 10, c_locale()));
}
long hf_c_atol(const char* text) noexcept { return ::strtol_l(text, nullptr, 10, c_locale()); }
long long hf_c_atoll(const char* text) noexcept {
    return ::strtoll_l(text, nullptr, 10, c_locale());
}
double hf_c_atof(const char* text) noexcept { return ::strtod_l(text, nullptr, c_locale()); }
#define HF_INTEGER_IN(name, type)                                                                  \
    type hf_c_##name(const char* text, char** behind, int base) noexcept {                         \
        char* end = nullptr;                                                                       \
        const type value = ::name##_l(text, &end, base, c_locale());                               \
        if (behind != nullptr) store_end(behind, end, "hf_c_" #name);                              \
        return value;                                                                              \
    }
HF_INTEGER_IN(strtol, long)
HF_INTEGER_IN(strtoul, unsigned long)
HF_INTEGER_IN(strtoll, long long)
HF_INTEGER_IN(strtoull, unsigned long long)
#undef HF_INTEGER_IN
#define HF_NUMBER_IN(name, type)                                                                   \
    type hf_c_##name(const char* text, char** behind) noexcept {                                   \
        char* end = nullptr;                                                                       \
        const type value = ::name##_l(text, &end, c_locale());                                     \
        if (behind != nullptr) store_end(behind, end, "hf_c_" #name);                              \
        return value;                                                                              \
    }
HF_NUMBER_IN(strtof, float)
HF_NUMBER_IN(strtod, double)
HF_NUMBER_IN(strtold, long double)
#undef HF_NUMBER_IN

// Text of numbers.
int hf_c_snprintf(char* to, std::size_t bytes, const char* format, ...) noexcept {
    va_list args;
    va_start(args, format);
    const int length = print(to, bytes, format, args);
    va_end(args);
    return length;
}
int hf_c_sprintf(char* to, const char* format, ...) noexcept {
    va_list args;
    va_start(args, format);
    const int length = print(to, SIZE_MAX, format, args);
    va_end(args);
    return length;
}
int hf_c_snprintf_chk(char* to, std::size_t bytes, int, std::size_t room, const char* format,
                      ...) noexcept {
    check_room(bytes, room, "snprintf");
    va_list args;
    va_start(args, format);
    const int length = print(to, bytes, format, args);
    va_end(args);
    return length;
}
int hf_c_sprintf_chk(char* to, int, std::size_t room, const char* format, ...) noexcept {
    va_list args;
    va_start(args, format);
    const int length = print(to, room, format, args);
    va_end(args);
    if (length >= 0) check_room(static_cast<std::size_t>(length) + 1, room, "sprintf");
    return length;
}

#define HF_NUMBER_AS_TEXT(suffix, type)                                                            \
    std::to_chars_result hf_c_to_chars_##suffix(char* first, char* last, type value) noexcept {    \
        return print_number(first, last, value);                                                   \
    }                                                                                              \
    std::to_chars_result hf_c_to_chars_as_##suffix(char* first, char* last, type value,            \
                                                   std::chars_format format) noexcept {            \
        return print_number(first, last, value, format);                                           \
    }                                                                                              \
    std::to_chars_result hf_c_to_chars_digits_##suffix(                                            \
        char* first, char* last, type value, std::chars_format format, int digits) noexcept {      \
        return print_number(first, last, value, format, digits);                                   \
    }                                                                                              \
    std::from_chars_result hf_c_from_chars_##suffix(                                               \
        const char* first, const char* last, type* value, std::chars_format format) noexcept {     \
        type found = 0;                                                                            \
        const std::from_chars_result read = std::from_chars(first, last, found, format);           \
        if (read.ec == std::errc{}) store(value, found);                                           \
        return read;                                                                               \
    }
HF_NUMBER_AS_TEXT(f, float)
HF_NUMBER_AS_TEXT(d, double)
HF_NUMBER_AS_TEXT(e, long double)
#undef HF_NUMBER_AS_TEXT

// Wide characters.
wchar_t* hf_c_wcscpy(wchar_t* to, const wchar_t* from) noexcept {
    copy_wide(to, from, std::wcslen(from) + 1);
    return to;
}
wchar_t* hf_c_wcsncpy(wchar_t* to, const wchar_t* from, std::size_t count) noexcept {
    hf_c_overwrite(to, count * sizeof(wchar_t));
    return std::wcsncpy(to, from, count);
}
wchar_t* hf_c_wcscat(wchar_t* to, const wchar_t* from) noexcept {
    copy_wide(to + std::wcslen(to), from, std::wcslen(from) + 1);
    return to;
}
wchar_t* hf_c_wcsncat(wchar_t* to, const wchar_t* from, std::size_t most) noexcept {
    wchar_t* const end = to + std::wcslen(to);
    const std::size_t length = ::wcsnlen(from, most);
    hf_c_overwrite(end, (length + 1) * sizeof(wchar_t));
    std::wmemcpy(end, from, length);
    end[length] = L'\0';
    return to;
}

// Order.
void hf_c_qsort(void* first, std::size_t count, std::size_t bytes,
                int (*compare)(const void*, const void*)) {
    if (count < 2 || bytes == 0) return;
    hf_c_overwrite(first, count * bytes);
    const elements heap{static_cast<char*>(first), bytes, compare};
    for (std::size_t i = count / 2; i-- > 0;) heap.sink(i, count);
    for (std::size_t last = count; --last > 0;) {
        heap.swap(0, last);
        heap.sink(0, last);
    }
    // 'compare' may have called the runtime, which may have written lines back since.
    hf_note_store(first, count * bytes);
}

// Memory outside of the pool, for sections that no exception may leave: without any, the process
// ends in a std::bad_alloc that nothing catches.
void* hf_c_new(std::size_t bytes) noexcept { return ::operator new(bytes); }
void* hf_c_new_aligned(std::size_t bytes, std::align_val_t alignment) noexcept {
    return ::operator new(bytes, alignment);
}

// Mathematics with a second result.
#define HF_SECOND_RESULT(name, type, second)                                                       \
    type hf_c_##name(type x, second* other) noexcept {                                             \
        second value{};                                                                            \
        const type result = ::name(x, &value);                                                     \
        store(other, value);                                                                       \
        return result;                                                                             \
    }
HF_SECOND_RESULT(frexp, double, int)
HF_SECOND_RESULT(frexpf, float, int)
HF_SECOND_RESULT(frexpl, long double, int)
HF_SECOND_RESULT(modf, double, double)
HF_SECOND_RESULT(modff, float, float)
HF_SECOND_RESULT(modfl, long double, long double)
#undef HF_SECOND_RESULT
#define HF_OF_A_NUMBER(suffix, type)                                                               \
    type hf_c_remquo##suffix(type x, type y, int* quotient) noexcept {                             \
        int bits = 0;                                                                              \
        const type result = ::remquo##suffix(x, y, &bits);                                         \
        store(quotient, bits);                                                                     \
        return result;                                                                             \
    }                                                                                              \
    void hf_c_sincos##suffix(type x, type* sine, type* cosine) noexcept {                          \
        type s = 0, c = 0;                                                                         \
        ::sincos##suffix(x, &s, &c);                                                               \
        store(sine, s);                                                                            \
        store(cosine, c);                                                                          \
    }                                                                                              \
    type hf_c_lgamma##suffix(type x) noexcept {                                                    \
        int sign = 0;                                                                              \
        return ::lgamma##suffix##_r(x, &sign);                                                     \
    }
HF_OF_A_NUMBER(, double)
HF_OF_A_NUMBER(f, float)
HF_OF_A_NUMBER(l, long double)
#undef HF_OF_A_NUMBER

} // extern "C"
