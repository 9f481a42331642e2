// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What this build has registered: functions whose sections resume, by identifier, and kinds of locks.
#pragma once

#include <holdfast/abi/justdo_abi.h>

#include <cstdint>

namespace hf::justdo {

/// The function that has this identifier and version; else one that has the identifier, so that it
/// can be named; else null.
const hf_justdo_function* find_function(std::uint64_t id, std::uint64_t version) noexcept;

/// Null: this build knows no such kind.
const hf_justdo_lock_calls* find_lock(std::uint32_t kind) noexcept;

} // namespace hf::justdo
