// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether a pool can get another address. MOD's nodes, the containers of Python among them, and
// persistent objects know each other by their places in the pool; anything else may hold addresses
// that nobody finds. verify/image.hpp (1) to (3) hold.
#pragma once

#include <verify/image.hpp>

#include <string>

namespace hf::tools {

/// What keeps the pool where it is, for people; empty: nothing does. Requires: it was closed, or
/// recovered.
std::string held_in_place_by(const hf::pool_image& pool);

} // namespace hf::tools
