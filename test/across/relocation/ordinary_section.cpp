// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A section that is not built relocatable, for the relocation test to call.
#include <holdfast/txfunc.hpp>

#include <cstdint>

HF_TXFUNC void relocation_test_ordinary(std::uint64_t* number) noexcept { *number += 1; }
