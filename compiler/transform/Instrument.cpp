// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass:
//
// 1. Collect the txfuncs this module defines, by their options.
// 2. Resolve indirect calls (ResolveCalls). Clone what their sections run
//    (CloneSections), check it (SectionRules), lay out arguments and hash
//    versions.
// 3. Decide about every write (ClobberWrites), or about every access where writes
//    are buffered (BufferedAccesses). Every decision falls before the first
//    insertion: they rest on attributes of callees, too.
// 4. Insert calls (InsertCalls, BufferAccesses), replace the txfuncs by entries
//    and register them (EmitEntry).
#include "transform/Instrument.h"
#include "analysis/Arguments.h"
#include "analysis/Captures.h"
#include "analysis/SectionRules.h"
#include "analysis/VersionHash.h"
#include "transform/BufferAccesses.h"
#include "transform/CloneSections.h"
#include "transform/EmitEntry.h"
#include "transform/HideBodies.h"
#include "transform/InsertCalls.h"
#include "transform/MarkFunctions.h"
#include "transform/ResolveCalls.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Statistic.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

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
  std::vector<Regions> Cut;
  for (const auto &F : All.Functions) {
    auto &Library = FAM.getResult<TargetLibraryAnalysis>(*F->Instance);
    Decisions.push_back(
        decideWrites(*F->Instance, F->As, All.Options, Fresh, Library));
    Cut.push_back(Engine.Logs == LoggedWrites::regions
                      ? cutIntoRegions(*F->Instance, Fresh, Library)
                      : Regions());
  }
  for (auto [F, Writes, Its] : zip(All.Functions, Decisions, Cut)) {
    insertCalls(*F->Instance, Writes, Its, Engine);
    dropMemoryPromises(*F->Instance);
  }
}

static void bufferWrites(const Sections &All, const FreshFunctions &Fresh) {
  std::vector<BufferedAccesses> Found = findBufferedAccesses(All, Fresh);
  for (auto [F, Its] : zip(All.Functions, Found)) {
    bufferAccesses(*F->Instance, Its, *All.Options.Engine);
    dropMemoryPromises(*F->Instance);
  }
}

static void instrument(ArrayRef<Function *> Txfuncs,
                       const SectionOptions &Options,
                       FunctionAnalysisManager &FAM,
                       SmallVectorImpl<GlobalVariable *> &Descriptors) {
  resolveCalls(Txfuncs);
  Sections All = cloneSections(Txfuncs, Options);
  bool Fit = checkSections(All);

  SmallVector<Function *, 16> Instances;
  for (const auto &F : All.Functions)
    Instances.push_back(F->Instance);
  FreshFunctions Fresh;
  findFreshFunctions(Instances, Fresh);

  std::vector<ArgumentBlock> Blocks;
  std::vector<uint64_t> Versions;
  for (size_t I = 0; I != Txfuncs.size(); ++I) {
    Blocks.push_back(layOutArguments(*Instances[I]));
    Fit &= checkArguments(*Txfuncs[I], Blocks[I]);
    // What is never re-executed may be given what dies with the process.
    if (Options.Engine->Logs != LoggedWrites::buffered)
      Fit &= checkCaptures(*Txfuncs[I], *Instances[I], Blocks[I]);
    Versions.push_back(hashVersion(*Instances[I], Blocks[I], Options));
  }

  if (!Fit)
    return; // the errors fail the compilation

  if (Options.Engine->Logs == LoggedWrites::buffered)
    bufferWrites(All, Fresh);
  else
    logWrites(All, Fresh, FAM);
  for (size_t I = 0; I != Txfuncs.size(); ++I) {
    dropMemoryPromises(*Txfuncs[I]);
    Descriptors.push_back(
        emitEntry(*Txfuncs[I], *Instances[I], Blocks[I], Versions[I], Options));
  }
}

PreservedAnalyses InstrumentPass::run(Module &M, ModuleAnalysisManager &MAM) {
  removeLinkGuard(M);
  revealBodies(M);
  SmallVector<std::pair<SectionOptions, SmallVector<Function *, 8>>, 1> Groups;
  for (Function &F : M) {
    // An available_externally body is another module's txfunc, shown for
    // optimisation only.
    if (!isTxfunc(F) || F.isDeclaration() || F.hasAvailableExternallyLinkage())
      continue;
    std::optional<SectionOptions> Options = optionsOf(F);
    if (!Options || !Options->Engine)
      continue;
    ++NumTxfuncs;
    if (!checkSignature(F))
      continue;
    auto *Group =
        find_if(Groups, [&](const auto &G) { return G.first == *Options; });
    if (Group == Groups.end())
      Group = &Groups.emplace_back(*Options, SmallVector<Function *, 8>());
    Group->second.push_back(&F);
  }
  if (Groups.empty())
    return PreservedAnalyses::all();

  auto &FAM = MAM.getResult<FunctionAnalysisManagerModuleProxy>(M).getManager();
  SmallVector<GlobalVariable *, 8> Descriptors;
  for (const auto &[Options, Txfuncs] : Groups)
    instrument(Txfuncs, Options, FAM, Descriptors);
  emitRegistration(M, Descriptors);
  return PreservedAnalyses::none();
}

/// Returns what a section will call, as arguments of its guard: the linker must
/// take the runtime from its archive before the passes run that insert the
/// calls.
static SmallVector<Value *, 8> runtimeOf(Module &M, const EngineInfo &Engine) {
  auto *AnyType = FunctionType::get(Type::getVoidTy(M.getContext()), false);
  SmallVector<std::string, 10> Names = {"hf_note_store", "hf_txfunc_register"};
  for (StringRef Step : {"begin", "commit"})
    Names.push_back(Engine.callee(Step));
  if (Engine.Logs == LoggedWrites::buffered) {
    Names.push_back(LibraryOverwrite.str());
    for (StringRef Step : {"write", "put", "copy", "fill", "read",
                           "read_string", "commit_or_throw", "abort"})
      Names.push_back(Engine.callee(Step));
  } else {
    Names.push_back(Engine.callee("log"));
  }
  SmallVector<Value *, 8> Functions;
  for (const std::string &Name : Names)
    Functions.push_back(M.getOrInsertFunction(Name, AnyType).getCallee());
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
