// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// std::stable_sort, inplace_merge and stable_partition ask for a temporary
// buffer, and do without if they get none. A section that runs again takes no
// volatile memory, and in others such a buffer may be slower than none: so operator
// new(nothrow) in get_temporary_buffer returns null there, and nothing
// must be given back.
#include "transform/ReplaceLibraryCalls.h"
#include "analysis/Calls.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace holdfast {

/// Whether the call stands in a library function of that name, inlined or not.
static bool standsIn(const CallInst &Call, StringRef Name) {
  if (Call.getFunction()->getName().contains(Name))
    return true;
  const DILocation *At = Call.getDebugLoc();
  const DISubprogram *Program = At ? At->getScope()->getSubprogram() : nullptr;
  return Program && Program->getName().starts_with(Name);
}

static bool isBufferRequest(const CallInst &Call, StringRef Name) {
  return Name == "_ZnwmRKSt9nothrow_t" &&
         standsIn(Call, "get_temporary_buffer");
}

static bool isBufferReturn(const CallInst &Call, StringRef Name) {
  return (Name == "_ZdlPv" || Name == "_ZdlPvm") &&
         (standsIn(Call, "return_temporary_buffer") ||
          standsIn(Call, "__return_temporary_buffer"));
}

void replaceLibraryCalls(Function &Instance, const EngineInfo &Engine) {
  Module &M = *Instance.getParent();
  const bool EndsAtNew = !Engine.runsAgain() && !Engine.TakesBack;
  for (Instruction &I : make_early_inc_range(instructions(Instance))) {
    auto *Call = dyn_cast<CallInst>(&I);
    const Function *Callee = Call ? calledFunction(*Call) : nullptr;
    if (!Callee || !Callee->isDeclaration())
      continue;
    StringRef Name = Callee->getName();
    if (isBufferRequest(*Call, Name)) {
      Call->replaceAllUsesWith(ConstantPointerNull::get(
          PointerType::getUnqual(Instance.getContext())));
      Call->eraseFromParent();
    } else if (isBufferReturn(*Call, Name)) {
      Call->eraseFromParent();
    } else if (std::string Runtime = EndsAtNew && !quietNewOf(Name).empty()
                                         ? quietNewOf(Name).str()
                                         : runtimeVersionOf(Name);
               !Runtime.empty()) {
      // Without the attributes that promise what the library's does.
      FunctionCallee Ours =
          M.getOrInsertFunction(Runtime, Call->getFunctionType());
      Call->setCalledFunction(Call->getFunctionType(), Ours.getCallee());
      Call->removeFnAttr(Attribute::Memory);
    }
  }
}

} // namespace holdfast
