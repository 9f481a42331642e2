// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions of this build that recovery can call again.
#pragma once

#include <simpo/format.hpp>

#include <string>

namespace hf::simpo {

/// The function that a record names. Null: this build has none, or it differs; 'why' says how, if it is given.
const detail::function* find_function(const record_head& r, std::string* why = nullptr);

} // namespace hf::simpo
