// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is in a pool, as lines of JSON, and a pool made of such lines.
//
// (1) A line is one JSON object. The first one describes the pool, one line each container or
//     object; an element's line comes behind its container's.
// (2) Bytes stay what they are: a string or a name that is not UTF-8 is written in base 64, an
//     element of another type as hexadecimal digits, in the order of the bytes.
// (3) Damage costs what it has hit: all else is written, and each fault is reported.
// (4) A pool that is made has its name when it is whole. Lines that are refused leave no file.
#pragma once

#include <pool/header.hpp>

#include <holdfast/pool.hpp>
#include <holdfast/result.hpp>

#include <cstdint>
#include <functional>
#include <istream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hf::tools {

/// How the line begins that stands for a pool's root object: no line has what is in it.
inline constexpr std::string_view unlisted_line = "{\"unlisted\":";

/// Gives every line, without its end. Returns what could not be read, for people. 'recovering': how
/// to open a pool that was left open; if that fails it is read as it is.
///
/// Errors:   what opening the file gives, in_use, io_error (no addresses for the pool).
result<std::vector<std::string>> read_contents(const std::string& path, const pool_header& header,
                                               const std::optional<open_options>& recovering,
                                               const std::function<void(std::string)>& to);

/// Makes a pool of lines. Returns how many elements it got.
///
/// Errors:   exists; bad_argument (a line that is not as expected, by its number); pool_full.
result<std::uint64_t> load_contents(const std::string& path, std::istream& lines);

} // namespace hf::tools
