// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Holdfast's plugin for clang: options and places in the pipeline.
//
//   clang++ -fplugin=libholdfast-plugin.so
//           -fpass-plugin=libholdfast-plugin.so
//           -mllvm -holdfast-engine=clobber
//
// -fpass-plugin adds the passes; -fplugin loads the library early enough for
// its options. Marking runs first and instrumentation last. Before the end
// callers are not inlined, and the analysis would see accesses that the machine
// never makes.
#include "transform/EmitEntry.h"
#include "transform/Instrument.h"
#include "transform/KeepBodies.h"
#include "transform/LazyMembers.h"
#include "transform/MarkFunctions.h"
#include "transform/RelocateAccesses.h"
#include "transform/SplitCopies.h"
#include "transform/TraceAccesses.h"

#include "llvm/Config/llvm-config.h"
#include "llvm/IR/DiagnosticHandler.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/PassPlugin.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <dlfcn.h>

using namespace llvm;
using namespace holdfast;

namespace {

/// Takes the engines' names from the table, and names them when it refuses one.
class EngineParser : public cl::parser<const EngineInfo *> {
public:
  using parser::parser;

  void initialize() { // called when the option has its name
    addLiteralOption(NoEngine, nullptr, "functions stay as they are");
    for (const EngineInfo &E : engines())
      if (E.Logs != LoggedWrites::none)
        addLiteralOption(E.Name, &E, "an engine of sections");
  }

  bool parse(cl::Option &O, StringRef, StringRef Name,
             const EngineInfo *&Chosen) {
    Expected<const EngineInfo *> Found = findEngine(Name);
    if (!Found)
      return O.error(toString(Found.takeError()));
    Chosen = *Found;
    return false;
  }
};

} // namespace

static cl::opt<const EngineInfo *, /*ExternalStorage=*/false, EngineParser>
    Engine("holdfast-engine", cl::desc("Engine of failure-atomic functions"),
           cl::init(defaultEngine()));
static cl::opt<LogParts> Parts(
    "holdfast-parts",
    cl::desc("Parts of clobber logging to build in (for measurements)"),
    cl::values(clEnumValN(LogParts::All, "all", "what failure atomicity needs"),
               clEnumValN(LogParts::VLogOnly, "vlog-only",
                          "no clobber_log: not failure-atomic"),
               clEnumValN(LogParts::ClobberLogOnly, "clobberlog-only",
                          "no v_log: not failure-atomic")),
    cl::init(LogParts::All));
static cl::opt<bool>
    Refine("holdfast-refine",
           cl::desc("Remove unexposed and shadowed clobber candidates"),
           cl::init(true));
static cl::opt<bool>
    Batch("holdfast-batch",
          cl::desc("Make log entries ahead of their writes, together"),
          cl::init(true));

static cl::opt<bool> BetweenLocks(
    "holdfast-between-locks",
    cl::desc("Sections without a mark, from the first lock to the last unlock"),
    cl::init(false));

static cl::opt<bool>
    Trace("holdfast-trace",
          cl::desc("Report accesses of persistent memory to the crash checker"),
          cl::init(false));

static cl::opt<bool>
    Relocatable("holdfast-relocatable",
                cl::desc("Translate pointers so that pools work at addresses "
                         "other than their own"),
                cl::init(false));

SectionOptions holdfast::commandLineOptions() {
  return {Engine, Parts, Refine, Batch, BetweenLocks};
}

namespace {

/// The part that needs clang's syntax tree (syntax/plugin.cpp): beside this
/// library, or empty.
SmallString<128> syntaxPath() {
  Dl_info Own;
  SmallString<128> Path;
  if (dladdr(reinterpret_cast<void *>(&syntaxPath), &Own) != 0) {
    Path = Own.dli_fname;
    sys::path::remove_filename(Path);
    sys::path::append(Path, "libholdfast-syntax.so");
  }
  return Path;
}

/// Where clang does not run (a linker, opt), nothing of it resolves, and it stays
/// away.
[[gnu::constructor]] void loadSyntax() {
  dlopen(syntaxPath().c_str(), RTLD_NOW | RTLD_LOCAL);
}

/// Says so where clang compiles without it: nothing else would.
struct WithoutSyntaxPass : PassInfoMixin<WithoutSyntaxPass> {
  PreservedAnalyses run(Module &M, ModuleAnalysisManager &) {
    if (SmallString<128> Path = syntaxPath(); !sys::fs::exists(Path))
      M.getContext().diagnose(DiagnosticInfoInlineAsm(
          /*LocCookie=*/0,
          Path +
              " is missing: neither the types that pools store nor promises of "
              "HF_PURE are checked. Install it beside the plugin",
          DS_Warning));
    return PreservedAnalyses::all();
  }
  static bool isRequired() { return true; }
};

/// In a module that was instrumented no further than for its link.
constexpr StringLiteral Deferred = "holdfast.deferred_to_link";

/// Nothing but a thin link simplifies such a module again.
struct AtThinLinkPass : PassInfoMixin<AtThinLinkPass> {
  PreservedAnalyses run(Module &M, ModuleAnalysisManager &MAM) {
    return M.getNamedMetadata(Deferred) ? KeepBodiesPass().run(M, MAM)
                                        : PreservedAnalyses::all();
  }
  static bool isRequired() { return true; }
};

/// OptimizerLast also runs in the compile step of link-time optimisation.
struct InstrumentOrDeferPass : PassInfoMixin<InstrumentOrDeferPass> {
  PreservedAnalyses run(Module &M, ModuleAnalysisManager &MAM) {
    if (isForLinkTimeOptimisation(M) && !M.getNamedMetadata(Deferred)) {
      M.getOrInsertNamedMetadata(Deferred);
      return DeferToLinkPass().run(M, MAM);
    }
    return InstrumentPass().run(M, MAM);
  }
  static bool isRequired() { return true; }
};

/// Refuses link-time optimisation: the link would have to translate what its
/// sections are made of. Refuses sections that resume: the pointers in their
/// frames would be those of the process that died.
struct RelocatePass : PassInfoMixin<RelocatePass> {
  PreservedAnalyses run(Module &M, ModuleAnalysisManager &MAM) {
    if (isForLinkTimeOptimisation(M)) {
      M.getContext().emitError("-holdfast-relocatable does not work with "
                               "link-time optimisation: compile with -fno-lto");
      return PreservedAnalyses::all();
    }
    if (Engine && Engine->resumes() &&
        any_of(ArrayRef<StringRef>{"begin", "enter"}, [&](StringRef Step) {
          return M.getFunction(Engine->callee(Step));
        })) {
      M.getContext().emitError("-holdfast-relocatable does not work with "
                               "sections of engine " +
                               Engine->Name +
                               ": build them for engine auto, redo, undo, "
                               "selective or clobber");
      return PreservedAnalyses::all();
    }
    return RelocateAccessesPass().run(M, MAM);
  }
  static bool isRequired() { return true; }
};

/// Leaves no code behind an error, which fails the compilation: a code generator
/// may crash on what a pass has begun and not finished.
struct StopAfterErrorPass : PassInfoMixin<StopAfterErrorPass> {
  PreservedAnalyses run(Module &M, ModuleAnalysisManager &) {
    const DiagnosticHandler *Handler = M.getContext().getDiagHandlerPtr();
    if (!Handler || !Handler->HasErrors)
      return PreservedAnalyses::all();
    for (Function &F : M) {
      if (F.isDeclaration())
        continue;
      emptyFunction(F);
      F.setSubprogram(nullptr);
      new UnreachableInst(M.getContext(),
                          BasicBlock::Create(M.getContext(), "", &F));
    }
    return PreservedAnalyses::none();
  }
  static bool isRequired() { return true; }
};

/// Refuses link-time optimisation: the link would have to trace. Its analysis
/// of sections would take what the compile step inserted for their own calls.
struct TracePass : PassInfoMixin<TracePass> {
  PreservedAnalyses run(Module &M, ModuleAnalysisManager &MAM) {
    if (isForLinkTimeOptimisation(M)) {
      M.getContext().emitError(
          "-holdfast-trace does not work with link-time optimisation: compile "
          "with -fno-lto");
      return PreservedAnalyses::all();
    }
    return TraceAccessesPass().run(M, MAM);
  }
  static bool isRequired() { return true; }
};

void registerPasses(PassBuilder &Builder) {
  Builder.registerPipelineStartEPCallback(
      [](ModulePassManager &Passes, OptimizationLevel) {
        if (Relocatable)
          Passes.addPass(SplitCopiesPass());
        else if (Engine && Engine->resumes())
          Passes.addPass(SplitWordCopiesPass());
        if (Engine)
          Passes.addPass(WithoutSyntaxPass());
        Passes.addPass(LazyMembersPass());
        Passes.addPass(MarkFunctionsPass(commandLineOptions()));
        if (Trace)
          Passes.addPass(KeepUntracedApartPass());
      });
  Builder.registerPipelineEarlySimplificationEPCallback(
      [](ModulePassManager &Passes, OptimizationLevel, auto &&...) {
        Passes.addPass(AtThinLinkPass());
      });
  Builder.registerOptimizerLastEPCallback(
      [](ModulePassManager &Passes, OptimizationLevel, auto &&...) {
        if (Engine)
          Passes.addPass(InstrumentOrDeferPass());
        if (Relocatable)
          Passes.addPass(RelocatePass());
        if (Trace)
          Passes.addPass(TracePass());
        Passes.addPass(StopAfterErrorPass());
      });
  Builder.registerFullLinkTimeOptimizationLastEPCallback(
      [](ModulePassManager &Passes, OptimizationLevel) {
        Passes.addPass(InstrumentPass());
        Passes.addPass(StopAfterErrorPass());
      });
  Builder.registerPipelineParsingCallback(
      [](StringRef Name, ModulePassManager &Passes,
         ArrayRef<PassBuilder::PipelineElement>) {
        if (Name == "holdfast-mark")
          Passes.addPass(MarkFunctionsPass(commandLineOptions()));
        else if (Name == "holdfast-lazy-members")
          Passes.addPass(LazyMembersPass());
        else if (Name == "holdfast-instrument")
          Passes.addPass(InstrumentPass());
        else if (Name == "holdfast-split-copies")
          Passes.addPass(SplitCopiesPass());
        else if (Name == "holdfast-relocate")
          Passes.addPass(RelocateAccessesPass());
        else if (Name == "holdfast-trace")
          Passes.addPass(TraceAccessesPass());
        else if (Name == "holdfast-defer")
          Passes.addPass(DeferToLinkPass());
        else
          return false;
        return true;
      });
}

} // namespace

extern "C" LLVM_ATTRIBUTE_VISIBILITY_DEFAULT PassPluginLibraryInfo
llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "holdfast", LLVM_VERSION_STRING,
          registerPasses};
}
