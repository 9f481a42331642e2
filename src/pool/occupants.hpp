// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is mapped at a pool's place when the pool cannot be, and what to do about it: for people.
#pragma once

#include <cstdint>
#include <string>

namespace hf {

/// The text behind "cannot reserve …": names a pool that this process has open, the file of
/// another mapping, or what the kernel calls it, and says how to go on with the pool at 'path'.
std::string occupant_of(const std::string& path, std::uint64_t base, std::uint64_t bytes);

} // namespace hf
