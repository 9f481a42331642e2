// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the processor's floating-point results depend on besides their operands: the rounding mode,
// how subnormal numbers are treated, and on x86-64 the x87 unit's rounding and precision. A section
// that is re-executed must find what it found when it first ran.
//
// Exception masks and flags do not belong to it: they change no result.
#pragma once

#include <cstdint>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace hf::persist {

/// One word of the durable format (docs/format/log.md): 0 is the environment in which a process
/// starts, so that a log written before it was recorded means that one. No other word means
/// something on both kinds of processors.
class float_environment {
public:
    constexpr explicit float_environment(std::uint16_t bits) noexcept : bits_(bits) {}

    /// The calling thread's.
    static float_environment current() noexcept;
    /// Makes it the calling thread's, which keeps its exception masks and flags.
    void apply() const noexcept;

    constexpr std::uint16_t bits() const noexcept { return bits_; }
    /// Whether an environment of this processor can have these bits.
    constexpr bool valid() const noexcept { return (bits_ & ~all_bits) == 0; }
    /// The environment in which a process starts, and subnormal numbers count as zero.
    static constexpr float_environment flushing() noexcept {
        return float_environment(flushing_bit);
    }

private:
#if defined(__x86_64__)
    // MXCSR: flush to zero, rounding, denormals are zero, at their own places.
    static constexpr std::uint16_t flushing_bit = 1u << 15;
    static constexpr std::uint32_t sse_bits = 1u << 15 | 3u << 13 | 1u << 6;
    // The x87 control word: rounding and precision, at bits 11 to 8, kept at 5 to 2.
    static constexpr std::uint32_t x87_bits = 0xf00;
    static constexpr std::uint32_t x87_at_start = 0x300; // double-extended precision
    static constexpr unsigned x87_shift = 6;
    static constexpr std::uint32_t all_bits = sse_bits | x87_bits >> x87_shift;
#else
    // FPCR: alternative half precision, default NaN, flush to zero, rounding, at bits 26 to 22,
    // kept at 12 to 8; flush to zero in half precision, at bit 19, kept at 7.
    static constexpr std::uint64_t high_bits = std::uint64_t{0x1f} << 22;
    static constexpr unsigned high_shift = 14;
    static constexpr std::uint64_t half_bit = std::uint64_t{1} << 19;
    static constexpr unsigned half_shift = 12;
    static constexpr std::uint16_t flushing_bit = 1u << (24 - high_shift);
    static constexpr std::uint64_t all_bits = high_bits >> high_shift | half_bit >> half_shift;
#endif

    std::uint16_t bits_;
};

#if defined(__x86_64__)

inline float_environment float_environment::current() noexcept {
    const std::uint32_t sse = _mm_getcsr();
    std::uint16_t x87 = 0;
    asm volatile("fnstcw %0" : "=m"(x87));
    return float_environment(static_cast<std::uint16_t>(
        (sse & sse_bits) | ((x87 ^ x87_at_start) & x87_bits) >> x87_shift));
}

inline void float_environment::apply() const noexcept {
    _mm_setcsr((_mm_getcsr() & ~sse_bits) | (bits_ & sse_bits));
    std::uint16_t x87 = 0;
    asm volatile("fnstcw %0" : "=m"(x87));
    const auto ours = static_cast<std::uint32_t>(bits_) << x87_shift & x87_bits;
    x87 = static_cast<std::uint16_t>((x87 & ~x87_bits) | (ours ^ (x87_at_start & x87_bits)));
    asm volatile("fldcw %0" : : "m"(x87));
}

#else

inline float_environment float_environment::current() noexcept {
    std::uint64_t fpcr = 0;
    asm volatile("mrs %0, fpcr" : "=r"(fpcr));
    return float_environment(static_cast<std::uint16_t>((fpcr & high_bits) >> high_shift |
                                                        (fpcr & half_bit) >> half_shift));
}

inline void float_environment::apply() const noexcept {
    std::uint64_t fpcr = 0;
    asm volatile("mrs %0, fpcr" : "=r"(fpcr));
    const std::uint64_t bits = bits_;
    fpcr = (fpcr & ~(high_bits | half_bit)) | (bits << high_shift & high_bits) |
           (bits << half_shift & half_bit);
    asm volatile("msr fpcr, %0" : : "r"(fpcr));
}

#endif

} // namespace hf::persist
