// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What recovery believes because a checksum holds, announced to the crash checker: which of the
// contents that a failure may have left there it needs to try (check/explorer.hpp, 4).
#pragma once

#include <trace/trace.hpp>

namespace hf::believed {

/// The following code reads the range, and believes it only if a checksum of all of it holds.
inline constexpr trace::event checked{"checked"};
/// So it does with this range, and reads it only if all was well since the last 'checked'.
inline constexpr trace::event checked_on{"checked_on"};

} // namespace hf::believed
