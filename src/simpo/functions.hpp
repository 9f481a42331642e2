// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions of this build that recovery can call again.
#pragma once

#include <simpo/format.hpp>

#include <holdfast/simpo.hpp>

#include <string>

namespace hf::simpo {

static_assert(argument_words_max == record_words_max);

/// The function that a record of this object names. Null: this build does not have it, or it or its
/// class differs; 'why', if given, gets the difference.
const detail::function* find_function(const object_head& of, const record_head& r,
                                      std::string* why = nullptr);

} // namespace hf::simpo
