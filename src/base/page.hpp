// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernel's page: 4 KiB on x86-64; on ARM64 4, 16 or 64 KiB. What a pool file consists of is in
// units of its own (4 KiB, pool.md), which need not begin with a page.
#pragma once

#include <base/line.hpp>

#include <cstdint>
#include <unistd.h>

namespace hf {

inline std::uint64_t page_bytes() noexcept {
    static const auto bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    return bytes;
}
inline std::uintptr_t page_of(const void* address) noexcept {
    return round_down(reinterpret_cast<std::uintptr_t>(address), page_bytes());
}

} // namespace hf
