// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sections across files: a section calls a function of another file in the version
// that was made there for sections.
#ifndef HOLDFAST_COMPILER_SECTIONVERSIONS_H
#define HOLDFAST_COMPILER_SECTIONVERSIONS_H

#include "analysis/Sections.h"

namespace holdfast {

/// Whether the module has the one body of a function that sections of other files
/// may call.
bool isShared(const llvm::Function &F);

/// Says to other files for which engine, or choice, 'F' is built.
void shareEngine(llvm::Function &F, const EngineInfo &Built);

/// Gives the instances of shared functions their names for other files. 'All' is
/// the form, or a form, of 'Built'.
void shareVersions(const Sections &All, const EngineInfo &Built);

/// A call of a function of another file.
struct CallElsewhere {
  llvm::Function *Original;
  llvm::Function *Version;
  std::string Where;
};

/// Makes the instances call other files' functions in their versions for
/// sections, and adds what they call to 'Calls'.
void callElsewhere(const Sections &All, const EngineInfo &Built,
                   llvm::SmallVectorImpl<CallElsewhere> &Calls);

/// Has the runtime compare engines with those of the other files.
void emitCallsElsewhere(llvm::Module &M, llvm::ArrayRef<CallElsewhere> Calls,
                        const EngineInfo &Built);

} // namespace holdfast

#endif
