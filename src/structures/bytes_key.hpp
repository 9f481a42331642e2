// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// bytes_key<Bytes>: a key of fixed length that is ordered like its bytes, first byte first.
#pragma once

#include <cstddef>
#include <cstring>

namespace hf::structures {

template <std::size_t Bytes> struct alignas(8) bytes_key {
    static_assert(Bytes % 8 == 0, "a key has no padding");
    unsigned char bytes[Bytes];

    friend bool operator<(const bytes_key& a, const bytes_key& b) noexcept {
        return std::memcmp(a.bytes, b.bytes, Bytes) < 0;
    }
    friend bool operator==(const bytes_key& a, const bytes_key& b) noexcept {
        return std::memcmp(a.bytes, b.bytes, Bytes) == 0;
    }
};

} // namespace hf::structures
