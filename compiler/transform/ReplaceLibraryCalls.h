// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Library functions that a section calls in another version.
#ifndef HOLDFAST_COMPILER_REPLACELIBRARYCALLS_H
#define HOLDFAST_COMPILER_REPLACELIBRARYCALLS_H

namespace llvm {
class Function;
}

namespace holdfast {

struct EngineInfo;

/// In an instance of a section's function, calls of library functions go to the
/// runtime's own version where it has one (Calls.cpp). std::stable_sort and its
/// relatives get no temporary buffer. Where a section never runs again and
/// cannot be left by an exception, an operator new without memory ends the process.
void replaceLibraryCalls(llvm::Function &Instance, const EngineInfo &Engine);

} // namespace holdfast

#endif
