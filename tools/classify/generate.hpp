// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "report.hpp"

#include <string>

namespace hf::classify {

/// Writes the calling interface of a class: NAME_calls, with a function for each of the class's
/// that defers or calls. Returns why it cannot, or "". Versions of templates are left out, with a
/// comment, if there are other classes.
/// Source: SIMPO Listing 3. Differs: a class beside the programmer's, which stays as it is; the
///         records are object's own.
std::string generate(const std::vector<classified>& classes, const std::string& header);

} // namespace hf::classify
