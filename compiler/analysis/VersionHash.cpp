// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The hash serialises functions into a canonical stream of words:
//
// 1. The walk takes blocks in order of first reach and instructions in their
//    order; each gets a number when the walk meets it.
// 2. An instruction is its opcode, types, flags and operands; an operand is a
//    number or a constant in full.
// 3. A helper instance is the number under which it was first met; its body
//    follows later. Another function is its name. A constant global is its
//    contents, since the names of string literals depend on the rest of the
//    module.
// 4. Metadata, attributes and names of values and types do not enter. One kind
//    of attribute does, for functions with floating-point arithmetic: it says how
//    that becomes instructions. The same IR rounds otherwise on a target with
//    fused multiply-add.
#include "analysis/VersionHash.h"
#include "analysis/Calls.h"
#include "analysis/LLVMVersions.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/xxhash.h"

using namespace llvm;

namespace holdfast {

std::string recordName(const Function &F) {
  std::string Marked = F.getFnAttribute(NameAttr).getValueAsString().str();
  if (!Marked.empty()) {
    // A copy that interprocedural optimisation made for certain arguments is a
    // function by itself.
    StringRef Name = F.getName();
    return Marked + Name.substr(Name.find(".specialized.")).str();
  }
  if (!F.hasLocalLinkage())
    return F.getName().str();
  return (sys::path::filename(F.getParent()->getSourceFileName()) + ";" +
          F.getName())
      .str();
}

namespace {

class Serializer {
public:
  void add(uint64_t Word) { Words.push_back(Word); }
  void add(StringRef Text) {
    add(Text.size());
    add(xxh3_64bits(Text));
  }

  void addBody(const Function &Root) {
    numberOf(Root);
    for (size_t Next = 0; Next < Bodies.size(); ++Next) // addFunction appends
      addFunction(*Bodies[Next]);
  }

  uint64_t hash() const {
    return xxh3_64bits(ArrayRef(reinterpret_cast<const uint8_t *>(Words.data()),
                                Words.size() * sizeof(uint64_t)));
  }

private:
  std::vector<uint64_t> Words;
  std::vector<const Function *> Bodies;
  DenseMap<const Function *, uint64_t> FunctionNumbers;
  DenseMap<const GlobalVariable *, uint64_t> GlobalNumbers;
  DenseMap<const Value *, uint64_t> LocalNumbers;

  uint64_t numberOf(const Function &F) {
    auto [It, New] = FunctionNumbers.try_emplace(&F, Bodies.size());
    if (New)
      Bodies.push_back(&F);
    return It->second;
  }

  uint64_t numberOf(const Value &Local) {
    return LocalNumbers.try_emplace(&Local, LocalNumbers.size()).first->second;
  }

  void addType(const Type *T) {
    add(T->getTypeID());
    if (T->isIntegerTy())
      return add(T->getIntegerBitWidth());
    if (T->isPointerTy())
      return add(T->getPointerAddressSpace());
    if (const auto *Array = dyn_cast<ArrayType>(T))
      add(Array->getNumElements());
    else if (const auto *Vector = dyn_cast<FixedVectorType>(T))
      add(Vector->getNumElements());
    else if (const auto *Struct = dyn_cast<StructType>(T))
      add(Struct->isPacked());
    add(T->getNumContainedTypes());
    for (const Type *Inner : T->subtypes())
      addType(Inner);
  }

  void addBits(const APInt &Bits) {
    add(Bits.getBitWidth());
    for (unsigned I = 0; I != Bits.getNumWords(); ++I)
      add(Bits.getRawData()[I]);
  }

  void addConstant(const Constant *C) {
    add(C->getValueID());
    addType(C->getType());
    if (const auto *Int = dyn_cast<ConstantInt>(C))
      return addBits(Int->getValue());
    if (const auto *Float = dyn_cast<ConstantFP>(C))
      return addBits(Float->getValueAPF().bitcastToAPInt());
    if (const auto *Data = dyn_cast<ConstantDataSequential>(C))
      return add(Data->getRawDataValues());
    if (const auto *F = dyn_cast<Function>(C))
      return add(F->getName());
    if (const auto *Global = dyn_cast<GlobalVariable>(C))
      return addGlobal(*Global);
    if (const auto *Alias = dyn_cast<GlobalAlias>(C))
      return add(Alias->getName());
    if (isa<BlockAddress>(C))
      return;
    if (const auto *Expr = dyn_cast<ConstantExpr>(C)) {
      add(Expr->getOpcode());
      if (const auto *Gep = dyn_cast<GEPOperator>(Expr))
        addType(Gep->getSourceElementType());
    }
    add(C->getNumOperands());
    for (const Use &Operand : C->operands())
      addConstant(cast<Constant>(Operand.get()));
  }

  void addGlobal(const GlobalVariable &Global) {
    auto [It, New] = GlobalNumbers.try_emplace(&Global, GlobalNumbers.size());
    add(It->second);
    if (!New)
      return; // initialisers may refer to themselves
    if (!Global.hasLocalLinkage())
      add(Global.getName());
    if (Global.isConstant() && Global.hasInitializer())
      addConstant(Global.getInitializer());
  }

  void addOperand(const Value *V) {
    if (const auto *C = dyn_cast<Constant>(V))
      return addConstant(C);
    if (const auto *Asm = dyn_cast<InlineAsm>(V)) {
      add(Asm->getAsmString());
      return add(Asm->getConstraintString());
    }
    if (isa<MetadataAsValue>(V))
      return;
    add(numberOf(*V));
  }

  void addInstruction(const Instruction &I) {
    add(numberOf(I));
    add(I.getOpcode());
    addType(I.getType());
    add(I.getRawSubclassOptionalData()); // nuw, nsw, exact, inbounds, fast-math
    if (const auto *Compare = dyn_cast<CmpInst>(&I))
      add(Compare->getPredicate());
    else if (const auto *Gep = dyn_cast<GetElementPtrInst>(&I))
      addType(Gep->getSourceElementType());
    else if (const auto *Alloca = dyn_cast<AllocaInst>(&I))
      addType(Alloca->getAllocatedType());
    else if (const auto *Extract = dyn_cast<ExtractValueInst>(&I))
      for (unsigned Index : Extract->indices())
        add(Index);
    else if (const auto *Insert = dyn_cast<InsertValueInst>(&I))
      for (unsigned Index : Insert->indices())
        add(Index);
    else if (const auto *Shuffle = dyn_cast<ShuffleVectorInst>(&I))
      for (int Lane : Shuffle->getShuffleMask())
        add(Lane);
    else if (const auto *Phi = dyn_cast<PHINode>(&I))
      for (const BasicBlock *From : Phi->blocks())
        add(numberOf(*From));

    const auto *Call = dyn_cast<CallBase>(&I);
    add(I.getNumOperands());
    for (const Use &Operand : I.operands()) {
      const Function *Callee =
          Call && Call->isCallee(&Operand) ? calledFunction(*Call) : nullptr;
      if (Callee && !Callee->isDeclaration() && Callee->hasLocalLinkage())
        add(numberOf(*Callee));
      else
        addOperand(Operand.get());
    }
  }

  static bool isFloating(const Instruction &I) {
    auto Is = [](const Value *V) { return V->getType()->isFPOrFPVectorTy(); };
    return Is(&I) || any_of(I.operand_values(), Is);
  }

  void addFloatingPoint(const Function &F) {
    static constexpr StringLiteral Attributes[] = {
        "target-cpu",           "target-features",
        "denormal-fp-math",     "denormal-fp-math-f32",
        "reciprocal-estimates", "unsafe-fp-math",
        "approx-func-fp-math",  "no-infs-fp-math",
        "no-nans-fp-math",      "no-signed-zeros-fp-math",
        "use-soft-float"};
    add(targetTriple(*F.getParent()));
    for (StringRef Name : Attributes)
      add(F.getFnAttribute(Name).getValueAsString());
    add(F.hasFnAttribute(Attribute::StrictFP));
  }

  void addFunction(const Function &F) {
    LocalNumbers.clear();
    addType(F.getFunctionType());
    bool Floating = any_of(instructions(F), isFloating);
    add(Floating);
    if (Floating)
      addFloatingPoint(F);
    for (const Argument &A : F.args())
      numberOf(A);
    ReversePostOrderTraversal<const Function *> Order(&F);
    for (const BasicBlock *Block : Order) {
      add(numberOf(*Block));
      for (const Instruction &I : *Block)
        if (!isa<DbgInfoIntrinsic>(I) && !isa<LifetimeIntrinsic>(I))
          addInstruction(I);
    }
  }
};

} // namespace

uint64_t hashVersion(const Function &Body, const ArgumentBlock &Arguments,
                     const SectionOptions &Options) {
  assert(none_of(instructions(Body), [&](const Instruction &I) {
    const auto *Call = dyn_cast<CallBase>(&I);
    const Function *Callee = Call ? Call->getCalledFunction() : nullptr;
    return Callee && Callee->getName() == Options.Engine->callee("log");
  }));
  Serializer Stream;
  Stream.add(HF_ABI_VERSION);
  Stream.add(Options.Engine->Bit);
  Stream.add(uint64_t(Options.Parts));
  if (Options.BetweenLocks)
    Stream.add(1);
  Stream.add(Arguments.Bytes);
  for (const PackedArgument &A : Arguments.Arguments) {
    Stream.add(A.OffsetBytes);
    Stream.add(A.SizeBytes);
    Stream.add(A.Kind);
    for (const PointerField &Field : A.Fields)
      if (Field.Always)
        Stream.add(Field.OffsetBytes);
  }
  Stream.addBody(Body);
  return Stream.hash();
}

} // namespace holdfast
