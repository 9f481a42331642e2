// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the processor's floating-point results depend on besides their operands: the rounding mode,
// how subnormal numbers are treated, and the x87 unit's rounding and precision. A section that is
// re-executed must find what it found when it first ran.
//
// Exception masks and flags do not belong to it: they change no result.
#pragma once

#include <cstdint>
#include <xmmintrin.h>

namespace hf::persist {

/// One word of the durable format (docs/format/log.md): 0 is the environment in which a process
/// starts, so that a log written before it was recorded means that one.
class float_environment {
public:
    constexpr explicit float_environment(std::uint16_t bits) noexcept : bits_(bits) {}

    /// The calling thread's.
    static float_environment current() noexcept {
        const std::uint32_t sse = _mm_getcsr();
        std::uint16_t x87 = 0;
        asm volatile("fnstcw %0" : "=m"(x87));
        return float_environment(static_cast<std::uint16_t>(
            (sse & sse_bits) | ((x87 ^ x87_at_start) & x87_bits) >> x87_shift));
    }

    /// Makes it the calling thread's, which keeps its exception masks and flags.
    void apply() const noexcept {
        _mm_setcsr((_mm_getcsr() & ~sse_bits) | (bits_ & sse_bits));
        std::uint16_t x87 = 0;
        asm volatile("fnstcw %0" : "=m"(x87));
        const auto ours = static_cast<std::uint32_t>(bits_) << x87_shift & x87_bits;
        x87 = static_cast<std::uint16_t>((x87 & ~x87_bits) | (ours ^ (x87_at_start & x87_bits)));
        asm volatile("fldcw %0" : : "m"(x87));
    }

    constexpr std::uint16_t bits() const noexcept { return bits_; }
    /// Bits that no environment has.
    constexpr bool valid() const noexcept {
        return (bits_ & ~(sse_bits | x87_bits >> x87_shift)) == 0;
    }

private:
    // MXCSR: flush to zero, rounding, denormals are zero, at their own places.
    static constexpr std::uint32_t sse_bits = 1u << 15 | 3u << 13 | 1u << 6;
    // The x87 control word: rounding and precision, at bits 11 to 8, kept at 5 to 2.
    static constexpr std::uint32_t x87_bits = 0xf00;
    static constexpr std::uint32_t x87_at_start = 0x300; // double-extended precision
    static constexpr unsigned x87_shift = 6;

    std::uint16_t bits_;
};

} // namespace hf::persist
