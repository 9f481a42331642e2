// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A called function may read anything, unless it promises less: that it reads
// nothing, or its arguments' memory alone, as the optimiser has inferred from its
// body or the programmer has written. Its instance promises the same: it differs
// in calls of the runtime only, which come later. What it stores is logged inside.
//
// Its arguments' memory is whatever can be computed from their addresses, on
// both sides of them. A self-relative pointer leads out of the object that it
// lies in, and the promise still holds: an argument that may lead elsewhere
// (mayLeadElsewhere) is as good as a read of anything.
#include "analysis/CalleeReads.h"
#include "analysis/Calls.h"

#include "llvm/ADT/Statistic.h"
#include "llvm/Support/ModRef.h"

#define DEBUG_TYPE "holdfast"

using namespace llvm;

STATISTIC(NumNarrowed, "Calls that read their arguments' memory at most");

namespace holdfast {

/// Whether the function may read through this argument of the call.
static bool readsThrough(const CallBase &Call, unsigned Argument) {
  return Call.getArgOperand(Argument)->getType()->isPtrOrPtrVectorTy() &&
         !Call.doesNotAccessMemory(Argument) &&
         !Call.onlyWritesMemory(Argument);
}

/// Adds what the called function reads of inputs to 'Found'; false if that may
/// be anything.
static bool findReads(CallBase &Call, const FreshFunctions &Fresh,
                      const Place &Where, SmallVectorImpl<Read> &Found) {
  const MemoryEffects Effects = Call.getMemoryEffects();
  if (isRefSet(Effects.getModRef(IRMemLocation::Other)))
    return false;
  if (!isRefSet(Effects.getModRef(IRMemLocation::ArgMem)))
    return true;
  for (unsigned A = 0; A != Call.arg_size(); ++A) {
    Value *Address = Call.getArgOperand(A);
    if (!readsThrough(Call, A))
      continue;
    // The function reads an argument by value in a copy, which we do not know.
    if (!Address->getType()->isPointerTy() || Call.isByValArgument(A) ||
        mayLeadElsewhere(Address, Where))
      return false;
    if (originOf(Address, Fresh, Where.Loops) == Origin::Unknown)
      Found.push_back({&Call, Address, Range{Address, 0, 0, nullptr},
                       MemoryLocation::getBeforeOrAfter(Address)});
  }
  return true;
}

void narrowCalleeReads(SmallVectorImpl<Read> &Reads,
                       const FreshFunctions &Fresh, const DominatorTree &Tree,
                       const LoopInfo &Loops) {
  SmallVector<Read, 16> Narrowed;
  for (const Read &R : Reads) {
    auto *Call = R.Address ? nullptr : dyn_cast<CallBase>(R.At);
    SmallVector<Read, 4> Its;
    if (Call && classifyCall(*Call).Kind == CallKind::Body &&
        findReads(*Call, Fresh, {Call, &Tree, &Loops}, Its)) {
      Narrowed.append(Its);
      ++NumNarrowed;
    } else {
      Narrowed.push_back(R);
    }
  }
  Reads = std::move(Narrowed);
}

} // namespace holdfast
