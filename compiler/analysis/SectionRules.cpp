// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rules of a section, checked on its instances after unwinding has been
// removed:
//
// 1. A section calls nothing forbidden (Calls.cpp says what and why).
//    What is only forbidden because a section is re-executed, and cannot be taken
//    back, is allowed where sections can be taken back: exceptions, clocks,
//    indirect calls, globals (3), and preserving late (5). Memory outside of the
//    pool and volatile accesses are allowed where sections never run again.
// 2. It makes no atomic access and no fence between threads, and throws no exception
//    that a handler inside it would catch.
// 3. Of globals it uses constants only. Others are volatile: nobody restores or
//    records them.
// 4. Addresses of locals stay in locals: they mean nothing to another process;
//    nor do those of functions and constants, and numbers made of them
//    (VolatileAddresses.cpp). Where sections never run again this is a warning:
//    the commit can look what they keep (section/kept_pointers.hpp).
// 5. hf_vlog_preserve comes before the first store that may reach PM, also
//    across calls: the record must be complete before the section has changed
//    anything.
// 6. Where writes are buffered, a library function meets PM only if we know how
//    much it reads and writes (BufferedAccesses.cpp).
// 7. Sections that go on behind their last step may take and release locks, and
//    load and store words atomically (other threads may read while they store).
//    All that they do fits into a frame (ResumeRules.cpp).
// 8. How many bytes an access has is known here: SVE's vectors have a length that only
//    the processor knows.
#include "analysis/SectionRules.h"
#include "analysis/BufferedAccesses.h"
#include "analysis/CallReasons.h"
#include "analysis/Calls.h"
#include "analysis/Exceptions.h"
#include "analysis/Names.h"
#include "analysis/ResumeRules.h"
#include "analysis/VolatileAddresses.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Analysis/CFG.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace holdfast {

std::string prettyName(const Function &F) {
  std::string Name = demangle(F.getName().str());
  // A closure is known by its own type: "user(list*)::$_0".
  StringRef Closure = Name;
  if (Closure.consume_front("auto hf::detail::run<"))
    return Closure
        .take_front(Closure.find(">(void const*, hf::detail::recorded<"))
        .str();
  return Name;
}

void reportError(const Function &F, const Twine &Message, DebugLoc Where,
                 DiagnosticSeverity Severity) {
  // Without line tables the function's own location must do.
  F.getContext().diagnose(
      DiagnosticInfoUnsupported(F, Message, Where, Severity));
}

/// Returns whether the place is in a header that the user did not write: the
/// standard library's, the compiler's, Holdfast's.
static bool isLibraryHeader(const DILocation &At) {
  StringRef Name = At.getFilename();
  SmallString<128> Path;
  if (!sys::path::is_absolute(Name))
    Path = At.getDirectory();
  sys::path::append(Path, Name);
  StringRef Whole = Path;
  return Whole.starts_with("/usr/include/") || Whole.contains("/c++/") ||
         Whole.contains("/lib/clang/") || Whole.contains("/include/holdfast/");
}

/// Returns the innermost place around 'At' that the user wrote: where what was
/// inlined there is called, or null.
static const DILocation *inlinedIntoUsers(const DILocation *At) {
  while (At && isLibraryHeader(*At))
    At = At->getInlinedAt();
  return At;
}

DebugLoc usersLine(const SectionFunction &F, const DebugLoc &Where) {
  if (!Where)
    return Where;
  const DILocation *Found = inlinedIntoUsers(Where);
  for (const SectionFunction *In = &F; !Found && In->CalledIn;
       In = In->CalledIn)
    Found = inlinedIntoUsers(In->CalledAt);
  return Found ? DebugLoc(Found) : Where;
}

std::string placeInWords(const SectionFunction &F) {
  StringRef Options =
      F.ReachedFrom->getFnAttribute(TxfuncAttr).getValueAsString();
  std::string What = Options.contains("between-locks")
                         ? "function that takes locks of the pool '"
                     : isTxfunc(*F.ReachedFrom) ? "failure-atomic function '"
                                                : "function for sections '";
  if (F.Original == F.ReachedFrom)
    return "; in " + What + prettyName(*F.Original) + "'";
  return "; in '" + prettyName(*F.Original) + "', reached from " + What +
         prettyName(*F.ReachedFrom) + "'";
}

const char *whyUnfit(const Function &F) {
  const char *Why = nullptr;
  if (F.isVarArg())
    Why = "takes variable arguments, which cannot be recorded";
  else if (F.hasFnAttribute(Attribute::PresplitCoroutine))
    Why = "is a coroutine";
  for (const Argument &A : F.args())
    if (A.hasInAllocaAttr() || A.hasPreallocatedAttr() ||
        A.hasSwiftErrorAttr() || A.hasNestAttr())
      Why = "has a calling convention that is not supported";
  return Why;
}

bool checkSignature(const Function &F) {
  const char *Why = whyUnfit(F);
  if (Why)
    reportError(F, "failure-atomic function '" + prettyName(F) + "' " + Why,
                {});
  return !Why;
}

bool checkArguments(const Function &F, const ArgumentBlock &Block) {
  if (Block.Bytes <= HF_ARGS_BYTES_MAX)
    return true;
  reportError(F,
              "failure-atomic function '" + prettyName(F) + "' takes " +
                  Twine(Block.Bytes) +
                  " bytes of arguments, a section records at most " +
                  Twine(HF_ARGS_BYTES_MAX) +
                  ": pass a pointer into the pool, or use hf::vlog_preserve",
              {});
  return false;
}

namespace {

/// What a call of an instance does, for rule 5.
struct Effects {
  bool Stores = false;
  bool Preserves = false;
};

class Checker {
public:
  Checker(const Sections &All, bool Warns)
      : All(All), Warns(Warns), IsOnce(All.Options.Engine->TakesBack),
        RunsAgain(All.Options.Engine->runsAgain()),
        Resumes(All.Options.Engine->resumes()) {}

  bool run() {
    SmallVector<Function *, 16> Instances;
    for (const auto &F : All.Functions)
      Instances.push_back(F->Instance);
    findFreshFunctions(Instances, Fresh);
    findThrowers();
    summarize();
    failStringStreams();
    for (const auto &F : All.Functions) {
      Current = F.get();
      for (Instruction &I : instructions(*F->Instance))
        checkInstruction(I);
      if (RunsAgain)
        checkLocalsStayLocal();
      if (!IsOnce)
        checkPreserveOrder();
    }
    auto Fail = [&](SectionFunction &F, const Twine &Message,
                    const DebugLoc &Where) {
      Current = &F;
      fail(Message, Where);
    };
    auto Warn = [&](SectionFunction &F, const Twine &Message,
                    const DebugLoc &Where) {
      Current = &F;
      if (Warns && !F.Possible)
        report(Message +
                   ". A section that keeps it to its end is refused there with "
                   "open_options::expert.check_pointers",
               Where, DS_Warning);
    };
    if (RunsAgain)
      findVolatileAddresses(All, Fresh, Fail, Fail);
    else
      findVolatileAddresses(All, Fresh, Fail, Warn);
    if (All.Options.Engine->Logs == LoggedWrites::buffered)
      findUnbufferable(All, Fresh, Fail);
    if (Resumes)
      findUnresumable(All, Fail);
    for (const HandledCall &Call : All.Handled)
      if (!Call.Callee || Throwers.contains(Call.Callee)) {
        Current = Call.In;
        fail("exception handler in a section: what it catches is thrown inside "
             "the section, which "
             "can only go forward",
             Call.Where);
      }
    return Clean;
  }

private:
  const Sections &All;
  const bool Warns;
  /// Never re-executed, and can be taken back until the end.
  const bool IsOnce;
  const bool RunsAgain;
  /// Goes on where it was.
  const bool Resumes;
  SectionFunction *Current = nullptr;
  FreshFunctions Fresh;
  DenseMap<const Function *, Effects> Does;
  SmallPtrSet<const Function *, 4> Throwers;
  StringSet<> Reported; // a function may be there twice: as a section's own,
                        // and as a helper
  bool Clean = true;
  bool HasStringStream = false;

  /// One mistake, one error: whatever else a function does with its string stream
  /// follows from that.
  void failStringStreams() {
    for (const auto &F : All.Functions) {
      Current = F.get();
      for (Instruction &I : instructions(*F->Instance)) {
        StringRef Class = stringStreamIn(I);
        if (Class.empty())
          continue;
        fail(whyStringStream(Class), I.getDebugLoc());
        HasStringStream |= !F->Possible;
        break;
      }
    }
  }

  static StringRef stringStreamIn(const Instruction &I) {
    const auto *Call = dyn_cast<CallBase>(&I);
    const Function *Callee = Call ? calledFunction(*Call) : nullptr;
    return Callee && classifyCall(*Call).Kind == CallKind::Forbidden
               ? stringStreamOf(Callee->getName())
               : "";
  }

  bool followsFromStringStream(const CallBase &Call) const {
    const Function *Callee = calledFunction(Call);
    return HasStringStream && !Current->Possible && Callee &&
           isOfStreams(Callee->getName());
  }

  void fail(const Twine &Message, const DebugLoc &Where) {
    if (Current->Possible)
      return remember(Message, Where);
    Clean = false;
    report(Message, Where, DS_Error);
  }

  void report(const Twine &Message, const DebugLoc &Where,
              DiagnosticSeverity Severity) {
    std::string Text = (Message + placeInWords(*Current)).str();
    DebugLoc Users = usersLine(*Current, Where);
    if (Users != Where)
      Text +=
          (", at " + Where->getFilename() + ":" + Twine(Where.getLine())).str();
    std::string Key = Text;
    if (Users)
      Key += (":" + Twine(Users.getLine()) + ":" + Twine(Users.getCol())).str();
    if (Reported.insert(Key).second)
      reportError(*Current->Original, Text, Users, Severity);
  }

  /// No section may ever call it: the runtime says the first reason if one does.
  void remember(const Twine &Message, const DebugLoc &Where) {
    if (!Current->Unfit.empty())
      return;
    Current->Unfit = Message.str();
    if (DebugLoc Users = usersLine(*Current, Where))
      Current->Unfit +=
          (", at " + Users->getFilename() + ":" + Twine(Users.getLine())).str();
  }

  void checkInstruction(Instruction &I) {
    const DebugLoc &Where = I.getDebugLoc();
    if (RunsAgain && (I.isVolatile() || (isa<MemIntrinsic>(I) &&
                                         cast<MemIntrinsic>(I).isVolatile())))
      fail("volatile access", Where);
    if (auto *Fence = dyn_cast<FenceInst>(&I)) {
      if (Fence->getSyncScopeID() != SyncScope::SingleThread)
        fail("memory fence: take locks before calling the failure-atomic "
             "function",
             Where);
    } else if (I.isAtomic() && !(Resumes && isWordAccess(I))) {
      fail("atomic operation: take locks before calling the failure-atomic "
           "function",
           Where);
    }
    if (const Value *Address = getLoadStorePointerOperand(&I);
        Address && !IsOnce)
      if (Address->getType()->getPointerAddressSpace() != 0)
        fail(
            "access relative to a segment register: thread-local memory, which "
            "is neither a constant nor recorded",
            Where);
    if (isa<CallBrInst>(I))
      fail("assembly that jumps", Where);
    if (hasUnknownLength(I))
      fail("vector whose length only the processor knows (SVE): what is stored "
           "cannot be logged; compile the file with -mllvm "
           "-scalable-vectorization=off, and use no vectors of SVE in sections",
           Where);
    bool Unwinds = isa<LandingPadInst, ResumeInst, InvokeInst>(I);
    if ((I.isEHPad() || Unwinds) && !(IsOnce && Unwinds))
      fail("exception handling of a kind that is not supported", Where);
    auto *Call = dyn_cast<CallBase>(&I);
    if (Call) {
      CallMeaning Meaning = classifyCall(*Call);
      if (Meaning.Kind == CallKind::Forbidden ||
          (Meaning.Kind == CallKind::Unrepeatable && !IsOnce) ||
          (Meaning.Kind == CallKind::Indirect && !IsOnce) ||
          (Meaning.Kind == CallKind::Scratch && RunsAgain) ||
          (Meaning.Kind == CallKind::Locks && !Resumes))
        if (!followsFromStringStream(*Call))
          fail(Meaning.Why, Where);
      const EngineInfo &Engine = *All.Options.Engine;
      if (Meaning.Kind == CallKind::Elsewhere && !Engine.callsElsewhere())
        fail(whyElsewhere(*calledFunction(*Call), Engine), Where);
      checkAbort(*Call);
      if (IsOnce)
        checkThrown(*Call);
    }
    if (IsOnce || isOnlyReported(I))
      return; // a sanitizer's tables are mutable globals, but no input
    for (const Use &Operand : I.operands())
      if (const auto *C = dyn_cast<Constant>(Operand.get()))
        if (const GlobalValue *Global = findMutableGlobal(*C);
            Global && !isPreserved(I, Operand))
          failGlobal(I, *Global);
  }

  static bool hasUnknownLength(const Instruction &I) {
    auto IsScalable = [](const Value *V) {
      return V->getType()->isScalableTy();
    };
    return IsScalable(&I) || any_of(I.operand_values(), IsScalable);
  }

  /// An atomic load or store that is one step, or one point behind it.
  static bool isWordAccess(const Instruction &I) {
    const auto *Load = dyn_cast<LoadInst>(&I);
    const auto *Store = dyn_cast<StoreInst>(&I);
    if (!Load && !Store)
      return false;
    Type *T = Load ? Load->getType() : Store->getValueOperand()->getType();
    uint64_t Bytes = I.getDataLayout().getTypeStoreSize(T);
    return Bytes <= 8 &&
           (Load ? Load->getAlign() : Store->getAlign()).value() >= Bytes;
  }

  void checkAbort(const CallBase &Call) {
    const Function *Callee = calledFunction(Call);
    if (!IsOnce && Callee && Callee->getName() == AbortSection)
      fail("hf::abort_section in a section of engine " +
               All.Options.Engine->Name +
               ", which cannot take back what it has stored: build it for "
               "engine auto",
           Call.getDebugLoc());
  }

  /// A handler destroys the exception by code outside of sections.
  void checkThrown(const CallBase &Call) {
    const Function *Callee = calledFunction(Call);
    if (!Callee || Callee->getName() != "__cxa_throw")
      return;
    const auto *Destructor =
        dyn_cast<Function>(Call.getArgOperand(2)->stripPointerCasts());
    if (Destructor && !destroysOnlyItself(*Destructor))
      fail(
          "exception whose destructor may store to the pool, or is not visible "
          "here: it runs when the exception is caught, and the section cannot "
          "take that back; throw a type without one, or a standard exception",
          Call.getDebugLoc());
  }

  /// Calls of UBSan, and choices between their arguments, which it merges.
  static bool isOnlyReported(const Instruction &I) {
    SmallVector<const Value *> Left{&I};
    SmallPtrSet<const Value *, 8> Seen;
    while (!Left.empty()) {
      const Value *Next = Left.pop_back_val();
      if (!Seen.insert(Next).second)
        continue;
      if (const auto *Call = dyn_cast<CallBase>(Next)) {
        const Function *Callee = calledFunction(*Call);
        if (!Callee || !Callee->getName().starts_with("__ubsan_"))
          return false;
      } else if (isa<PHINode, SelectInst>(Next)) {
        Left.append(Next->user_begin(), Next->user_end());
      } else {
        return false;
      }
    }
    return true;
  }

  /// hf_vlog_preserve may record anything, also through a wrapper.
  static bool isPreserved(const Instruction &I, const Use &Operand) {
    const auto *Call = dyn_cast<CallBase>(&I);
    if (!Call || !Call->isArgOperand(&Operand))
      return false;
    unsigned Index = Call->getArgOperandNo(&Operand);
    switch (classifyCall(*Call).Kind) {
    case CallKind::Preserve:
      return Index == 0;
    case CallKind::Body:
      return Index < calledFunction(*Call)->arg_size() &&
             isOnlyPreserved(*calledFunction(*Call)->getArg(Index));
    default:
      return false;
    }
  }

  void failGlobal(const Instruction &I, const GlobalValue &Global) {
    std::string Name = "'" + demangle(Global.getName().str()) + "'";
    const auto *Variable = dyn_cast<GlobalVariable>(&Global);
    if (Variable && Variable->isConstant())
      return fail("constant " + Name +
                      " has its value elsewhere: it may be set when the "
                      "program starts, or be another in the next build; define "
                      "it in a header, pass its value as an argument, or use "
                      "hf::vlog_preserve",
                  I.getDebugLoc());
    std::string What = (Global.isThreadLocal() ? "thread-local variable "
                                               : "global variable ") +
                       Name;
    const auto *Store = dyn_cast<StoreInst>(&I);
    const auto *Address =
        Store ? dyn_cast<Constant>(Store->getPointerOperand()) : nullptr;
    if (Address && findMutableGlobal(*Address) == &Global)
      return fail("write to " + What +
                      ", which is volatile: recovery does not restore it",
                  I.getDebugLoc());
    fail("unpreserved volatile input: " + What +
             " is neither a constant nor recorded; pass its value as an "
             "argument or use "
             "hf::vlog_preserve",
         I.getDebugLoc());
  }

  void checkLocalsStayLocal() {
    DominatorTree Tree(*Current->Instance);
    LoopInfo Loops(Tree);
    for (Instruction &I : instructions(*Current->Instance)) {
      auto *Store = dyn_cast<StoreInst>(&I);
      if (!Store || !Store->getValueOperand()->getType()->isPointerTy() ||
          isa<Constant>(Store->getValueOperand()))
        continue;
      // A self-relative pointer in a local leads elsewhere.
      if (originOf(Store->getValueOperand(), Fresh, &Loops) == Origin::Local &&
          !mayStray(Store->getValueOperand(), 0, {Store, &Tree, &Loops}) &&
          originOf(Store->getPointerOperand(), Fresh, &Loops) != Origin::Local)
        fail("address of a local variable is stored to memory that may outlive "
             "it",
             I.getDebugLoc());
    }
  }

  void findThrowers() {
    Throwers = All.Throwers;
    for (bool Grew = true; Grew;) {
      Grew = false;
      for (const auto &F : All.Functions)
        for (Instruction &I : instructions(*F->Instance))
          if (auto *Call = dyn_cast<CallBase>(&I))
            if (Throwers.contains(calledFunction(*Call)))
              Grew |= Throwers.insert(F->Instance).second;
    }
  }

  Effects effectsOf(Instruction &I,
                    const SmallPtrSetImpl<Instruction *> &Stores) const {
    auto *Call = dyn_cast<CallBase>(&I);
    if (!Call)
      return {Stores.contains(&I), false};
    switch (classifyCall(*Call).Kind) {
    case CallKind::Preserve:
      return {false, true};
    case CallKind::Body:
      return Does.lookup(calledFunction(*Call));
    case CallKind::Logs:
    case CallKind::Elsewhere:
      return {true, false};
    default:
      return {Stores.contains(&I), false};
    }
  }

  SmallPtrSet<Instruction *, 16> storesOf(Function &F) const {
    DominatorTree Tree(F);
    LoopInfo Loops(Tree);
    SmallPtrSet<Instruction *, 16> Stores;
    for (const Write &W : collectAccesses(F, Fresh, Tree, Loops).Writes)
      Stores.insert(W.At);
    return Stores;
  }

  void summarize() {
    DenseMap<const Function *, SmallPtrSet<Instruction *, 16>> Stores;
    for (const auto &F : All.Functions)
      Stores[F->Instance] = storesOf(*F->Instance);
    for (bool Changed = true; Changed;) {
      Changed = false;
      for (const auto &F : All.Functions) {
        Effects Sum = Does.lookup(F->Instance), Before = Sum;
        for (Instruction &I : instructions(*F->Instance)) {
          Effects One = effectsOf(I, Stores[F->Instance]);
          Sum.Stores |= One.Stores;
          Sum.Preserves |= One.Preserves;
        }
        Does[F->Instance] = Sum;
        Changed |=
            Sum.Stores != Before.Stores || Sum.Preserves != Before.Preserves;
      }
    }
  }

  void checkPreserveOrder() {
    Function &F = *Current->Instance;
    if (!Does.lookup(&F).Preserves)
      return;
    SmallPtrSet<Instruction *, 16> Direct = storesOf(F);
    SmallVector<Instruction *, 8> Stores, Preserves;
    for (Instruction &I : instructions(F)) {
      Effects One = effectsOf(I, Direct);
      if (One.Stores)
        Stores.push_back(&I);
      if (One.Preserves)
        Preserves.push_back(&I);
    }
    for (Instruction *Preserve : Preserves) {
      SmallPtrSet<const BasicBlock *, 32> Before = blocksBefore(*Preserve);
      for (Instruction *Store : Stores)
        if (Store != Preserve && mayComeBefore(*Store, *Preserve, Before)) {
          fail("hf_vlog_preserve may come after a store to persistent memory: "
               "preserve first",
               Preserve->getDebugLoc());
          break;
        }
    }
  }

  /// All blocks from which the instruction's block can be reached. LLVM's own
  /// isPotentiallyReachable says yes to everything in functions of more than 32
  /// blocks.
  static SmallPtrSet<const BasicBlock *, 32>
  blocksBefore(const Instruction &I) {
    SmallPtrSet<const BasicBlock *, 32> Before;
    SmallVector<const BasicBlock *, 32> Left{I.getParent()};
    while (!Left.empty())
      for (const BasicBlock *Each : predecessors(Left.pop_back_val()))
        if (Before.insert(Each).second)
          Left.push_back(Each);
    return Before;
  }

  static bool
  mayComeBefore(const Instruction &One, const Instruction &Other,
                const SmallPtrSet<const BasicBlock *, 32> &BeforeOther) {
    return BeforeOther.contains(One.getParent()) ||
           (One.getParent() == Other.getParent() && One.comesBefore(&Other));
  }
};

} // namespace

bool checkSections(const Sections &All, bool Warns) {
  return Checker(All, Warns).run();
}

} // namespace holdfast
