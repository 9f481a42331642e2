// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "analysis/Engines.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <deque>

// Another table makes another plugin: only this file reads it.
#ifndef HF_ENGINE_TABLE
#define HF_ENGINE_TABLE <holdfast/abi/engines.def>
#endif

using namespace llvm;

namespace holdfast {

static const EngineInfo &row(ArrayRef<EngineInfo> Rows, StringRef Name) {
  return *find_if(Rows, [&](const EngineInfo &E) { return E.Name == Name; });
}

/// The table, and the forms that its choices lead to.
struct TableOfEngines {
  SmallVector<EngineInfo, 12> All;
  std::deque<EngineInfo> Forms; // elements stay where they are

  void choose(StringRef Name, StringRef InOrder, StringRef Elsewhere) {
    EngineInfo &First = Forms.emplace_back(row(All, InOrder));
    // The whole of a section's old words are at hand where order is kept.
    First.TakesBack = true;
    const EngineInfo &Second = Forms.emplace_back(row(All, Elsewhere));
    All.push_back({Name, First.Bit | Second.Bit, Second.Logs, Second.TakesBack,
                   &First, &Second});
  }
};

static TableOfEngines readTable() {
  TableOfEngines Table;
#define HF_ENGINE_ROW(Name, Bit, Sections, Verb, Build, Logs)                  \
  Table.All.push_back({#Name, Bit, LoggedWrites::Sections,                     \
                       LoggedWrites::Sections == LoggedWrites::buffered});
#define HF_ENGINE_CHOICE(Name, InOrder, Elsewhere)                             \
  Table.choose(Name, #InOrder, #Elsewhere);
#include HF_ENGINE_TABLE
#undef HF_ENGINE_ROW
  return Table;
}

ArrayRef<EngineInfo> engines() {
  static const TableOfEngines Table = readTable();
  return Table.All;
}

static bool hasSections(const EngineInfo &Engine) {
  return Engine.Logs != LoggedWrites::none;
}

const EngineInfo *defaultEngine() { return find_if(engines(), hasSections); }

std::string EngineInfo::callee(StringRef Step) const {
  const EngineInfo *Runtime = this;
  if (Logs == LoggedWrites::regions)
    Runtime = find_if(engines(), [](const EngineInfo &E) {
      return E.Logs == LoggedWrites::steps;
    });
  return ("hf_" + Runtime->Name + "_" + Step).str();
}

/// Returns the names in words: "clobber, undo or ido".
static std::string namesOfEnginesWithSections() {
  SmallVector<StringRef, 8> Names;
  for (const EngineInfo &Engine : engines())
    if (hasSections(Engine))
      Names.push_back(Engine.Name);
  StringRef Last = Names.pop_back_val();
  return Names.empty() ? Last.str() : join(Names, ", ") + " or " + Last.str();
}

Expected<const EngineInfo *> findEngine(StringRef Name) {
  if (Name == NoEngine)
    return nullptr;
  const EngineInfo *Row =
      find_if(engines(), [&](const EngineInfo &E) { return E.Name == Name; });
  if (Row == engines().end())
    return createStringError("unknown engine '" + Name + "': say none, " +
                             namesOfEnginesWithSections());
  if (!hasSections(*Row))
    return createStringError("engine '" + Name +
                             "' has no failure-atomic functions: say none, " +
                             namesOfEnginesWithSections());
  return Row;
}

} // namespace holdfast
