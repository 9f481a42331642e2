// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <holdfast/result.hpp>

#include <string>
#include <string_view>

namespace hf {

/// Begins what stands for the boot identifier where /proc has none; the second follows in which the
/// machine was started, as far as its clock tells.
inline constexpr std::string_view boot_time_prefix = "started ";
/// The kernel's boot identifier, 36 characters, or what stands for it. 'path' is named when it
/// cannot be read.
///
/// Errors:   io_error.
result<std::string_view> kernel_boot_id(const std::string& path);

} // namespace hf
