// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies of bytes that have just been stored. A load that is wider than the stores before it waits
// until these have left the processor. Optimisers ignore that, and turn words that are stored one
// by one into one memcpy.
#pragma once

#include <base/line.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace hf {

/// The same word, which is loaded and stored as one.
inline std::uint64_t as_word(std::uint64_t word) noexcept {
    asm("" : "+r"(word));
    return word;
}

/// Copies whole words, each by a load and a store of its own. For few: memcpy has longer strides.
inline void copy_words(void* to, const void* from, std::size_t bytes) noexcept {
    auto* out = static_cast<std::byte*>(to);
    const auto* in = static_cast<const std::byte*>(from);
    for (const std::byte* const end = in + bytes; in != end; in += word_bytes, out += word_bytes) {
        std::uint64_t word = 0;
        std::memcpy(&word, in, word_bytes);
        word = as_word(word);
        std::memcpy(out, &word, word_bytes);
    }
}

} // namespace hf
