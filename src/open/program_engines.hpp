// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What open asks of the program: which engines its failure-atomic functions are built for.
#pragma once

#include <open/engine.hpp>

#include <holdfast/result.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace hf {

/// One of each, with its options' defaults, in the table's order; and of all engines that the
/// program has, those. Throw std::bad_alloc.
std::vector<engine_ptr> engines_of_program();
std::vector<engine_ptr> linked_engines();
/// Whether sections of this program can run, in a fenced medium or another one, with the engines
/// 'given', where any of those has sections at all: a pool of an engine without sections is open
/// beside those of the program's. Errors: bad_argument.
status check_program(const std::string& path, bool fenced, std::uint32_t given);

} // namespace hf
