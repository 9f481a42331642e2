// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Identifies a start of the machine. A pool that was left open is torn if the machine was started
// again since: the contents of its page cache are lost.
//
// (1) The kernel's own identifier is proof, both ways.
// (2) A container may have an identifier of its own in its place, a new one with each start, while
//     the machine went on. Then the moment of the machine's start decides: CLOCK_REALTIME -
//     CLOCK_BOOTTIME, which is the same to the nanosecond until the clock is set or the machine is
//     started again. A clock that begins at the same time after each start, for lack of a battery,
//     does not repeat it to 'start_differs_ns_max'.
// (3) An unknown start counts as another one: the pool is refused, and not believed.
#pragma once

#include <holdfast/result.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace hf {

struct pool_header;

struct boot_identifier {
    std::string id;         // 36 characters; empty: the kernel has no identifier
    bool kernels_own{true}; // and not a container's
};
/// The boot identifier. 'path' is named when it cannot be read.
///
/// Errors:   io_error.
result<const boot_identifier*> boot_here(const std::string& path);

/// When the machine was started, in nanoseconds since 1970. 0: not known, in a time namespace of
/// its own or before the clock has been set.
std::uint64_t machine_start_ns() noexcept;
inline constexpr std::uint64_t start_differs_ns_max = 100'000;

/// Notes in a header which start of the machine this is: by (1), and by (2) where (1) proves
/// nothing.
void note_boot(pool_header& h, const boot_identifier& here) noexcept;
/// Whether this is the start of the machine that the header notes.
bool same_boot(const pool_header& h, const boot_identifier& here) noexcept;
/// The same, where the machine was started at 'start_ns'. Pure.
bool same_boot(const pool_header& h, const boot_identifier& here, std::uint64_t start_ns) noexcept;

} // namespace hf
