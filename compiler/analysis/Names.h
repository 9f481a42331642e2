// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The words the plugin shares with source code and runtime: annotations, the
// attributes they become and the options of a section.
#ifndef HOLDFAST_COMPILER_NAMES_H
#define HOLDFAST_COMPILER_NAMES_H

#include "analysis/Engines.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Module.h"

namespace holdfast {

/// Annotations, and the function attributes of the same name. The value of
/// TxfuncAttr is the sections' options (below); hand-written IR may leave it
/// empty.
inline constexpr llvm::StringLiteral TxfuncAttr = "holdfast.txfunc";
inline constexpr llvm::StringLiteral PureAttr = "holdfast.pure";
/// Its value is as that of TxfuncAttr.
inline constexpr llvm::StringLiteral SectionAttr = "holdfast.section";
inline constexpr llvm::StringLiteral ClosureAttr = "holdfast.closure";
/// The mark HF_BY_VALUE of parameters.
inline constexpr llvm::StringLiteral ByValueAttr = "holdfast.by_value";

/// On a txfunc whose source lets exceptions leave it, whatever its body does.
inline constexpr llvm::StringLiteral MayThrowAttr = "holdfast.may-throw";

/// The function's name in log records, fixed before optimisation: link-time
/// optimisation makes functions local and renames them.
inline constexpr llvm::StringLiteral NameAttr = "holdfast.name";

/// The runtime's function that takes a section back.
inline constexpr llvm::StringLiteral AbortSection = "hf_abort_section";

/// The runtime's function that makes an entry of the log, whichever the engine.
inline constexpr llvm::StringLiteral LogAheadName = "hf_log_ahead";

/// The runtime's functions for stores that need no log, and for those that need
/// not be durable at the commit, either (holdfast/author/selective.hpp).
inline constexpr llvm::StringLiteral LogFreeName = "hf_log_free";
/// Says of a note that the log needs no entry for its bytes, or has one.
inline constexpr llvm::StringLiteral NoEntryName = "holdfast.no_entry";
inline constexpr llvm::StringLiteral LazyName = "hf_lazy";

/// Called where the program names a member that recovery finds again
/// (holdfast/author/derived.hpp). Nobody defines it (transform/LazyMembers.h).
inline constexpr llvm::StringLiteral DerivedMemberName = "hf_derived_member";

/// The runtime's function that takes what the C library overwrites.
inline constexpr llvm::StringLiteral LibraryOverwrite = "hf_c_overwrite";

/// Called by every txfunc of an object made for link-time optimisation until
/// the link has instrumented it. Nobody defines it: a link without the plugin
/// fails, and the linker's message says what was forgotten.
inline constexpr llvm::StringLiteral LinkGuard =
    "holdfast_error_link_with_load_pass_plugin";

/// What a txfunc calls between marking and instrumentation instead of its own
/// body (HideBodies.h). Nobody defines it either.
inline constexpr llvm::StringLiteral SectionGuard =
    "holdfast_error_section_was_not_instrumented";

/// Where HF_TXFUNC puts a function (holdfast/author/mark.h) that this plugin does not
/// take out again: pools refuse a program that has such a section.
inline constexpr llvm::StringLiteral UninstrumentedSection =
    "hf_uninstrumented";

/// Which halves of an engine that logs inputs are built in; the partial builds
/// exist to measure.
enum class LogParts { All, VLogOnly, ClobberLogOnly };

struct SectionOptions {
  /// Null: the functions stay as they are, for trace mode alone.
  const EngineInfo *Engine;
  LogParts Parts = LogParts::All;
  /// Whether unexposed and shadowed candidates are removed (Clobber Fig. 5).
  bool Refine = true;
  /// Whether log entries are made ahead of their writes (LogsAhead.h).
  bool Batch = true;
  /// Whether functions that take locks of the pool are sections without a mark
  /// (LockedFunctions.h); of a function: whether it is one, its sections being what
  /// lies between its locks.
  bool BetweenLocks = false;

  bool operator==(const SectionOptions &) const = default;
};

/// The options from the command line.
SectionOptions commandLineOptions();

inline bool isTxfunc(const llvm::Function &F) {
  return F.hasFnAttribute(TxfuncAttr);
}

/// Whether sections of other files may call it, by its version for sections.
inline bool isForSections(const llvm::Function &F) {
  return isTxfunc(F) || F.hasFnAttribute(SectionAttr);
}

/// Whether the module is compiled or linked so. Clang marks such modules before
/// their pipeline runs.
inline bool isForLinkTimeOptimisation(const llvm::Module &M) {
  return M.getModuleFlag("EnableSplitLTOUnit");
}

} // namespace holdfast

#endif
