// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// bytes_key<Bytes>: a key of fixed length that is ordered like its bytes, first byte first.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace hf::structures {

template <std::size_t Bytes> struct alignas(8) bytes_key {
    static_assert(Bytes % 8 == 0, "a key has no padding");
    unsigned char bytes[Bytes];

    // A word at a time: the C library's memcmp costs a call for each key that a search looks at.
    friend bool operator<(const bytes_key& a, const bytes_key& b) noexcept {
        for (std::size_t i = 0; i < Bytes; i += 8)
            if (const std::uint64_t x = a.word(i), y = b.word(i); x != y) return x < y;
        return false;
    }
    friend bool operator==(const bytes_key& a, const bytes_key& b) noexcept {
        return std::memcmp(a.bytes, b.bytes, Bytes) == 0;
    }

private:
    /// Eight bytes as a number that is ordered like them.
    std::uint64_t word(std::size_t at) const noexcept {
        std::uint64_t made;
        std::memcpy(&made, bytes + at, sizeof made);
        if constexpr (std::endian::native == std::endian::little) made = __builtin_bswap64(made);
        return made;
    }
};

} // namespace hf::structures
