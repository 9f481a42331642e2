// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Library functions that a section calls in another version.
#ifndef HOLDFAST_COMPILER_REPLACELIBRARYCALLS_H
#define HOLDFAST_COMPILER_REPLACELIBRARYCALLS_H

namespace llvm {
class Function;
}

namespace holdfast {

/// In an instance of a section's function: calls of library functions of which
/// the runtime has a version of its own (Calls.cpp) go to that; the temporary
/// buffers of std::stable_sort and relatives are never to be had.
void replaceLibraryCalls(llvm::Function &Instance);

} // namespace holdfast

#endif
