// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A closure is built in a local of the caller: field by field, in unoptimised
// code through copies, or with a vector store. The capture of a variable is
// reported if its address is stored there, at the offset of a pointer that the
// section follows.
#include "analysis/Captures.h"
#include "analysis/Names.h"
#include "analysis/Origin.h"
#include "analysis/SectionRules.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace holdfast {

namespace {

class Finder {
public:
  explicit Finder(const DataLayout &Layout) : Layout(Layout) {}

  /// Returns the volatile variable that the pointer leads to, in words; empty
  /// when none is seen.
  std::string variableBehind(const Value *Pointer) {
    SmallVector<const Value *, 4> Objects;
    getUnderlyingObjects(Pointer, Objects);
    for (const Value *Object : Objects) {
      if (isa<AllocaInst>(Object))
        return "a local variable";
      if (const auto *Global = dyn_cast<GlobalVariable>(Object))
        if (!Global->isConstant() && !isToolGlobal(*Global))
          return "global variable '" + demangle(Global->getName().str()) + "'";
      if (const auto *Load = dyn_cast<LoadInst>(Object))
        if (std::string Found = variableIn(Load->getPointerOperand(), 0);
            !Found.empty())
          return Found;
    }
    return "";
  }

  /// The same for the pointer that lies 'Offset' bytes behind 'Address', if
  /// that is in a local and every pointer stored there leads to a variable.
  std::string variableIn(const Value *Address, int64_t Offset) {
    APInt Step(Layout.getIndexTypeSizeInBits(Address->getType()), 0);
    const Value *Local = Address->stripAndAccumulateConstantOffsets(
        Layout, Step, /*AllowNonInbounds=*/true);
    if (Depth == DepthMax)
      return "";
    if (const Value *Spilled = spilledAddress(*Local)) {
      ++Depth;
      std::string Found = variableIn(Spilled, Offset + Step.getSExtValue());
      --Depth;
      return Found;
    }
    if (!isa<AllocaInst>(Local))
      return "";
    ++Depth;
    SmallVector<std::string, 2> Stored;
    collectStored(*Local, Offset + Step.getSExtValue(), Stored);
    --Depth;
    if (Stored.empty() || is_contained(Stored, ""))
      return "";
    return Stored.front();
  }

private:
  static constexpr unsigned DepthMax = 16; // copies of copies, and cycles
  const DataLayout &Layout;
  unsigned Depth = 0;

  /// Returns the address that a load takes from a local written once, as
  /// parameters in unoptimised code are; else null.
  static const Value *spilledAddress(const Value &Loaded) {
    const auto *Load = dyn_cast<LoadInst>(&Loaded);
    const auto *Slot =
        Load ? dyn_cast<AllocaInst>(Load->getPointerOperand()) : nullptr;
    const Value *Only = nullptr;
    if (!Slot)
      return nullptr;
    for (const User *By : Slot->users())
      if (const auto *Store = dyn_cast<StoreInst>(By)) {
        if (Only)
          return nullptr;
        Only = Store->getValueOperand();
      }
    return Only;
  }

  void collectStored(const Value &At, int64_t Offset,
                     SmallVectorImpl<std::string> &Stored) {
    for (const Use &U : At.uses()) {
      const User *By = U.getUser();
      if (const auto *Gep = dyn_cast<GetElementPtrInst>(By)) {
        APInt Step(Layout.getIndexTypeSizeInBits(Gep->getType()), 0);
        if (Gep->accumulateConstantOffset(Layout, Step))
          collectStored(*Gep, Offset - Step.getSExtValue(), Stored);
      } else if (const auto *Store = dyn_cast<StoreInst>(By)) {
        if (U.getOperandNo() == 1)
          if (const Value *Part = partAt(*Store->getValueOperand(), Offset))
            Stored.push_back(variableBehind(Part));
      } else if (const auto *Copy = dyn_cast<MemTransferInst>(By)) {
        const auto *Length = dyn_cast<ConstantInt>(Copy->getLength());
        if (&U == &Copy->getRawDestUse() && Offset >= 0 &&
            (!Length || Offset < int64_t(Length->getZExtValue())))
          Stored.push_back(variableIn(Copy->getRawSource(), Offset));
      }
    }
  }

  /// Returns the pointer at a byte offset in a stored value; null if there is
  /// none.
  const Value *partAt(const Value &Stored, int64_t Offset) const {
    if (Stored.getType()->isPointerTy())
      return Offset == 0 ? &Stored : nullptr;
    const auto *Vector = dyn_cast<FixedVectorType>(Stored.getType());
    if (!Vector || !Vector->getElementType()->isPointerTy() || Offset < 0)
      return nullptr;
    uint64_t Lane = uint64_t(Offset) / sizeof(uint64_t);
    const Value *V = &Stored;
    while (const auto *Insert = dyn_cast<InsertElementInst>(V)) {
      const auto *Index = dyn_cast<ConstantInt>(Insert->getOperand(2));
      if (Index && Index->getZExtValue() == Lane)
        return Insert->getOperand(1);
      V = Insert->getOperand(0);
    }
    const auto *C = dyn_cast<Constant>(V);
    return C ? C->getAggregateElement(unsigned(Lane)) : nullptr;
  }
};

} // namespace

static std::string variableCaptured(const CallBase &Call,
                                    const PackedArgument &A) {
  const Value *Given = Call.getArgOperand(A.Index);
  const DataLayout &Layout = Call.getFunction()->getDataLayout();
  if (A.Kind == HF_ARG_POOL_POINTER)
    return Finder(Layout).variableBehind(Given);
  for (const PointerField &Field : A.Fields)
    if (Field.Followed && Given->getType()->isPointerTy())
      if (std::string Found =
              Finder(Layout).variableIn(Given, int64_t(Field.OffsetBytes));
          !Found.empty())
        return Found;
  return "";
}

/// Returns where the user wrote hf::tx, whose frames are inlined around the
/// call.
static DebugLoc userLine(const CallBase &Call) {
  const DILocation *Where = Call.getDebugLoc();
  while (Where && Where->getInlinedAt() &&
         Where->getFilename().ends_with("holdfast/tx.hpp"))
    Where = Where->getInlinedAt();
  return Where;
}

bool checkCaptures(const Function &Txfunc, const Function &Body,
                   const ArgumentBlock &Block) {
  if (!Txfunc.hasFnAttribute(ClosureAttr))
    return true;
  bool Clean = true;
  for (const User *By : Txfunc.users()) {
    const auto *Call = dyn_cast<CallBase>(By);
    if (!Call || Call->getCalledOperand() != &Txfunc ||
        Call->getFunction() == &Body)
      continue;
    for (const PackedArgument &A : Block.Arguments) {
      std::string Variable = variableCaptured(*Call, A);
      if (Variable.empty())
        continue;
      Clean = false;
      reportError(
          *Call->getFunction(),
          "closure of hf::tx captures the address of " + Variable +
              ", which a re-execution does not find: capture its value, "
              "or read it through hf::vlog_preserve",
          userLine(*Call));
      break;
    }
  }
  return Clean;
}

} // namespace holdfast
