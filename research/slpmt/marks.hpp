// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a private cache keeps with a line. Source: SLPMT Fig. 5.
#pragma once

#include <cstdint>

namespace hf::slpmt::mark {

// Log bits: one per word in the first level; one per half of the line, the lowest two, in the
// second.
inline constexpr std::uint16_t all_words = 0xff, words_per_half = 4, half = 0xf;
inline constexpr std::uint16_t persist = 1 << 8;
inline constexpr unsigned identifier_shift = 9; // two bits
// The identifier is valid: a transaction stored to the line, which is not durable yet. Hardware can
// derive this from persist bit, identifier and modified state only if stores outside of
// transactions are kept apart otherwise, and the paper does not say how.
inline constexpr std::uint16_t owned = 1 << 11;

constexpr unsigned identifier(std::uint16_t marks) { return marks >> identifier_shift & 3; }
constexpr std::uint16_t of(unsigned identifier) {
    return static_cast<std::uint16_t>(identifier << identifier_shift);
}
constexpr std::uint16_t without_log(std::uint16_t marks) {
    return static_cast<std::uint16_t>(marks & ~all_words);
}

/// Bits per line: persist, log, identifier.
inline constexpr unsigned first_bits = 1 + 8 + 2, second_bits = 1 + 2 + 2;

} // namespace hf::slpmt::mark
