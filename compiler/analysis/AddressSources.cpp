// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "analysis/AddressSources.h"
#include "analysis/CallReasons.h"
#include "analysis/Calls.h"

#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/Instruction.h"

using namespace llvm;

namespace holdfast {

unsigned partsOf(const Type *T) {
  const auto *Struct = dyn_cast<StructType>(T);
  return Struct ? Struct->getNumElements() : 1;
}

Source join(const Source &A, const Source &B) {
  if (A.Is == Source::Neutral)
    return B;
  if (B.Is == Source::Neutral || A == B)
    return A;
  for (Source::Kind Either : {Source::Fixed, Source::Parameter, Source::Held})
    if (A.Is == Either || B.Is == Either)
      return A.Is == Either ? A : B;
  return {};
}

bool leavesAlignment(unsigned Opcode, const APInt &By) {
  constexpr uint64_t Least = 16;
  return (Opcode == Instruction::And && By.ult(Least)) ||
         (Opcode == Instruction::URem && By.ule(Least) && By.isPowerOf2());
}

Source ofConstant(const Constant *C) {
  if (const auto *Global = dyn_cast<GlobalValue>(C->stripPointerCasts()))
    return {Source::Fixed, 0, Global};
  if (isa<ConstantData>(C))
    return {Source::Neutral};
  const auto *Expression = dyn_cast<ConstantExpr>(C);
  if (!Expression)
    return {};
  // Differences, such as offsets in tables, are no addresses.
  if (Expression->getOpcode() == Instruction::GetElementPtr ||
      Expression->isCast())
    return ofConstant(Expression->getOperand(0));
  return {};
}

bool takesScratch(const CallBase &Call) {
  return Call.getType()->isPointerTy() &&
         classifyCall(Call).Kind == CallKind::Scratch;
}

// A function that is a source by what it returns, not by its own address.
bool isScratch(const Source &S) {
  return S.Is == Source::Fixed && S.Which && isa<Function>(S.Which) &&
         !whyVolatileMemory(S.Which->getName()).empty();
}

std::string nameOf(const Source &S) {
  if (S.Is == Source::Local)
    return "a local variable";
  std::string Name = demangle(S.Which->getName().str());
  if (Name == "__errno_location") // what it returns: ofCall
    return "errno";
  if (isScratch(S))
    return "memory outside of the pool, by '" +
           StringRef(Name).split('(').first.str() + "'";
  if (isa<Function>(S.Which))
    return "function '" + Name + "'";
  if (S.Which->isThreadLocal())
    return "thread-local variable '" + Name + "'";
  if (const auto *Variable = dyn_cast<GlobalVariable>(S.Which);
      Variable && !Variable->isConstant())
    return "global variable '" + Name + "'";
  return S.Which->hasPrivateLinkage() ? "a literal or constant"
                                      : "constant '" + Name + "'";
}

std::string whyStored(const Source &S) {
  StringRef Name = S.Which ? S.Which->getName() : "";
  if (Name.starts_with("_ZTV") || Name.starts_with("_ZTT") ||
      Name.starts_with("_ZTC"))
    return "address of a virtual table is stored to the pool: it is another in "
           "every process; keep alternatives in a std::variant";
  return "address of " + nameOf(S) +
         ", or a number made of it, is stored to the pool: it is another in "
         "every process; " +
         (isScratch(S) ? "use hf::make or hf_alloc, and in a container "
                         "hf::allocator"
                       : "store contents, or an index");
}

} // namespace holdfast
