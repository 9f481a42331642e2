// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of engines (holdfast/abi/engines.def), as far as the plugin needs
// it. What a pass does depends on a row's columns, never on which row it is.
#ifndef HOLDFAST_COMPILER_ENGINES_H
#define HOLDFAST_COMPILER_ENGINES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace holdfast {

/// Which of a section's writes an engine logs, in the table's own words.
enum class LoggedWrites {
  none,     ///< the engine has no sections
  inputs,   ///< those that may overwrite what the section has read
  writes,   ///< every one, but of fresh memory
  selected, ///< the same, but of what the program says needs none
  buffered, ///< none: they go to the section's write buffer, where reads look
  steps,    ///< none: every one is a step, behind which the section goes on
  regions,  ///< as steps, but one for writes that can be made again together
};

/// An engine, or a choice of two. A choice has the bits of both, and logs what its
/// form that buffers logs.
struct EngineInfo {
  llvm::StringRef Name;
  unsigned Bit; ///< in durable formats; 0: it has the runtime of another row
  LoggedWrites Logs;
  /// Whether exceptions and hf::abort_section may end a section as if it had
  /// never begun. Such a section does not run again after a crash.
  bool TakesBack;
  /// A choice has the forms of its functions for media that keep order, or
  /// sections whole, and for others; an engine has null.
  const EngineInfo *InOrder = nullptr;
  const EngineInfo *Elsewhere = nullptr;

  /// Returns what each function is compiled for: the engine itself, or both of a
  /// choice.
  llvm::SmallVector<const EngineInfo *, 2> forms() const {
    if (InOrder)
      return {Elsewhere, InOrder};
    return {this};
  }

  /// Whether what it logs are old words, in plain form where the medium keeps
  /// order (transform/WordsInline.h).
  bool logsWords() const {
    return Logs == LoggedWrites::inputs || Logs == LoggedWrites::writes ||
           Logs == LoggedWrites::selected;
  }
  /// Whether its sections run after a crash, from their start or behind a step.
  bool runsAgain() const { return Logs == LoggedWrites::inputs || resumes(); }
  /// Whether its sections go on where they were.
  bool resumes() const {
    return Logs == LoggedWrites::steps || Logs == LoggedWrites::regions;
  }
  /// Whether its sections may run what another file has made for them: nothing of
  /// a section runs in another process, where that file may be another.
  bool callsElsewhere() const {
    return Logs == LoggedWrites::writes || Logs == LoggedWrites::selected ||
           Logs == LoggedWrites::buffered;
  }
  /// Names the runtime's function for 'Step' of a section: hf_NAME_STEP, of the
  /// row whose runtime it is.
  std::string callee(llvm::StringRef Step) const;
};

/// The name that says that functions stay as they are.
inline constexpr llvm::StringLiteral NoEngine = "none";

/// All rows of the table, those without sections among them, then its choices.
llvm::ArrayRef<EngineInfo> engines();

/// Returns the engine of sections where no option says another: the table's
/// first that has sections.
const EngineInfo *defaultEngine();

/// Returns the engine of this name; null for NoEngine. Refuses an engine without
/// sections, and a name that the table does not have: the message names the
/// engines that functions can be instrumented for.
llvm::Expected<const EngineInfo *> findEngine(llvm::StringRef Name);

} // namespace holdfast

#endif
