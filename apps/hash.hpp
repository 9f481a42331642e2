// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The applications' hash: XXH3-64.
#pragma once

#include <cstddef>
#include <cstdint>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace hf::apps {

inline std::uint64_t hash_of(const void* bytes, std::size_t count, std::uint64_t seed) noexcept {
    return XXH3_64bits_withSeed(bytes, count, seed);
}

} // namespace hf::apps
