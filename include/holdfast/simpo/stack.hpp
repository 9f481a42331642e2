// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A stack, as a persistent class.  SIMPO Table 3
#pragma once

#include <holdfast/author/simpo/class_text.hpp>

#include <array>
#include <cstdint>
#include <optional>

namespace hf::simpo {

/// Up to `N` values, the newest first.
///
/// Call the members by a handle, hf::simpo::object. A function that returns nothing is deferred
/// (defer<&stack::push>, 0 ordering points) or called; the others are called (1 point; const ones
/// without pending calls 0).
/// Errors: none. Crash and durability: see object::defer and object::call.
template <class T, std::size_t N>
    requires stored<T, N>
class stack {
    static constexpr class_text text = class_text("stack").type<T>().number(N).end();

public:
    static constexpr class_name simpo_class{text.text(), 1};

    /// Adds a value; a full stack stays as it is. Cost: O(1), as that of all members.
    void push(T value) noexcept {
        if (count_ == N) return;
        values_[count_] = value;
        ++count_;
    }
    /// Removes the newest value and returns it; nothing from an empty stack.
    std::optional<T> pop() noexcept {
        if (count_ == 0) return std::nullopt;
        --count_;
        return values_[count_];
    }
    /// The newest value, which stays; nothing from an empty stack.
    std::optional<T> peek() const noexcept {
        if (count_ == 0) return std::nullopt;
        return values_[count_ - 1];
    }
    /// Whether there is no value; how many there are.
    bool is_empty() const noexcept { return count_ == 0; }
    std::uint32_t count() const noexcept { return count_; }

private:
    std::array<T, N> values_{};
    std::uint32_t count_ = 0;
};

} // namespace hf::simpo
