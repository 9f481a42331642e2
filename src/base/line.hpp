// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Cache-line and word arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hf {

inline constexpr std::size_t line_bytes = 64;
inline constexpr std::size_t word_bytes = 8;

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
}
constexpr std::uint64_t round_down(std::uint64_t value, std::uint64_t multiple) {
    return value / multiple * multiple;
}
inline std::uintptr_t line_of(const void* address) {
    return reinterpret_cast<std::uintptr_t>(address) & ~(line_bytes - 1);
}

} // namespace hf
