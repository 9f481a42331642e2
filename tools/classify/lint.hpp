// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "sources.hpp"
#include "verdict.hpp"

#include <string>
#include <vector>

namespace hf::classify {

/// A use of hf::simpo::object that its function is not fit for.
struct complaint {
    place at;         // of defer or call
    std::string what; // "defer<&row::log>: this function is not deferrable"
    verdict because;
};

/// Checks every defer<F> and call<F> in the files: the first needs a deferrable function, the
/// second a function that recovery may call again, or a const one.
std::vector<complaint> lint(const parsed& files, effects& with);

} // namespace hf::classify
