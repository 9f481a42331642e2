// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "analysis/Engines.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>

// Another table makes another plugin: only this file reads it.
#ifndef HF_ENGINE_TABLE
#define HF_ENGINE_TABLE <holdfast/abi/engines.def>
#endif

using namespace llvm;

namespace holdfast {

static constexpr EngineInfo Table[] = {
#define HF_ENGINE_ROW(Name, Bit, Sections, Verb, Build, Logs)                  \
  {#Name, Bit, LoggedWrites::Sections},
#include HF_ENGINE_TABLE
#undef HF_ENGINE_ROW
};

static constexpr bool hasSections(const EngineInfo &Engine) {
  return Engine.Logs != LoggedWrites::none;
}

static_assert(std::any_of(std::begin(Table), std::end(Table), hasSections));

ArrayRef<EngineInfo> engines() { return Table; }

const EngineInfo *defaultEngine() { return find_if(Table, hasSections); }

std::string EngineInfo::callee(StringRef Step) const {
  const EngineInfo *Runtime = this;
  if (Logs == LoggedWrites::regions)
    Runtime = find_if(Table, [](const EngineInfo &E) {
      return E.Logs == LoggedWrites::steps;
    });
  return ("hf_" + Runtime->Name + "_" + Step).str();
}

/// Returns the names in words: "clobber, undo or ido".
static std::string namesOfEnginesWithSections() {
  SmallVector<StringRef, 8> Names;
  for (const EngineInfo &Engine : Table)
    if (hasSections(Engine))
      Names.push_back(Engine.Name);
  StringRef Last = Names.pop_back_val();
  return Names.empty() ? Last.str() : join(Names, ", ") + " or " + Last.str();
}

Expected<const EngineInfo *> findEngine(StringRef Name) {
  if (Name == NoEngine)
    return nullptr;
  const EngineInfo *Row =
      find_if(Table, [&](const EngineInfo &E) { return E.Name == Name; });
  if (Row == std::end(Table))
    return createStringError("unknown engine '" + Name + "': say none, " +
                             namesOfEnginesWithSections());
  if (!hasSections(*Row))
    return createStringError("engine '" + Name +
                             "' has no failure-atomic functions: say none, " +
                             namesOfEnginesWithSections());
  return Row;
}

} // namespace holdfast
