// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef HOLDFAST_COMPILER_EMITRESUMPTION_H
#define HOLDFAST_COMPILER_EMITRESUMPTION_H

#include "analysis/Arguments.h"
#include "analysis/Names.h"
#include "analysis/ResumePoints.h"
#include "transform/ConstantAddresses.h"
#include "transform/CutSteps.h"

#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/Instructions.h"

namespace holdfast {

/// Where everything lies in the frame.
struct FrameLayout {
  llvm::MapVector<llvm::AllocaInst *, uint64_t> Locals;
  /// Places of doubled registers in a snapshot.
  llvm::MapVector<llvm::Value *, uint64_t> Slots;
  uint64_t SnapshotsAt = 0, SnapshotBytes = 0, Bytes = 0;
};

FrameLayout layOutFrame(llvm::Function &F, const ResumePlan &Plan,
                        llvm::ArrayRef<ResumePoint> Points);

/// Rewrites 'F', whose steps, needs and frame these are: it enters, saves, calls the
/// runtime for its steps, and goes on behind them. 'Descriptor', 'Addresses': its own.
void emitResumption(llvm::Function &F, const SectionOptions &Options,
                    llvm::GlobalVariable &Descriptor, const Steps &Cut,
                    const ResumePlan &Plan, FrameLayout Frame,
                    ConstantAddresses &Addresses,
                    const ArgumentBlock &Arguments);

} // namespace holdfast

#endif
