// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Images of a pool that a power failure may leave (persistence domain ADR).
//
// (1) A line's versions are the contents it has had, in order; stores between two events make one
//     new version, and, when they changed several words, one before it with some of those words.
// (2) A line survives as one of its versions not older than the one its last completed flush (or
//     non-temporal store) covered; a flush completes with the next fence.
// (3) Lines are independent of each other.
#pragma once

#include <holdfast/persist.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

namespace hf::check {

class power_failure {
public:
    /// Watches [base, base + image.size()), whose durable content is 'image', until destroyed.
    /// Calls 'at_event' after every event. One instance at a time.
    power_failure(std::byte* base, std::vector<std::byte> image, std::function<void()> at_event);
    ~power_failure();
    power_failure(const power_failure&) = delete;
    power_failure& operator=(const power_failure&) = delete;

    /// One image that a failure at this moment may leave.
    std::vector<std::byte> image(std::mt19937_64& random);
    /// Events so far.
    std::uint64_t events() const noexcept { return events_; }

private:
    using line = std::array<std::byte, 64>;
    struct line_state {
        std::vector<line> versions; // (1)
        std::size_t durable = 0;    // oldest that may survive (2)
        std::size_t flushed = 0;    // durable after the next fence
    };
    static void on_event(persist::event what, const void* address, std::size_t bytes);
    void record(persist::event what, const void* address, std::size_t bytes);
    void observe();

    std::byte* base_;
    std::vector<line_state> lines_;
    std::vector<std::size_t> flushed_lines_;
    std::function<void()> at_event_;
    std::mt19937_64 tearing_{1};
    std::uint64_t events_ = 0;
};

} // namespace hf::check
