// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Literals for numbers of bytes in a pool's options: 64_MiB.
#pragma once

#include <cstdint>

namespace hf {

inline namespace literals {
constexpr std::uint64_t operator""_KiB(unsigned long long n) { return n << 10; }
constexpr std::uint64_t operator""_MiB(unsigned long long n) { return n << 20; }
constexpr std::uint64_t operator""_GiB(unsigned long long n) { return n << 30; }
} // namespace literals

} // namespace hf
