// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Accesses through a section's write buffer:
//
// 1. A store asks where to store. One that is wider than the buffer's grains, or
//    may lie in two of them, puts its bytes there from a local variable.
// 2. A load asks where to read, directly before it: the answer holds until the
//    next store. A load of at most 16 bytes asks only if the filter says that the
//    buffer may hold some of them. The function loads the filter's address once.
//    What the IR says of an address (alignment, aliases, invariance) does not
//    hold for the place in the buffer.
// 3. Copies and fills become calls of the runtime. Where only the source may be
//    PM, they stay and read from the place that holds it.
// 4. An aggregate that a call copies for its callee is copied before the call.
//    One that a call returns in memory is copied to the buffer after it.
// 5. Stores to fresh memory stay. They are noted when everything is rewritten, so
//    no call of the runtime comes between a store and its note.
//
// Sections have no atomic and no volatile accesses (SectionRules.cpp), and
// masked ones were expanded (CloneSections.cpp).
#include "transform/BufferAccesses.h"
#include "analysis/Calls.h"
#include "analysis/Names.h"
#include "transform/BufferBuilder.h"
#include "transform/BufferLibraryCalls.h"
#include "transform/InsertCalls.h"

#include "llvm/ADT/Statistic.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

#define DEBUG_TYPE "holdfast"

using namespace llvm;

STATISTIC(NumLookedUp, "Loads that look into the write buffer");
STATISTIC(NumBuffered, "Stores to the write buffer");

namespace holdfast {

namespace {

class Rewriter {
public:
  Rewriter(const BufferedAccesses &Found, const EngineInfo &Engine)
      : Found(Found), Engine(Engine) {}

  void run(Instruction &I) {
    if (auto *Load = dyn_cast<LoadInst>(&I))
      rewriteLoad(*Load);
    else if (auto *Store = dyn_cast<StoreInst>(&I))
      rewriteStore(*Store);
    else if (auto *Memory = dyn_cast<MemIntrinsic>(&I))
      rewriteBytes(*Memory);
    else if (auto *Call = dyn_cast<CallBase>(&I);
             Call && !isa<IntrinsicInst>(I))
      rewriteCall(*Call);
  }

private:
  const BufferedAccesses &Found;
  const EngineInfo &Engine;
  Value *Filter = nullptr; ///< loaded by the function's first look

  void rewriteLoad(LoadInst &Load) {
    if (!Found.Reads.contains(
            &Load.getOperandUse(LoadInst::getPointerOperandIndex())))
      return;
    ++NumLookedUp;
    BufferBuilder Builder(Engine, Load, Load);
    uint64_t Bytes =
        Load.getDataLayout().getTypeStoreSize(Load.getType()).getFixedValue();
    Value *Address = Load.getPointerOperand();
    if (Bytes > BufferBuilder::ReadInLineMax) {
      Load.setOperand(0, Builder.read(Address, Builder.word(Bytes)));
    } else {
      if (!Filter)
        Filter = Builder.filter();
      Load.setOperand(0,
                      Builder.readInLine(Filter, Address, Builder.word(Bytes)));
    }
    Load.setAlignment(Align(1));
    Load.dropUnknownNonDebugMetadata();
  }

  void rewriteStore(StoreInst &Store) {
    if (!Found.Writes.contains(
            &Store.getOperandUse(StoreInst::getPointerOperandIndex())))
      return;
    ++NumBuffered;
    BufferBuilder Builder(Engine, Store, Store);
    Builder.store(Store.getValueOperand(), Store.getPointerOperand(),
                  Store.getAlign());
    Store.eraseFromParent();
  }

  void rewriteBytes(MemIntrinsic &Memory) {
    auto *Transfer = dyn_cast<MemTransferInst>(&Memory);
    Value *From = Transfer ? Transfer->getRawSource() : nullptr;
    Value *To = Memory.getRawDest();
    BufferBuilder Builder(Engine, Memory, Memory);
    if (!Found.Writes.contains(&Memory.getRawDestUse())) {
      if (Transfer && Found.Reads.contains(&Transfer->getRawSourceUse())) {
        ++NumLookedUp;
        Transfer->setSource(
            Builder.read(From, Builder.word(Memory.getLength())));
        Transfer->setSourceAlignment(Align(1));
        Memory.dropUnknownNonDebugMetadata();
      }
      return;
    }
    ++NumBuffered;
    Value *Bytes = Builder.word(Memory.getLength());
    if (!From)
      Builder.fill(To, cast<MemSetInst>(Memory).getValue(), Bytes);
    else if (isa<MemCpyInst>(Memory) && !mayBePM(From))
      Builder.put(To, From, Bytes);
    else
      Builder.copy(To, From, Bytes);
    Memory.eraseFromParent();
  }

  /// Only calls of instances, and of what throws or makes exceptions, can be left
  /// by one (CloneSections.cpp).
  void rewriteCall(CallBase &Call) {
    // A call that is given locals of this function is no tail call.
    for (unsigned A = 0; A != Call.arg_size(); ++A) {
      const Use &Address = Call.getArgOperandUse(A);
      if (Type *T = Call.getParamByValType(A)) {
        if (Found.Reads.contains(&Address))
          passCopy(Call, A, *T);
      } else if (Type *T = Call.getParamStructRetType(A)) {
        if (Found.Writes.contains(&Address))
          returnThroughLocal(cast<CallInst>(Call), A, *T);
      }
    }
    if (int Text = thrownText(Call);
        Text >= 0 && Found.Reads.contains(&Call.getArgOperandUse(Text))) {
      BufferBuilder Builder(Engine, Call, Call);
      Call.setArgOperand(Text, Builder.readString(Call.getArgOperand(Text)));
    }
    if (changesException(Call) && mayBePM(Call.getArgOperand(0)))
      expectVolatile(Call);
    if (auto *Plain = dyn_cast<CallInst>(&Call))
      bufferLibraryCall(*Plain, Found, Engine);
  }

  /// The library writes to its argument, not to the buffer: the runtime checks
  /// that no pool lies there.
  void expectVolatile(CallBase &Call) {
    BufferBuilder Builder(Engine, Call, Call);
    FunctionCallee Overwrite = Call.getModule()->getOrInsertFunction(
        LibraryOverwrite, Builder.getVoidTy(), Builder.getPtrTy(),
        Builder.getInt64Ty());
    Builder.CreateCall(Overwrite, {Call.getArgOperand(0), Builder.getInt64(1)})
        ->setDoesNotThrow();
  }

  static uint64_t bytesOf(const CallBase &Call, Type &T) {
    return Call.getDataLayout().getTypeStoreSize(&T).getFixedValue();
  }

  void passCopy(CallBase &Call, unsigned Argument, Type &T) {
    ++NumLookedUp;
    BufferBuilder Builder(Engine, Call, Call);
    AllocaInst *Copy = Builder.local(&T, Call.getParamAlign(Argument));
    uint64_t Bytes = bytesOf(Call, T);
    Builder.CreateMemCpy(
        Copy, Copy->getAlign(),
        Builder.read(Call.getArgOperand(Argument), Builder.word(Bytes)),
        Align(1), Bytes);
    Call.setArgOperand(Argument, Copy);
    if (auto *Plain = dyn_cast<CallInst>(&Call))
      Plain->setTailCallKind(CallInst::TCK_None);
  }

  void returnThroughLocal(CallInst &Call, unsigned Argument, Type &T) {
    ++NumBuffered;
    BufferBuilder Builder(Engine, *Call.getNextNode(), Call);
    AllocaInst *Result = Builder.local(&T, Call.getParamAlign(Argument));
    Builder.put(Call.getArgOperand(Argument), Result,
                Builder.word(bytesOf(Call, T)));
    Call.setArgOperand(Argument, Result);
    Call.setTailCallKind(CallInst::TCK_None);
  }
};

} // namespace

void bufferAccesses(Function &F, const BufferedAccesses &Found,
                    const EngineInfo &Engine) {
  keepAllocasInEntry(F);
  SmallVector<Instruction *, 64> All;
  for (Instruction &I : instructions(F))
    All.push_back(&I);
  Rewriter Rewrite(Found, Engine);
  for (Instruction *I : All)
    Rewrite.run(*I);
  insertCalls(F, Found.Notes, {}, Engine);
}

} // namespace holdfast
