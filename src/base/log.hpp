// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <holdfast/log.hpp>

namespace hf {

/// Hands one line to the log.
void say(severity level, const char* message) noexcept;

} // namespace hf
