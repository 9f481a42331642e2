// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Library functions and a section's write buffer:
//
// 1. A function that reads gets the place that holds the bytes. Their number is
//    computed first, because the search for the end of one string could take the
//    place of another. A pointer that the function returns into that place
//    becomes a pointer into the original.
// 2. strcat and the relatives of memcpy and strcpy become calls of the runtime
//    where they write what is buffered. Fortified ones still check the room.
// 3. A result that goes through a pointer goes by way of a local variable. The
//    same holds for the end of a number, which then points into the text as in
//    (1).
#include "transform/BufferLibraryCalls.h"
#include "analysis/BufferedCalls.h"
#include "analysis/Calls.h"
#include "transform/BufferBuilder.h"
#include "transform/SplitCopies.h"

#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace holdfast {

namespace {

class LibraryCallRewriter {
public:
  LibraryCallRewriter(CallInst &Call, const BufferedAccesses &Found,
                      const EngineInfo &Engine)
      : Call(Call), Found(Found), Engine(Engine), Builder(Engine, Call, Call) {}

  void run() {
    if (const BufferedCall *Shape = findBufferedCall(Call)) {
      if (Shape->Extents[0].What == ArgumentExtent::Append && writes(0))
        append();
      else
        rewriteBuffered(*Shape);
    } else if (const RangeWriter *Shape = findRangeWriter(Call))
      rewriteRangeWriter(*Shape);
  }

private:
  CallInst &Call;
  const BufferedAccesses &Found;
  const EngineInfo &Engine;
  BufferBuilder Builder;

  Value *argument(int A) const {
    return A < 0 ? nullptr : Call.getArgOperand(unsigned(A));
  }
  bool reads(int A) const {
    return A >= 0 && Found.Reads.contains(&Call.getArgOperandUse(A));
  }
  bool writes(int A) const {
    return A >= 0 && Found.Writes.contains(&Call.getArgOperandUse(A));
  }
  void replaceArgument(int A, Value *New) {
    Call.setArgOperand(unsigned(A), New);
    Call.setTailCallKind(CallInst::TCK_None);
  }

  void rewriteBuffered(const BufferedCall &Shape) {
    Value *Text = argument(Shape.Extents[0].Argument);
    Value *Bytes[2] = {nullptr, nullptr};
    bool Reads[2] = {false, false};
    for (unsigned I = 0; I != 2; ++I) {
      Reads[I] = reads(Shape.Extents[I].Argument);
      if (Reads[I])
        Bytes[I] = bytesOf(Shape.Extents[I]);
    }
    for (unsigned I = 0; I != 2; ++I) {
      int A = Shape.Extents[I].Argument;
      if (Shape.Extents[I].What == ArgumentExtent::Result && writes(A))
        resultThroughLocal(A, Shape.Extents[I].Width);
      if (Shape.Extents[I].What == ArgumentExtent::End &&
          (Reads[0] || writes(A)))
        endThroughLocal(A, Text);
      if (!Reads[I])
        continue;
      Value *Old = argument(A);
      Value *Place =
          Bytes[I] ? Builder.read(Old, Bytes[I]) : Builder.readString(Old);
      replaceArgument(A, Place);
      if (Shape.PointsInto == A)
        translateResult(Place, Old);
    }
  }

  /// strcat to what is buffered. All lengths are found out before it is stored.
  void append() {
    Value *To = argument(0), *From = argument(1);
    Value *Before = Builder.lengthOfString(Builder.readString(To));
    Value *Bytes =
        Builder.CreateAdd(Builder.lengthOfString(Builder.readString(From)),
                          Builder.word(uint64_t(1)));
    if (Call.arg_size() > 2)
      checkRoom(Builder.CreateAdd(Before, Bytes), argument(2));
    Builder.copy(Builder.CreatePtrAdd(To, Before), From, Bytes);
    Call.replaceAllUsesWith(To);
    Call.eraseFromParent();
  }

  /// Stores where a number ends in 'Text', whatever the function was given for
  /// that.
  void endThroughLocal(int A, Value *Text) {
    Value *To = argument(A), *Place = argument(0);
    if (isa<ConstantPointerNull>(To))
      return;
    BufferBuilder After(Engine, *Call.getNextNode(), Call);
    AllocaInst *Local = After.local(After.getPtrTy());
    replaceArgument(A, Local);
    Type *Word = After.getInt64Ty();
    Value *Offset = After.CreateSub(After.CreateLoad(Word, Local),
                                    After.CreatePtrToInt(Place, Word));
    Value *End = After.CreatePtrAdd(Text, Offset);
    After.enterIf(After.CreateIsNotNull(To), *After.GetInsertPoint());
    if (isRelocatable(*Call.getModule())) {
      Type *Pointer = After.getPtrTy();
      End = After.CreateCall(
          Call.getModule()->getOrInsertFunction("hf_relocated_store", Pointer,
                                                Pointer, Pointer, Pointer),
          {To, End,
           After.CreateGlobalString(Call.getCalledFunction()->getName())});
    }
    After.store(End, To, Align(alignof(char *)));
  }

  /// Returns null for strings.
  Value *bytesOf(const ArgumentExtent &Extent) {
    if (Extent.What == ArgumentExtent::String)
      return nullptr;
    Value *Bytes = Extent.Length < 0 ? Builder.word(UINT64_MAX)
                                     : Builder.word(argument(Extent.Length));
    if (Extent.What == ArgumentExtent::Until)
      return Builder.countUntil(
          argument(Extent.Argument),
          Extent.Stop < 0 ? Builder.getInt32(0) : argument(Extent.Stop), Bytes);
    return Bytes;
  }

  void translateResult(Value *Place, Value *Old) {
    SmallVector<Use *, 8> Uses;
    for (Use &U : Call.uses())
      Uses.push_back(&U);
    BufferBuilder After(Engine, *Call.getNextNode(), Call);
    Type *Word = After.getInt64Ty();
    Value *Offset = After.CreateSub(After.CreatePtrToInt(&Call, Word),
                                    After.CreatePtrToInt(Place, Word));
    Value *New = After.CreateSelect(After.CreateIsNull(&Call), &Call,
                                    After.CreatePtrAdd(Old, Offset));
    for (Use *U : Uses)
      U->set(New);
  }

  void resultThroughLocal(int A, unsigned Bytes) {
    BufferBuilder After(Engine, *Call.getNextNode(), Call);
    AllocaInst *Local =
        After.local(ArrayType::get(After.getInt8Ty(), Bytes), Align(16));
    After.put(argument(A), Local, After.word(uint64_t(Bytes)));
    replaceArgument(A, Local);
  }

  void rewriteRangeWriter(const RangeWriter &Shape) {
    if (Shape.FixedBytes) {
      if (reads(Shape.Source) || writes(Shape.Destination))
        updateThroughLocal(Shape);
    } else if (writes(Shape.Destination)) {
      Value *Result = writeBuffered(Shape);
      if (!Call.getType()->isVoidTy())
        Call.replaceAllUsesWith(Result);
      Call.eraseFromParent();
    } else if (reads(Shape.Source)) {
      Value *From = argument(Shape.Source);
      Value *Bytes = Shape.Length < 0 ? nullptr : bytesRead(Shape);
      replaceArgument(Shape.Source, Bytes ? Builder.read(From, Bytes)
                                          : Builder.readString(From));
    }
  }

  static bool stopsAtZero(const RangeWriter &Shape) {
    return Shape.Name == "strncpy" || Shape.Name == "__strncpy_chk";
  }
  static bool isChecked(const RangeWriter &Shape) {
    return Shape.Name.ends_with("_chk");
  }

  Value *bytesRead(const RangeWriter &Shape) {
    Value *Most = Builder.word(argument(Shape.Length));
    return stopsAtZero(Shape) ? Builder.countUntil(argument(Shape.Source),
                                                   Builder.getInt32(0), Most)
                              : Most;
  }

  /// Writes what the call writes, and returns what it returns.
  Value *writeBuffered(const RangeWriter &Shape) {
    Value *To = argument(Shape.Destination), *From = argument(Shape.Source);
    Value *Bytes = Shape.Length < 0
                       ? Builder.CreateAdd(
                             Builder.lengthOfString(Builder.readString(From)),
                             Builder.word(uint64_t(1)))
                       : Builder.word(argument(Shape.Length));
    if (isChecked(Shape))
      checkRoom(Bytes, argument(Call.arg_size() - 1));
    if (!From) {
      Value *Byte = Shape.Name == "bzero" ? Builder.getInt32(0) : argument(1);
      Builder.fill(To, Builder.CreateTrunc(Byte, Builder.getInt8Ty()), Bytes);
    } else if (stopsAtZero(Shape)) {
      Value *Copied = bytesRead(Shape);
      Builder.copy(To, From, Copied);
      Builder.fill(Builder.CreatePtrAdd(To, Copied), Builder.getInt32(0),
                   Builder.CreateSub(Bytes, Copied));
    } else {
      Builder.copy(To, From, Bytes);
    }
    if (Shape.Name == "mempcpy")
      return Builder.CreatePtrAdd(To, Bytes);
    if (Shape.Name == "stpcpy")
      return Builder.CreatePtrAdd(
          To, Builder.CreateSub(Bytes, Builder.word(uint64_t(1))));
    return To;
  }

  void checkRoom(Value *Bytes, Value *Room) {
    if (auto *Known = dyn_cast<ConstantInt>(Room); Known && Known->isMinusOne())
      return;
    Builder.enterIf(Builder.CreateICmpUGT(Bytes, Room), Call);
    CallInst *Fail = Builder.CreateCall(Call.getModule()->getOrInsertFunction(
        "__chk_fail", Builder.getVoidTy()));
    Fail->setDoesNotReturn();
    Fail->setDoesNotThrow();
    Builder.SetInsertPoint(&Call);
  }

  /// The function changes an object of known size.
  void updateThroughLocal(const RangeWriter &Shape) {
    Value *Old = argument(Shape.Destination);
    Value *Bytes = Builder.word(Shape.FixedBytes);
    AllocaInst *Local = Builder.local(
        ArrayType::get(Builder.getInt8Ty(), Shape.FixedBytes), Align(16));
    Builder.CreateMemCpy(Local, Local->getAlign(), Builder.read(Old, Bytes),
                         Align(1), Shape.FixedBytes);
    BufferBuilder After(Engine, *Call.getNextNode(), Call);
    After.put(Old, Local, Bytes);
    replaceArgument(Shape.Destination, Local);
  }
};

} // namespace

void bufferLibraryCall(CallInst &Call, const BufferedAccesses &Found,
                       const EngineInfo &Engine) {
  LibraryCallRewriter(Call, Found, Engine).run();
}

} // namespace holdfast
