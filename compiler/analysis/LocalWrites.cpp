// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "analysis/LocalWrites.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Operator.h"

#include <numeric>

using namespace llvm;

namespace holdfast {

static constexpr uint64_t WordBytes = 8;
static int64_t end(const Extent &E) { return E.Offset + int64_t(E.Length); }

/// Whether bytes that lie in one place are among 'Others'.
static bool isAmong(const Extent &One, const Extent &Others) {
  constexpr uint64_t Most = 4096;
  if (One.Length > Most)
    return true;
  for (int64_t At = One.Offset; At < end(One); At += WordBytes)
    if (Others.meetsWord(At))
      return true;
  return false;
}

/// Whether bytes that recur may meet, however often each does.
static bool mayRecurTogether(const Extent &One, const Extent &Other) {
  uint64_t Step = std::gcd(One.Stride, Other.Stride);
  for (const Extent *E : {&One, &Other})
    for (const Extent::Array &A : E->Arrays)
      Step = std::gcd(Step, A.Stride);
  if (Step == 0 || One.Length == 0 || Other.Length == 0)
    return true;
  const int64_t Every = int64_t(Step), Apart = One.Offset - Other.Offset;
  const uint64_t Behind = uint64_t((Apart % Every + Every) % Every);
  return Behind < Other.Length || Step - Behind < One.Length;
}

bool LocalWrite::mayMeet(const Extent &Read) const {
  if (Where.isOnePlace() && Read.isOnePlace())
    return Where.Offset < end(Read) && Read.Offset < end(Where);
  if (Where.isOnePlace())
    return isAmong(Where, Read);
  return Read.isOnePlace() ? isAmong(Read, Where)
                           : mayRecurTogether(Where, Read);
}

bool LocalWrite::covers(const LocalWrite &Other, const Extent &Read) const {
  if (isCall())
    return true;
  if (!Where.isOnePlace())
    return false;
  auto Holds = [&](const Extent &Part) {
    return Part.isOnePlace() && Where.Offset <= Part.Offset &&
           end(Part) <= end(Where);
  };
  return Holds(Other.Where) || Holds(Read);
}

namespace {

class Collector {
public:
  explicit Collector(SmallVectorImpl<LocalWrite> &Found) : Found(Found) {}

  /// 'At': what 'Address' is of the local.
  bool collect(const Value &Address, const Extent &At) {
    return all_of(Address.uses(), [&](const Use &U) { return visit(U, At); });
  }

private:
  SmallVectorImpl<LocalWrite> &Found;

  static Extent withLength(Extent At, uint64_t Bytes) {
    At.Length = Bytes;
    return At;
  }

  bool visit(const Use &U, const Extent &At) {
    const auto *By = cast<Instruction>(U.getUser());
    if (const auto *Gep = dyn_cast<GetElementPtrInst>(By)) {
      return !Gep->getType()->isVectorTy() && collect(*Gep, whereIn(Gep, 0));
    }
    if (const auto *Store = dyn_cast<StoreInst>(By)) {
      if (U.getOperandNo() == 0)
        return false;
      const Value *V = Store->getValueOperand();
      Found.push_back({By,
                       withLength(At, Store->getDataLayout()
                                          .getTypeStoreSize(V->getType())
                                          .getKnownMinValue()),
                       V});
      return true;
    }
    if (isa<LoadInst, LifetimeIntrinsic, DbgInfoIntrinsic, ICmpInst>(By))
      return true;
    const auto *Call = dyn_cast<CallBase>(By);
    return Call && Call->isArgOperand(&U) && visitCall(*Call, U, At);
  }

  bool visitCall(const CallBase &Call, const Use &U, const Extent &At) {
    if (const auto *Memory = dyn_cast<MemIntrinsic>(&Call)) {
      const auto *Copy = dyn_cast<MemTransferInst>(Memory);
      const auto *Bytes = dyn_cast<ConstantInt>(Memory->getLength());
      if (&U == &Memory->getRawDestUse())
        Found.push_back({&Call,
                         withLength(At, Bytes ? Bytes->getZExtValue() : 0),
                         nullptr, Copy ? Copy->getRawSource() : nullptr});
      return true;
    }
    unsigned A = Call.getArgOperandNo(&U);
    if (Call.isByValArgument(A) || Call.onlyReadsMemory(A))
      return true;
    Found.push_back({&Call, At, nullptr, nullptr, int(A)});
    return !isa<IntrinsicInst>(Call);
  }
};

} // namespace

bool collectWrites(const AllocaInst &Local,
                   SmallVectorImpl<LocalWrite> &Found) {
  return Collector(Found).collect(Local, {});
}

/// Whether control may come from 'From' to 'To' past none of 'Others'.
static bool reaches(const Instruction &From, const Instruction &To,
                    const SmallPtrSetImpl<const Instruction *> &Others) {
  SmallPtrSet<const BasicBlock *, 32> Entered;
  SmallVector<BasicBlock::const_iterator, 32> Left;
  if (!From.isTerminator())
    Left.push_back(std::next(From.getIterator()));
  else
    for (const BasicBlock *Next : successors(From.getParent()))
      Left.push_back(Next->begin());
  while (!Left.empty()) {
    BasicBlock::const_iterator I = Left.pop_back_val();
    const BasicBlock *Block = I->getParent();
    for (auto End = Block->end(); I != End && !Others.contains(&*I); ++I)
      if (&*I == &To)
        return true;
    if (I != Block->end())
      continue;
    for (const BasicBlock *Next : successors(Block))
      if (Entered.insert(Next).second)
        Left.push_back(Next->begin());
  }
  return false;
}

bool isFound(const LocalWrite &W, const Extent &Read, const Instruction &Reader,
             ArrayRef<LocalWrite> All) {
  SmallPtrSet<const Instruction *, 8> Others;
  for (const LocalWrite &Other : All)
    if (Other.At != W.At && Other.covers(W, Read))
      Others.insert(Other.At);
  return Others.empty() || reaches(*W.At, Reader, Others);
}

Extent partRead(const Extent &Written, const Extent &Read) {
  if (!Written.isOnePlace())
    return {0, 0, Written.Length};
  Extent From = Read;
  From.Offset -= Written.Offset;
  return From;
}

void forEachWord(const Extent &At, function_ref<void(const Extent &)> Visit) {
  constexpr uint64_t Most = 64 * WordBytes;
  if (!At.isOnePlace() || At.Length > Most)
    return Visit(At);
  for (uint64_t Done = 0; Done < At.Length; Done += WordBytes)
    Visit(
        {At.Offset + int64_t(Done), 0, std::min(WordBytes, At.Length - Done)});
}

} // namespace holdfast
