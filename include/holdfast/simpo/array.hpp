// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An array whose every element changes at once, as a persistent class.  SIMPO Table 3
#pragma once

#include <holdfast/author/simpo/class_text.hpp>

#include <array>
#include <cstdint>
#include <type_traits>

namespace hf::simpo {

/// `N` numbers, zero to begin with. An index is below N. An index beyond changes nothing, and reads
/// as zero.
///
/// Call the members by a handle, hf::simpo::object. A function that returns nothing is deferred
/// (defer<&array::set>, 0 ordering points) or called; the others are called (1 point; const ones
/// without pending calls 0).
/// Errors: none. Crash and durability: see object::defer and object::call.
template <class T, std::size_t N>
    requires stored<T, N> && std::is_arithmetic_v<T>
class array {
    static constexpr class_text text = class_text("array").type<T>().number(N).end();

public:
    static constexpr class_name simpo_class{text.text(), 1};

    /// Adds to each element; integers wrap around. Cost: O(N).
    void increase_all(T by) noexcept {
        for (T& each : values_) each = static_cast<T>(sum_type(each) + sum_type(by));
    }
    /// Sets each element to zero. Cost: O(N).
    void zero() noexcept { values_.fill(T{}); }
    /// One element: sets it, and reads it. Cost: O(1).
    void set(std::uint32_t index, T value) noexcept {
        if (index < N) values_[index] = value;
    }
    T get(std::uint32_t index) const noexcept { return index < N ? values_[index] : T{}; }
    /// Prints a line for each element to standard output.
    void print_all() const {
        for (const T each : values_) detail::print_line(each);
    }

private:
    // 64 bits if T is an integer; the bits beyond T's are cut off again.
    using sum_type = std::conditional_t<std::is_integral_v<T>, std::uint64_t, T>;

    std::array<T, N> values_{};
};

} // namespace hf::simpo
