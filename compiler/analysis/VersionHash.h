// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Identity and version of a section: may this build re-execute what another
// build began?
#ifndef HOLDFAST_COMPILER_VERSIONHASH_H
#define HOLDFAST_COMPILER_VERSIONHASH_H

#include "analysis/Arguments.h"
#include "analysis/Names.h"

namespace holdfast {

/// A name that is unique in a program, and the same in each build of it: the
/// linker name, qualified by the source file's name where the linker does not
/// see it.
std::string recordName(const llvm::Function &F);

/// Hashes what 'Body' computes, its helpers included, and how it is recorded
/// and logged. The hash is the same for every build of the same source by the
/// same compiler and options; independent of value names, debug information and
/// of the rest of the module.
///
/// REQUIRES: nothing is instrumented yet.
uint64_t hashVersion(const llvm::Function &Body, const ArgumentBlock &Arguments,
                     const SectionOptions &Options);

} // namespace holdfast

#endif
