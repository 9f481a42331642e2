// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass:
//
// 1. Collect the txfuncs this module defines, by their options.
// 2. Resolve indirect calls (ResolveCalls). Clone what their sections run
//    (CloneSections), and what they may call by address, here or in another
//    module (DispatchCalls); check it (SectionRules), lay out arguments and hash
//    versions.
// 3. Decide about every write (ClobberWrites, LogsAhead), or about every access
//    where writes are buffered (BufferedAccesses). Every decision falls before the first
//    insertion: they rest on attributes of callees, too.
// 4. Insert calls (InsertCalls, BufferAccesses), replace the txfuncs by entries
//    and register them (EmitEntry).
// Where the pool's medium chooses between two engines, the sections have instances
// for each: steps 2 to 4 are made for both.
//
// For engines whose sections go on behind their last step, steps 3 and 4 inline the
// helpers (InlineHelpers), and give the sections their steps and their frame
// (MakeResumable).
#include "transform/Instrument.h"
#include "analysis/Arguments.h"
#include "analysis/Calls.h"
#include "analysis/Captures.h"
#include "analysis/PassedObjects.h"
#include "analysis/SectionRules.h"
#include "analysis/VersionHash.h"
#include "analysis/WriteRemarks.h"
#include "transform/BufferAccesses.h"
#include "transform/CloneSections.h"
#include "transform/ConstantAddresses.h"
#include "transform/DispatchCalls.h"
#include "transform/EmitEntry.h"
#include "transform/HideBodies.h"
#include "transform/InlineHelpers.h"
#include "transform/InsertCalls.h"
#include "transform/MakeResumable.h"
#include "transform/MarkFunctions.h"
#include "transform/RelocateAccesses.h"
#include "transform/ResolveCalls.h"
#include "transform/SectionVersions.h"
#include "transform/SplitCopies.h"
#include "transform/WordsInline.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Statistic.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

#include <deque>

#define DEBUG_TYPE "holdfast"

using namespace llvm;

STATISTIC(NumTxfuncs, "Failure-atomic functions");

namespace holdfast {

static void removeLinkGuard(Module &M) {
  Function *Guard = M.getFunction(LinkGuard);
  if (!Guard)
    return;
  for (User *Call : make_early_inc_range(Guard->users()))
    cast<CallInst>(Call)->eraseFromParent();
  Guard->eraseFromParent();
}

static void logWrites(const Sections &All, const FreshFunctions &Fresh,
                      FunctionAnalysisManager &FAM) {
  const EngineInfo &Engine = *All.Options.Engine;
  std::vector<SmallVector<LoggedWrite, 16>> Decisions;
  std::vector<SmallVector<LogAhead, 8>> Ahead;
  for (const auto &F : All.Functions) {
    auto &Library = FAM.getResult<TargetLibraryAnalysis>(*F->Instance);
    Decisions.push_back(
        decideWrites(*F->Instance, F->As, All.Options, Fresh, Library));
    // A section and its version for other sections have the same writes.
    if (F->As == Role::Entry || !isShared(*F->Original) ||
        !isTxfunc(*F->Original) || !Engine.callsElsewhere())
      remarkOnWrites(*F->Instance, Decisions.back(), Engine);
    Ahead.emplace_back();
    if (All.Options.Batch)
      Ahead.back() = planLogsAhead(*F->Instance, Decisions.back(), Library);
  }
  for (auto [F, Writes, Sooner] : zip(All.Functions, Decisions, Ahead)) {
    insertCalls(*F->Instance, Writes, Sooner, Engine);
    if (Engine.logsWords() && !isRelocatable(*F->Instance->getParent()))
      putWordsInLine(*F->Instance, Engine);
    dropMemoryPromises(*F->Instance);
  }
}

/// Removes calls that select stores for another engine.
static void dropSelections(const Sections &All) {
  for (const auto &F : All.Functions)
    for (Instruction &I : make_early_inc_range(instructions(*F->Instance)))
      if (auto *Call = dyn_cast<CallInst>(&I); Call && isSelection(*Call))
        Call->eraseFromParent();
}

/// Relocates what it changes, in a module that is built so: the pass that runs
/// last would see accesses of the buffer.
static void bufferWrites(const Sections &All, ArrayRef<Function *> Instances,
                         const FreshFunctions &Fresh,
                         FunctionAnalysisManager &FAM) {
  const bool Relocates =
      !Instances.empty() && isRelocatable(*Instances.front()->getParent());
  if (Relocates)
    returnByWayOfLocals(Instances);
  std::vector<BufferedAccesses> Found = findBufferedAccesses(All, Fresh);
  if (Relocates)
    relocateBuffered(Instances, FAM, *All.Options.Engine);
  for (auto [F, Its] : zip(All.Functions, Found)) {
    bufferAccesses(*F->Instance, Its, *All.Options.Engine);
    dropMemoryPromises(*F->Instance);
  }
}

/// The functions of a module with the same options.
struct Group {
  SectionOptions Options;
  SmallVector<Function *, 8> Txfuncs = {};
  SmallVector<Function *, 8> Shared = {};  ///< with sections of other files
  SmallVector<Function *, 8> Callees = {}; ///< which are called by address
};

/// Makes the instances for one engine. 'Fit' becomes false where they break a rule;
/// 'Warns': what may be wrong in them is reported.
static Sections makeInstances(const Group &Of, const EngineInfo &Engine,
                              bool Warns, bool &Fit) {
  SectionOptions Options = Of.Options;
  Options.Engine = &Engine;
  Sections All = cloneSections(Of.Txfuncs, Of.Shared, Of.Callees, Options);
  if (Options.Engine->Logs != LoggedWrites::selected)
    dropSelections(All);
  Fit &= checkSections(All, Warns);
  dropUnfit(All);
  return All;
}

/// Makes the instances do what their engine needs (not of those that resume).
static void rewriteInstances(const Sections &All,
                             FunctionAnalysisManager &FAM) {
  SmallVector<Function *, 16> Instances;
  for (const auto &F : All.Functions)
    Instances.push_back(F->Instance);
  FreshFunctions Fresh;
  findFreshFunctions(Instances, Fresh);
  const EngineInfo &Engine = *All.Options.Engine;
  if (Engine.Logs == LoggedWrites::buffered)
    bufferWrites(All, Instances, Fresh, FAM);
  else
    logWrites(All, Fresh, FAM);
  if (Engine.TakesBack)
    dispatchCalls(All);
}

/// A function that one form cannot call by address, no form calls: else a section
/// that runs in one mode of its pool would stop the process in another.
static void callWhatAllCan(std::deque<Sections> &Forms) {
  for (size_t I = 0; I != Forms.front().Callees.size(); ++I)
    for (Sections &All : Forms)
      if (const Callee &Unfit = All.Callees[I]; !Unfit.Instance)
        for (Sections &Other : Forms)
          Other.Callees[I] = Callee{Unfit};
}

static void instrument(Module &M, const Group &Of, FunctionAnalysisManager &FAM,
                       SmallVectorImpl<GlobalVariable *> &Descriptors) {
  const auto &[Options, Txfuncs, Shared, Callees] = Of;
  const bool TakesBack = Options.Engine->TakesBack;
  resolveCalls(Txfuncs, /*CanDispatch=*/TakesBack, FAM);
  bool Fit = true;
  std::deque<Sections> Forms; // which are not copied
  for (const EngineInfo *Engine : Options.Engine->forms())
    if (Fit) // else the next form has the same errors, and all have one's warnings
      Forms.push_back(makeInstances(Of, *Engine, /*Warns=*/Forms.empty(), Fit));
  Sections &First = Forms.front();

  std::vector<ArgumentBlock> Blocks;
  std::vector<uint64_t> Versions;
  for (size_t I = 0; I != Txfuncs.size(); ++I) {
    Function &Instance = *First.Functions[I]->Instance;
    Blocks.push_back(layOutArguments(Instance));
    Fit &= checkArguments(*Txfuncs[I], Blocks[I]);
    // Only a section that is re-executed needs its closure in the next process.
    if (!TakesBack)
      Fit &= checkCaptures(*Txfuncs[I], Instance, Blocks[I]) &&
             checkPassedObjects(*Txfuncs[I], Blocks[I]);
    Versions.push_back(hashVersion(Instance, Blocks[I], First.Options));
  }
  if (!Fit)
    return; // the errors fail the compilation

  if (Options.Engine->resumes()) {
    if (inlineHelpers(First, FAM))
      makeResumable(First, Blocks, FAM, Descriptors);
    return;
  }
  for (const Sections &All : Forms)
    rewriteInstances(All, FAM);
  for (size_t I = 0; I != Txfuncs.size(); ++I) {
    dropMemoryPromises(*Txfuncs[I]);
    SmallVector<SectionForm, 2> Its;
    for (const Sections &All : Forms)
      Its.push_back({All.Functions[I]->Instance, All.Options.Engine});
    Descriptors.push_back(
        emitEntry(*Txfuncs[I], Its, Blocks[I], Versions[I], Options));
  }
  callWhatAllCan(Forms);
  SmallVector<CallElsewhere, 8> Elsewhere;
  for (const Sections &All : Forms) {
    if (!All.Callees.empty())
      emitCallees(M, All.Callees, *All.Options.Engine);
    callElsewhere(All, *Options.Engine, Elsewhere);
    if (Options.Engine->callsElsewhere())
      shareVersions(All, *Options.Engine);
  }
  emitCallsElsewhere(M, Elsewhere, *Options.Engine);
}

static bool takesBack(const SectionOptions &Options) {
  return Options.Engine && Options.Engine->TakesBack;
}

static size_t formsThatTakeBack(const SectionOptions &Options) {
  return takesBack(Options) ? Options.Engine->forms().size() : 0;
}

/// Returns the runtime's function that does so with a descriptor.
static std::string registryOf(const EngineInfo &Engine, StringRef Does) {
  return Engine.resumes() ? Engine.callee(Does) : "hf_txfunc_" + Does.str();
}

PreservedAnalyses InstrumentPass::run(Module &M, ModuleAnalysisManager &MAM) {
  removeLinkGuard(M);
  revealBodies(M);
  SmallVector<Group, 1> Groups;
  for (Function &F : M) {
    // An available_externally body is another module's txfunc, shown for
    // optimisation only.
    if (!(isTxfunc(F) || isShared(F)) || F.isDeclaration() ||
        F.hasAvailableExternallyLinkage())
      continue;
    std::optional<SectionOptions> Options = optionsOf(F);
    if (!Options || !Options->Engine)
      continue;
    NumTxfuncs += isTxfunc(F);
    if (isTxfunc(F) && !checkSignature(F))
      continue;
    auto *Its =
        find_if(Groups, [&](const Group &G) { return G.Options == *Options; });
    if (Its == Groups.end())
      Its = &Groups.emplace_back(Group{*Options});
    if (isTxfunc(F))
      Its->Txfuncs.push_back(&F);
    if (!isShared(F))
      continue;
    shareEngine(F, *Options->Engine);
    if (Options->Engine->callsElsewhere())
      Its->Shared.push_back(&F);
  }
  // A function that another module's sections call by address may be here.
  if (SectionOptions Ours = commandLineOptions();
      Groups.empty() && takesBack(Ours))
    Groups.push_back(Group{Ours});
  // One group makes the instances of what is called by address, for the others as
  // well: so it is one with the most forms.
  auto *Most = std::ranges::max_element(
      Groups, {}, [](const Group &G) { return formsThatTakeBack(G.Options); });
  if (Most != Groups.end() && takesBack(Most->Options))
    Most->Callees = findCallees(M);
  erase_if(Groups, [](const Group &G) {
    return G.Txfuncs.empty() && G.Shared.empty() && G.Callees.empty();
  });
  if (Groups.empty())
    return PreservedAnalyses::all();

  auto &FAM = MAM.getResult<FunctionAnalysisManagerModuleProxy>(M).getManager();
  for (const Group &Its : Groups) {
    SmallVector<GlobalVariable *, 8> Descriptors;
    instrument(M, Its, FAM, Descriptors);
    const EngineInfo &Engine = *Its.Options.Engine;
    emitRegistration(M, registryOf(Engine, "register"),
                     registryOf(Engine, "forget"), Descriptors);
  }
  return PreservedAnalyses::none();
}

/// Adds what the instances for an engine call, and the end of their sections.
static void addRuntimeOf(const EngineInfo &Engine,
                         SmallVectorImpl<std::string> &Names) {
  auto Add = [&](std::initializer_list<StringRef> Steps) {
    for (StringRef Step : Steps)
      Names.push_back(Engine.callee(Step));
  };
  Add({"commit", "note"});
  if (Engine.Logs == LoggedWrites::buffered) {
    Names.push_back(LibraryOverwrite.str());
    Add({"write", "put", "copy", "fill", "read", "read_string"});
  } else {
    Add({"log"});
    Names.push_back(LogAheadName.str());
  }
  if (Engine.TakesBack)
    Add({"commit_or_throw", "abort", "callee"});
}

/// Returns what a section will call, as arguments of its guard: the linker must
/// take the runtime from its archive before the passes run that insert the
/// calls.
static SmallVector<Value *, 8> runtimeOf(Module &M, const EngineInfo &Engine) {
  auto *AnyType = FunctionType::get(Type::getVoidTy(M.getContext()), false);
  SmallVector<std::string, 12> Names = {registryOf(Engine, "register")};
  if (Engine.resumes()) {
    for (StringRef Step : {"enter", "leave", "note", "point", "store", "copy",
                           "fill", "alloc", "free", "lock", "unlock", "call"})
      Names.push_back(Engine.callee(Step));
  } else {
    Names.push_back(Engine.callee("begin"));
    for (const EngineInfo *Form : Engine.forms())
      addRuntimeOf(*Form, Names);
  }
  SmallVector<Value *, 8> Functions;
  for (const std::string &Name : Names)
    Functions.push_back(M.getOrInsertFunction(Name, AnyType).getCallee());
  if (Engine
          .resumes()) // which the linker defines where it is asked for by then
    Functions.push_back(&imageStart(M));
  return Functions;
}

PreservedAnalyses DeferToLinkPass::run(Module &M, ModuleAnalysisManager &) {
  FunctionCallee Guard = M.getOrInsertFunction(
      LinkGuard,
      FunctionType::get(Type::getVoidTy(M.getContext()), /*isVarArg=*/true));
  for (Function &F : M)
    if (isTxfunc(F) && !F.isDeclaration())
      if (auto Options = optionsOf(F); Options && Options->Engine)
        CallInst::Create(Guard, runtimeOf(M, *Options->Engine), "",
                         F.getEntryBlock().getFirstInsertionPt());
  return PreservedAnalyses::none();
}

} // namespace holdfast
