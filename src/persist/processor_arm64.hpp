// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// processor.hpp for ARM64. Source: Arm Architecture Reference Manual for A-profile (DDI 0487),
// "Data cache maintenance and the point of persistence", "Ordering and completion of data cache
// instructions", "Data Synchronization Barrier".
//
// (1) A cleaning by address comes after the thread's earlier stores to the same line, in program
//     order. It is done when a DSB is, and not before: DMB orders only loads and stores.
// (2) Nothing stores past the caches: STNP is a hint, and may leave a line dirty. A copy stores and
//     cleans its lines.
// (3) DC CVAP cleans to the point of persistence. It came with ARMv8.2; the kernel announces it. An
//     older processor cleans to the point of coherency (DC CVAC). Where a memory controller holds lines
//     behind that point, ADR must cover it.
// (4) Linux lets processes clean by address, and read the virtual counter.
#pragma once

#include <base/line.hpp>
#include <base/words.hpp>

#include <cstddef>
#include <cstdint>
#include <sys/auxv.h>

namespace hf::persist::processor {

enum class write_back : std::uint8_t { cvap, cvac };

inline write_back detected() noexcept {
    constexpr unsigned long dcpop = 1UL << 16; // HWCAP_DCPOP
    return (::getauxval(AT_HWCAP) & dcpop) != 0 ? write_back::cvap : write_back::cvac; // (3)
}

inline const char* name(write_back how) noexcept {
    return how == write_back::cvap ? "dc cvap" : "dc cvac";
}

/// Lines of the processor are of 64 bytes or more: a step of 64 reaches each.
inline void write_back_lines(write_back how, std::uintptr_t first, std::uintptr_t end) noexcept {
    if (how == write_back::cvap) // written so that an assembler for ARMv8.0 takes it
        for (std::uintptr_t l = first; l < end; l += line_bytes)
            asm volatile("sys #3, c7, c12, #1, %0" : : "r"(l) : "memory");
    else
        for (std::uintptr_t l = first; l < end; l += line_bytes)
            asm volatile("dc cvac, %0" : : "r"(l) : "memory");
}

inline void copy_past_caches(write_back how, void* to, const void* from,
                             std::size_t bytes) noexcept {
    copy_words(to, from, bytes);
    const auto at = reinterpret_cast<std::uintptr_t>(to);
    write_back_lines(how, line_of(to), at + bytes); // (2)
}

inline void wait_for_stores() noexcept { asm volatile("dsb sy" : : : "memory"); } // (1)

inline std::uint64_t ticks() noexcept {
    std::uint64_t now = 0;
    asm volatile("mrs %0, cntvct_el0" : "=r"(now));
    return now;
}
inline void pause() noexcept { asm volatile("yield"); }

} // namespace hf::persist::processor
