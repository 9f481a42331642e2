// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where a reader beside a writer can be held up, for tests that let the writer go on meanwhile.
#pragma once

#include <cstdint>

namespace hf::mod::reader_steps {

enum class step : std::uint8_t { read_sequence, announced, counted };
/// Called behind each step of a pin, and when the containers are counted that one is looked for in,
/// if there is one.
extern void (*taken)(step);

} // namespace hf::mod::reader_steps
