// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A queue in a ring, as a persistent class.  SIMPO Table 3
#pragma once

#include <holdfast/author/simpo/class_text.hpp>

#include <array>
#include <cstdint>
#include <optional>

namespace hf::simpo {

/// Up to `N` values, the oldest first.
///
/// Call the members by a handle, hf::simpo::object. A function that returns nothing is deferred
/// (defer<&queue::enqueue>, 0 ordering points) or called; the others are called (1 point; const
/// ones without pending calls 0).
/// Errors: none. Crash and durability: see object::defer and object::call.
template <class T, std::size_t N>
    requires stored<T, N>
class queue {
    static constexpr class_text text = class_text("queue").type<T>().number(N).end();

public:
    static constexpr class_name simpo_class{text.text(), 1};

    /// Cost: O(1), as that of all members.
    void clear() noexcept { first_ = count_ = 0; }
    /// A full queue stays as it is: a caller that must know it asks is_full, or calls try_enqueue.
    void enqueue(T value) noexcept { (void)try_enqueue(value); }
    /// False: the queue is full.
    bool try_enqueue(T value) noexcept {
        if (is_full()) return false;
        values_[(std::size_t{first_} + count_) % N] = value;
        ++count_;
        return true;
    }
    /// Removes the oldest value and returns it; nothing from an empty queue.
    std::optional<T> dequeue() noexcept {
        if (is_empty()) return std::nullopt;
        const T oldest = values_[first_];
        first_ = static_cast<std::uint32_t>((std::size_t{first_} + 1) % N);
        --count_;
        return oldest;
    }
    /// Whether the queue is empty; whether it is full; how many values it has.
    bool is_empty() const noexcept { return count_ == 0; }
    bool is_full() const noexcept { return count_ == N; }
    std::uint32_t count() const noexcept { return count_; }

private:
    std::array<T, N> values_{};
    std::uint32_t first_ = 0, count_ = 0;
};

} // namespace hf::simpo
