// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checksums of durable records: XXH3, seeded so that a record is valid only at the place and time
// of its writing.
#pragma once

#include <cstddef>
#include <cstdint>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace hf {

inline std::uint64_t checksum(const void* bytes, std::size_t count, std::uint64_t seed) noexcept {
    return XXH3_64bits_withSeed(bytes, count, seed);
}

} // namespace hf
