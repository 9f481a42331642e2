// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// processor.hpp for x86-64.
#pragma once

#include <base/line.hpp>

#include <cpuid.h>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <immintrin.h>

namespace hf::persist::processor {

enum class write_back : std::uint8_t { clwb, clflushopt, clflush };

inline write_back detected() noexcept {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) {
        if ((b & (1u << 24)) != 0) return write_back::clwb;
        if ((b & (1u << 23)) != 0) return write_back::clflushopt;
    }
    return write_back::clflush;
}

inline const char* name(write_back how) noexcept {
    switch (how) {
    case write_back::clwb: return "clwb";
    case write_back::clflushopt: return "clflushopt";
    case write_back::clflush: return "clflush";
    }
    return "";
}

__attribute__((target("clwb"))) inline void clwb_lines(std::uintptr_t first,
                                                       std::uintptr_t end) noexcept {
    for (std::uintptr_t l = first; l < end; l += line_bytes) _mm_clwb(reinterpret_cast<void*>(l));
}

__attribute__((target("clflushopt"))) inline void clflushopt_lines(std::uintptr_t first,
                                                                   std::uintptr_t end) noexcept {
    for (std::uintptr_t l = first; l < end; l += line_bytes)
        _mm_clflushopt(reinterpret_cast<void*>(l));
}

inline void clflush_lines(std::uintptr_t first, std::uintptr_t end) noexcept {
    for (std::uintptr_t l = first; l < end; l += line_bytes)
        _mm_clflush(reinterpret_cast<void*>(l));
}

inline void write_back_lines(write_back how, std::uintptr_t first, std::uintptr_t end) noexcept {
    switch (how) {
    case write_back::clwb: return clwb_lines(first, end);
    case write_back::clflushopt: return clflushopt_lines(first, end);
    case write_back::clflush: return clflush_lines(first, end);
    }
}

inline void copy_past_caches(write_back, void* to, const void* from, std::size_t bytes) noexcept {
    auto* out = static_cast<long long*>(to);
    const auto* in = static_cast<const std::byte*>(from);
    for (std::size_t i = 0; i < bytes / word_bytes; ++i) {
        long long word;
        std::memcpy(&word, in + i * word_bytes, word_bytes);
        _mm_stream_si64(out + i, word);
    }
}

inline void wait_for_stores() noexcept { _mm_sfence(); }

inline std::uint64_t ticks() noexcept { return __rdtsc(); }
inline void pause() noexcept { _mm_pause(); }

} // namespace hf::persist::processor
