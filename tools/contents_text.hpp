// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bytes as text in the lines of contents.hpp, and back.
#pragma once

#include <mod/contents.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace hf::tools {

/// The layout of Python's pools, and the last byte of each of their elements
/// (docs/format/python-values.md).
inline constexpr std::string_view python_layout = "python/1";
inline constexpr char python_bytes = 0, python_str = 1, python_value = 2;

/// "map", "ordered_map" …
std::string kind_name(const mod::contents_form& form);

bool is_utf8(std::string_view bytes) noexcept;
std::string to_hex(std::string_view bytes);
std::string to_base64(std::string_view bytes);
/// Nothing: it is no such text.
std::optional<std::string> from_hex(std::string_view text);
std::optional<std::string> from_base64(std::string_view text);

} // namespace hf::tools
