// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A function 'f' that is built for engine E has two symbols besides its own:
//
// 1. f.hf_in_E (of a choice f.hf_in_E.FORM, for each form): its instance for
//    sections, under a name that other files can call.
// 2. f.hf_version_for_sections: the name of E. A file whose sections call 'f'
//    needs it, whichever its own engine is. So the linker takes the other file
//    from its archive, or names 'f' where that has no version.
//
// Neither lies in the COMDAT group of 'f': other code of this file calls the
// instance, and a linker that discards the group would take it away. An alias of
// 'f' has both as well: clang makes one body of a constructor's two forms.
//
// A call refers to (1) weakly. If the engines differ it is null, and the runtime
// ends the process when the file is loaded; it names both.
#include "transform/SectionVersions.h"
#include "analysis/Calls.h"
#include "transform/DispatchCalls.h"
#include "transform/EmitEntry.h"
#include "transform/InsertCalls.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/GlobalAlias.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

namespace holdfast {

static constexpr StringLiteral EngineSuffix = ".hf_version_for_sections";

static bool isForOtherFiles(const GlobalValue &V) {
  return !V.isDeclaration() && !V.hasLocalLinkage() &&
         !V.isDiscardableIfUnused() && !V.isInterposable();
}

bool isShared(const Function &F) {
  return isForSections(F) && isForOtherFiles(F);
}

/// The names by which other files can call 'F'.
static SmallVector<const GlobalValue *, 2> namesOf(const Function &F) {
  SmallVector<const GlobalValue *, 2> Names{&F};
  for (const GlobalAlias &A : F.getParent()->aliases())
    if (A.getAliaseeObject() == &F && isForOtherFiles(A))
      Names.push_back(&A);
  return Names;
}

static std::string versionName(const GlobalValue &Named, const EngineInfo &Form,
                               const EngineInfo &Built) {
  std::string Name = (Named.getName() + ".hf_in_" + Built.Name).str();
  return Built.forms().size() == 1 ? Name : Name + "." + Form.Name.str();
}

/// Makes a symbol go where the other goes.
static void follow(GlobalValue &Symbol, const GlobalValue &Other) {
  Symbol.setVisibility(Other.getVisibility());
  Symbol.setDSOLocal(Other.isDSOLocal());
}

void shareEngine(Function &F, const EngineInfo &Built) {
  Constant *Text = ConstantDataArray::getString(F.getContext(), Built.Name);
  for (const GlobalValue *Its : namesOf(F))
    follow(*new GlobalVariable(*F.getParent(), Text->getType(), true,
                               Its->getLinkage(), Text,
                               Its->getName() + EngineSuffix),
           *Its);
}

void shareVersions(const Sections &All, const EngineInfo &Built) {
  for (const auto &F : All.Functions) {
    if (F->As != Role::Helper || !isShared(*F->Original))
      continue;
    for (const GlobalValue *Its : namesOf(*F->Original))
      follow(*GlobalAlias::create(
                 Its->getValueType(), Its->getAddressSpace(), Its->getLinkage(),
                 versionName(*Its, *All.Options.Engine, Built), F->Instance),
             *Its);
  }
}

static Function *declareVersion(Function &F, const EngineInfo &Form,
                                const EngineInfo &Built) {
  Module &M = *F.getParent();
  std::string Name = versionName(F, Form, Built);
  if (Function *Known = M.getFunction(Name))
    return Known;
  Function *Version =
      Function::Create(F.getFunctionType(), GlobalValue::ExternalWeakLinkage,
                       F.getAddressSpace(), Name, &M);
  Version->copyAttributesFrom(&F);
  Version->setDSOLocal(false);
  Version->removeFnAttr(TxfuncAttr);
  Version->removeFnAttr(NameAttr);
  Version->removeFnAttr(SectionAttr);
  dropPromises(*Version);
  return Version;
}

void callElsewhere(const Sections &All, const EngineInfo &Built,
                   SmallVectorImpl<CallElsewhere> &Calls) {
  for (const auto &F : All.Functions)
    for (Instruction &I : instructions(*F->Instance)) {
      auto *Call = dyn_cast<CallBase>(&I);
      if (!Call || classifyCall(*Call).Kind != CallKind::Elsewhere)
        continue;
      Function &Original = *calledFunction(*Call);
      Function *Version = declareVersion(Original, *All.Options.Engine, Built);
      Call->setCalledOperand(Version);
      if (none_of(Calls,
                  [&](const CallElsewhere &C) { return C.Version == Version; }))
        Calls.push_back({&Original, Version, placeOf(*F, *Call)});
    }
}

/// Where the other file is optimised by the link, and this one is not, the link
/// keeps what this one names, and only then makes the other's symbols.
static void name(Module &M, ArrayRef<CallElsewhere> Calls) {
  SmallVector<Constant *, 8> Functions;
  for (const CallElsewhere &C : Calls)
    Functions.push_back(C.Original);
  auto *T =
      ArrayType::get(PointerType::getUnqual(M.getContext()), Functions.size());
  appendToUsed(M, new GlobalVariable(M, T, true, GlobalValue::InternalLinkage,
                                     ConstantArray::get(T, Functions),
                                     "hf_functions_elsewhere"));
}

void emitCallsElsewhere(Module &M, ArrayRef<CallElsewhere> Calls,
                        const EngineInfo &Built) {
  if (Calls.empty())
    return;
  name(M, Calls);
  SmallVector<Constant *, 8> Rows;
  for (const CallElsewhere &C : Calls)
    Rows.push_back(ConstantStruct::getAnon( // struct hf_section_call
        {C.Version,
         M.getOrInsertGlobal((C.Original->getName() + EngineSuffix).str(),
                             Type::getInt8Ty(M.getContext())),
         emitText(M, C.Original->getName()), emitText(M, C.Where)}));
  auto *T = ArrayType::get(Rows.front()->getType(), Rows.size());
  auto *Table =
      new GlobalVariable(M, T, true, GlobalValue::InternalLinkage,
                         ConstantArray::get(T, Rows), "hf_calls_elsewhere");
  emitAtLoad(
      M, "hf_section_calls",
      {{emitText(M, Built.Name), Table,
        ConstantInt::get(Type::getInt64Ty(M.getContext()), Rows.size())}});
}

} // namespace holdfast
