// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What this build has registered: functions whose sections resume, by identifier, and kinds of
// locks.
#pragma once

#include <holdfast/abi/justdo_abi.h>

#include <cstdint>

namespace hf::justdo {

/// The layout of the function's constants; 0: it names no constants.
inline std::uint64_t layout_of(const hf_justdo_function& f) noexcept {
    return f.constants != nullptr ? f.constants->layout : 0;
}

/// The function with this identifier, version and layout. Else one with the identifier, and with
/// this version if possible, so that a message can name it. Else null.
const hf_justdo_function* find_function(std::uint64_t id, std::uint64_t version,
                                        std::uint64_t layout) noexcept;

/// Null: this build has no such kind.
const hf_justdo_lock_calls* find_lock(std::uint32_t kind) noexcept;

} // namespace hf::justdo
