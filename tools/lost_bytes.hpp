// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files of others are mapped: reading bytes that somebody has cut off, or that the disk has lost,
// raises a signal.
#pragma once

#include <cstddef>
#include <span>

namespace hf::tools {

/// From here on that ends the program with a line that says so, and exit status 2.
void answer_lost_bytes();

/// While it lives, that ends nothing in this mapping: from the first page that is lost, the rest of
/// the mapping reads as zeroes. One at a time, after answer_lost_bytes().
class lost_as_zeroes {
public:
    explicit lost_as_zeroes(std::span<const std::byte> mapping) noexcept;
    lost_as_zeroes(const lost_as_zeroes&) = delete;
    lost_as_zeroes& operator=(const lost_as_zeroes&) = delete;
    ~lost_as_zeroes();
    /// Whether any were read: then what was found there means nothing.
    bool any() const noexcept;
};

} // namespace hf::tools
