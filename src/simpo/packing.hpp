// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bytes that a user's compression makes fewer, in files beside a pool.
#pragma once

#include <holdfast/simpo/swap.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace hf::simpo {

/// A compression's name as a file has it: zero-padded; empty: none.
using packing_name = std::array<char, 16>;

inline bool can_be_named(const compression& how) noexcept {
    const std::size_t length = std::strlen(how.name());
    return length != 0 && length < sizeof(packing_name);
}
/// Requires: can_be_named().
inline packing_name packing_name_of(const compression& how) noexcept {
    packing_name out{};
    std::memcpy(out.data(), how.name(), std::strlen(how.name()));
    return out;
}

/// Packs 'bytes' into fewer. 0: they stay as they are, because they would not be fewer, or would
/// not be the same when they are read. 'tried' has room for them.
inline std::uint64_t pack(const compression& how, std::byte* to, std::byte* tried,
                          const std::byte* from, std::uint64_t bytes) {
    const std::uint64_t packed = how.pack(to, bytes - 1, from, bytes);
    if (packed == 0 || packed >= bytes) return 0;
    if (!how.unpack(tried, bytes, to, packed)) return 0;
    return std::memcmp(tried, from, bytes) == 0 ? packed : 0;
}

} // namespace hf::simpo
