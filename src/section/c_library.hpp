// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the C library's functions for sections ask of the section that is open.
#pragma once

#include <cstdint>

extern "C" {
/// Bytes that are about to be overwritten: they are in the log when it returns, unless they are
/// volatile, and durable with the section's commit.
void hf_c_overwrite(const void* address, std::uint64_t bytes) noexcept;
}
