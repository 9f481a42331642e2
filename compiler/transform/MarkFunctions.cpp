// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Marking:
//
// 1. Each entry of llvm.global.annotations that is ours becomes a string
//    attribute of its function.
// 2. A txfunc becomes noinline: inlined into its caller it would lose its
//    section.
// 3. Its attribute's value holds the engine and options of this compilation, so
//    that link-time instrumentation needs no options of its own. A second
//    attribute holds its name for the logs.
// 4. Where it can be taken back, its end may throw unless its source is noexcept.
// 5. Its body is hidden from its callers until it is instrumented.
// 6. A function for sections of other files gets the options alone.
// 7. Where that is asked for, functions that take locks of the pool are marked,
//    too, and their options say that nobody has marked them.
// 8. An object that the processor's rules pass by its address (ARM64: of more than
//    16 bytes) gets its type back, as 'byref', if it is a closure or marked
//    HF_BY_VALUE: to the optimiser the parameter stays a pointer, and the section's
//    instance takes a copy (CloneSections.cpp).
#include "transform/MarkFunctions.h"
#include "analysis/LockedFunctions.h"
#include "analysis/SectionRules.h"
#include "analysis/VersionHash.h"
#include "transform/HideBodies.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

#include <map>

using namespace llvm;

namespace holdfast {

static constexpr std::pair<StringLiteral, LogParts> PartWords[] = {
    {"vlog-only", LogParts::VLogOnly},
    {"clobberlog-only", LogParts::ClobberLogOnly}};
static constexpr StringLiteral UnrefinedWord = "unrefined";
static constexpr StringLiteral UnbatchedWord = "unbatched";
static constexpr StringLiteral BetweenLocksWord = "between-locks";

/// Returns the value of TxfuncAttr: the engine, then words of other options.
static std::string encode(const SectionOptions &Options) {
  std::string Text = Options.Engine->Name.str();
  for (auto [Word, Parts] : PartWords)
    if (Options.Parts == Parts)
      Text += ("," + Word).str();
  if (!Options.Refine)
    Text += ("," + UnrefinedWord).str();
  if (!Options.Batch)
    Text += ("," + UnbatchedWord).str();
  if (Options.BetweenLocks)
    Text += ("," + BetweenLocksWord).str();
  return Text;
}

static Expected<SectionOptions> decode(StringRef Text) {
  auto [Name, Words] = Text.split(',');
  Expected<const EngineInfo *> Engine = findEngine(Name);
  if (!Engine)
    return Engine.takeError();
  SectionOptions Options{*Engine};
  for (StringRef Word : split(Words, ',')) {
    const auto *Row =
        find_if(PartWords, [&](const auto &R) { return R.first == Word; });
    if (Row != std::end(PartWords))
      Options.Parts = Row->second;
    else if (Word == UnrefinedWord)
      Options.Refine = false;
    else if (Word == UnbatchedWord)
      Options.Batch = false;
    else if (Word == BetweenLocksWord)
      Options.BetweenLocks = true;
    else if (!Words.empty())
      return createStringError("unknown option '" + Word + "'");
  }
  return Options;
}

std::optional<SectionOptions> optionsOf(const Function &Txfunc) {
  StringRef Text =
      Txfunc.getFnAttribute(isTxfunc(Txfunc) ? TxfuncAttr : SectionAttr)
          .getValueAsString();
  if (Text.empty())
    return commandLineOptions();
  Expected<SectionOptions> Options = decode(Text);
  if (Options)
    return *Options;
  reportError(
      Txfunc,
      TxfuncAttr + "=\"" + Text + "\": " + toString(Options.takeError()), {});
  return std::nullopt;
}

static StringRef annotationText(const Value *Text) {
  const auto *Global = dyn_cast<GlobalVariable>(Text->stripPointerCasts());
  if (!Global || !Global->hasInitializer())
    return "";
  const auto *Data = dyn_cast<ConstantDataArray>(Global->getInitializer());
  return Data && Data->isCString() ? Data->getAsCString() : "";
}

/// Returns a symbol without the numbers that clang gives to lambdas ("4$_12"):
/// they count all those of the file, and shift when one is added above.
static std::string withoutLambdaNumbers(StringRef Symbol,
                                        SmallVectorImpl<unsigned> &Numbers) {
  std::string Text;
  for (size_t At; (At = Symbol.find("$_")) != StringRef::npos;) {
    Text += Symbol.take_front(At).rtrim("0123456789").str() + "$_";
    Symbol = Symbol.drop_front(At + 2);
    unsigned Number = 0;
    Symbol.consumeInteger(10, Number);
    Numbers.push_back(Number);
  }
  return Text + Symbol.str();
}

/// Names functions that belong to lambdas by their place among those that are
/// otherwise called the same: the lambdas of one function, in order.
static void nameLambdas(ArrayRef<Function *> Marked) {
  using Numbers = SmallVector<unsigned, 2>;
  std::map<std::string, SmallVector<std::pair<Numbers, Function *>, 2>> Alike;
  for (Function *F : Marked) {
    if (!F->hasLocalLinkage())
      continue;
    Numbers Of;
    std::string Name = withoutLambdaNumbers(recordName(*F), Of);
    if (!Of.empty())
      Alike[Name].push_back({Of, F});
  }
  for (auto &[Name, Functions] : Alike) {
    sort(Functions, [](const auto &L, const auto &R) {
      return std::lexicographical_compare(L.first.begin(), L.first.end(),
                                          R.first.begin(), R.first.end());
    });
    for (size_t I = 0; I != Functions.size(); ++I)
      Functions[I].second->addFnAttr(NameAttr, Name + ";" + std::to_string(I));
  }
}

/// Whether clang makes the function where it finds it, and not behind those that
/// are asked for.
static bool isMadeAtOnce(const Function &F) {
  return !F.hasLocalLinkage() && !F.isDiscardableIfUnused();
}

/// Whether 'Caller' was made when clang did not know yet what is in 'Txfunc': it
/// stands before it, which stands where it was first called; or is made sooner.
static bool isMadeBefore(const Function &Caller, const Function &Txfunc) {
  if (isMadeAtOnce(Caller) && !isMadeAtOnce(Txfunc))
    return true;
  for (const Function &F : *Txfunc.getParent())
    if (&F == &Caller || &F == &Txfunc)
      return &F == &Caller;
  return false;
}

/// Clang infers 'nounwind' for a function that calls nothing, and writes the same
/// attribute for noexcept. The calls in this file show the difference. But a call
/// that follows the function in its file has lost its handlers already: an
/// exception would skip them, and the caller's destructors.
static bool isCalledAsThrowing(const Function &Txfunc) {
  bool Any = false;
  for (const User *By : Txfunc.users()) {
    const auto *Call = dyn_cast<CallBase>(By);
    if (!Call || Call->getCalledOperand() != &Txfunc)
      continue;
    if (!isa<InvokeInst>(Call) &&
        (Call->getAttributes().hasFnAttr(Attribute::NoUnwind) ||
         !isMadeBefore(*Call->getFunction(), Txfunc)))
      return false;
    Any = true;
  }
  return Any;
}

/// The section's end may throw where the source lets it, whatever the body does.
static void letCommitThrow(Function &Txfunc) {
  if (!Txfunc.doesNotThrow() || !isCalledAsThrowing(Txfunc))
    return;
  Txfunc.removeFnAttr(Attribute::NoUnwind);
  for (Instruction &I : instructions(Txfunc))
    if (auto *Guard = dyn_cast<CallBase>(&I))
      Guard->removeFnAttr(Attribute::NoUnwind);
}

/// Removes the marks of parameters from the function. Returns what they mark: the
/// parameters that are passed by their address.
static SmallPtrSet<const Value *, 4> takeMarksOfParameters(Function &F) {
  SmallPtrSet<const Value *, 4> Marked;
  for (Instruction &I : make_early_inc_range(instructions(F))) {
    auto *Mark = dyn_cast<IntrinsicInst>(&I);
    if (!Mark || Mark->getIntrinsicID() != Intrinsic::var_annotation ||
        annotationText(Mark->getArgOperand(1)) != ByValueAttr)
      continue;
    Marked.insert(Mark->getArgOperand(0));
    Mark->eraseFromParent();
  }
  return Marked;
}

/// Gives the parameter that is passed by its address its type, which the callers
/// show: each has the object in a local.
static void typeParameter(Argument &A) {
  const Function &Txfunc = *A.getParent();
  Type *T = nullptr;
  Align Least;
  for (const User *By : Txfunc.users()) {
    const auto *Call = dyn_cast<CallBase>(By);
    if (!Call || Call->getCalledOperand() != &Txfunc)
      continue;
    const auto *Local = dyn_cast<AllocaInst>(
        Call->getArgOperand(A.getArgNo())->stripPointerCasts());
    if (!Local || (T && T != Local->getAllocatedType()))
      return;
    Least = T ? std::min(Least, Local->getAlign()) : Local->getAlign();
    T = Local->getAllocatedType();
  }
  if (!T)
    return;
  A.addAttr(Attribute::getWithByRefType(A.getContext(), T));
  A.addAttr(Attribute::getWithAlignment(A.getContext(), Least));
}

/// A closure's function has one other argument, a pool's first byte, which is no
/// local.
static void typeParameters(Function &Txfunc) {
  const auto Marked = takeMarksOfParameters(Txfunc);
  for (Argument &A : Txfunc.args())
    if (A.getType()->isPointerTy() && !A.getPointeeInMemoryValueType() &&
        (Txfunc.hasFnAttribute(ClosureAttr) || Marked.contains(&A)))
      typeParameter(A);
}

static void mark(Function &F, const SectionOptions &Options) {
  F.addFnAttr(NameAttr, recordName(F));
  F.addFnAttr(TxfuncAttr, encode(Options));
  F.removeFnAttr(Attribute::AlwaysInline);
  F.addFnAttr(Attribute::NoInline);
  if (F.getSection() == UninstrumentedSection)
    F.setSection("");
}

/// Returns the entries of the module's annotations.
static SmallVector<const ConstantStruct *, 8> annotationsOf(const Module &M) {
  SmallVector<const ConstantStruct *, 8> Found;
  const GlobalVariable *Annotations =
      M.getGlobalVariable("llvm.global.annotations");
  if (!Annotations || !Annotations->hasInitializer())
    return Found;
  if (const auto *Entries =
          dyn_cast<ConstantArray>(Annotations->getInitializer()))
    for (const Use &Entry : Entries->operands())
      Found.push_back(cast<ConstantStruct>(Entry.get()));
  return Found;
}

PreservedAnalyses MarkFunctionsPass::run(Module &M, ModuleAnalysisManager &) {
  if (!Options.Engine)
    return PreservedAnalyses::all();
  SectionOptions OfMarked = Options;
  OfMarked.BetweenLocks = false;
  bool Changed = false;
  SmallVector<Function *, 8> Marked;
  for (const ConstantStruct *Fields : annotationsOf(M)) {
    auto *F = dyn_cast<Function>(Fields->getOperand(0)->stripPointerCasts());
    StringRef Text = annotationText(Fields->getOperand(1));
    if (!F)
      continue;
    if (Text == TxfuncAttr && !isTxfunc(*F)) {
      mark(*F, OfMarked);
      Marked.push_back(F);
      Changed = true;
    } else if (Text == SectionAttr) {
      F->addFnAttr(SectionAttr, encode(OfMarked));
      Changed = true;
    } else if (Text == ClosureAttr) {
      F->addFnAttr(ClosureAttr);
      Changed = true;
    } else if (Text == PureAttr) {
      F->addFnAttr(PureAttr);
      F->addFnAttr(Attribute::NoInline);
      F->removeFnAttr(Attribute::AlwaysInline);
      Changed = true;
    }
  }
  if (Options.BetweenLocks && Options.Engine->resumes())
    for (Function *F : findLockedFunctions(M)) {
      mark(*F, Options);
      Marked.push_back(F);
      Changed = true;
    }
  nameLambdas(Marked);
  for (Function *F : Marked)
    typeParameters(*F);
  for (Function *F : Marked)
    if (hideBody(*F) && Options.Engine->TakesBack)
      letCommitThrow(*F);
  return Changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

} // namespace holdfast
