// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The name of an instantiation of a class template: "queue<i8,128>". Recovery finds logged
// functions by their class's name, so each instantiation of a template needs a name of its own.
#pragma once

#include <holdfast/simpo.hpp>

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string_view>
#include <type_traits>

namespace hf::simpo {

/// Names an instantiation: the template's name, then its parameters.
class class_text {
public:
    constexpr explicit class_text(std::string_view of_template) { add(of_template); }
    /// A letter and the size in bytes: f floating point, b bool, e enumeration, i signed, u
    /// unsigned, c any other class. Two classes of one size have the same text.
    template <class T> constexpr class_text type() const {
        class_text out = next();
        out.add(std::string_view(&detail::kind_of<T>, 1));
        out.add(sizeof(T));
        return out;
    }
    constexpr class_text number(std::size_t n) const {
        class_text out = next();
        out.add(n);
        return out;
    }
    constexpr class_text end() const {
        class_text out = *this;
        out.add(">");
        return out;
    }
    constexpr const char* text() const { return text_; }

private:
    constexpr class_text next() const {
        class_text out = *this;
        out.add(begun_ ? "," : "<");
        out.begun_ = true;
        return out;
    }
    constexpr void add(std::string_view what) {
        for (const char c : what)
            text_[bytes_++] = c; // beyond its end nothing is constant: no compiling
    }
    constexpr void add(std::size_t n) {
        if (n >= 10) add(n / 10);
        text_[bytes_++] = static_cast<char>('0' + n % 10);
    }
    char text_[64]{};
    std::size_t bytes_ = 0;
    bool begun_ = false;
};

/// What the structures of this folder can hold: `count` values of a type whose bytes mean the same
/// to the next process.
template <class T, std::size_t Count>
concept stored = std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T> &&
                 !detail::holds_address<T> && Count >= 1 && Count < (std::size_t{1} << 31);

namespace detail {

/// Whether a value is NaN: neither less nor greater than any other value. A sort takes it for the
/// first value that it meets.
template <class T> constexpr bool is_nan(const T& value) {
    if constexpr (std::is_floating_point_v<T>) return value != value;
    else return false;
}

/// Prints a line to standard output: a number with all its digits, any other value as its bytes.
template <class T> void print_line(const T& value) {
    if constexpr (std::is_floating_point_v<T>) {
        std::printf("%.*Lg\n", std::numeric_limits<T>::max_digits10,
                    static_cast<long double>(value));
    } else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
        std::printf("%lld\n", static_cast<long long>(value));
    } else if constexpr (std::is_integral_v<T>) {
        std::printf("%llu\n", static_cast<unsigned long long>(value));
    } else {
        std::array<unsigned char, sizeof(T)> bytes;
        std::memcpy(bytes.data(), &value, sizeof(T));
        for (const unsigned each : bytes) std::printf("%02x", each);
        std::printf("\n");
    }
}

} // namespace detail

} // namespace hf::simpo
