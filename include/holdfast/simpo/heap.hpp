// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A binary heap, as a persistent class.  SIMPO Table 3
#pragma once

#include <holdfast/author/simpo/class_text.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

namespace hf::simpo {

/// Up to `N` values, the greatest first.
///
/// Call the members by a handle, hf::simpo::object. A function that returns nothing is deferred
/// (defer<&heap::enheap>, 0 ordering points) or called; the others are called (1 point; const ones
/// without pending calls 0).
/// Errors: none. Crash and durability: see object::defer and object::call.
template <class T, std::size_t N>
    requires stored<T, N>
class heap {
    static constexpr class_text text = class_text("heap").type<T>().number(N).end();

public:
    static constexpr class_name simpo_class{text.text(), 1};

    /// Adds a value. A full heap stays as it is; a NaN is never added. Cost: O(log n).
    void enheap(T value) noexcept {
        if (count_ == N || detail::is_nan(value)) return;
        values_[count_] = value;
        ++count_;
        std::push_heap(values_.begin(), values_.begin() + count_);
    }
    /// Removes the greatest value and returns it; nothing from an empty heap. Cost: O(log n).
    std::optional<T> deheap() noexcept {
        if (count_ == 0) return std::nullopt;
        std::pop_heap(values_.begin(), values_.begin() + count_);
        --count_;
        return values_[count_];
    }
    /// How many values there are. Cost: O(1).
    std::uint32_t count() const noexcept { return count_; }
    /// Prints a line for each value to standard output, in the heap's order.
    void print_all() const {
        for (std::uint32_t i = 0; i < count_; ++i) detail::print_line(values_[i]);
    }

private:
    std::array<T, N> values_{};
    std::uint32_t count_ = 0;
};

} // namespace hf::simpo
