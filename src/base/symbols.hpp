// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Source lines of return addresses: by llvm-symbolizer or addr2line, if one is installed; else by
// the dynamic symbol table.
#pragma once

#include <string>
#include <vector>

namespace hf {

/// A place of code: return addresses, innermost first.
struct code_place {
    static constexpr unsigned depth = 4;
    const void* at[depth];
};

/// Looks the places up, all at once: a symbolizer takes longer to start than to answer.
void look_up(const std::vector<code_place>& places);

/// "function at file:line" for each call that led to the place, innermost first, inlined ones
/// included; those of the persistence layer, the checker and the standard library left out. Files
/// are named from the root of their source tree. "function+0x12" without line information. Empty if
/// nothing is known.
std::vector<std::string> calls_at(const code_place& place);

} // namespace hf
