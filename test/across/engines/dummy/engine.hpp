// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <holdfast/pool.hpp>

namespace hf::dummy {

engine_ptr engine() noexcept;
extern int begun; // sections

} // namespace hf::dummy
