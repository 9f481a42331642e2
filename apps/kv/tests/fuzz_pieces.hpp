// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How the fuzzers cut an input into the pieces that arrive one after the other: two bytes of the
// input choose, so that the fuzzer can vary it and a file replays it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hf::kv::fuzz {

class pieces {
public:
    /// All in one piece.
    pieces() noexcept = default;
    /// Pieces of 1 to 2^(shape % 8) bytes; 7 means all in one.
    pieces(std::uint8_t shape, std::uint8_t seed) noexcept
        : state_(std::uint32_t{seed} << 8 | shape | 0x10000U), shift_(shape & 7U) {}

    std::uint32_t draw() noexcept {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 17;
        state_ ^= state_ << 5;
        return state_;
    }
    /// Bytes of the next piece, from 1 to 'left'.
    ///
    /// Requires: left > 0.
    std::size_t next(std::size_t left) noexcept {
        if (shift_ == 7) return left;
        const std::size_t bytes = 1 + draw() % (1U << shift_);
        return bytes < left ? bytes : left;
    }

private:
    std::uint32_t state_ = 1;
    unsigned shift_ = 7;
};

} // namespace hf::kv::fuzz
