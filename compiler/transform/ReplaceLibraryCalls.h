// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Library functions that a section calls in another version.
#ifndef HOLDFAST_COMPILER_REPLACELIBRARYCALLS_H
#define HOLDFAST_COMPILER_REPLACELIBRARYCALLS_H

namespace llvm {
class Function;
}

namespace holdfast {

/// In an instance of a section's function, calls of library functions go to the
/// runtime's own version where it has one (Calls.cpp). std::stable_sort and its
/// relatives get no temporary buffer.
void replaceLibraryCalls(llvm::Function &Instance);

} // namespace holdfast

#endif
