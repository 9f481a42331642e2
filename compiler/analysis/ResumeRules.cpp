// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A section that resumes is one function with one frame, and runs again from its
// last step on. Helpers that recurse or are large have frames of their own.
//
// 1. A function that it calls is inlined or has a frame: neither takes variable
//    arguments.
// 2. Its locals have places of a fixed size.
// 3. It calls no library function that changes what that function has read: run
//    again, the function would find its own results.
// 4. It adopts no block that was staged before: a step does not hold whether the
//    block has been adopted.
#include "analysis/ResumeRules.h"
#include "analysis/Calls.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace holdfast {

namespace {

class Finder {
public:
  Finder(const Sections &All, SectionReport Report)
      : All(All), Report(Report) {}

  void run() {
    for (const auto &F : All.Functions)
      for (const Instruction &I : instructions(*F->Instance))
        visit(*F, I);
  }

private:
  const Sections &All;
  SectionReport Report;

  void visit(SectionFunction &F, const Instruction &I) {
    auto Fail = [&](const Twine &What) { Report(F, What, I.getDebugLoc()); };
    if (const auto *Local = dyn_cast<AllocaInst>(&I);
        Local && !Local->isStaticAlloca())
      Fail(
          "local variable of a size that is not constant, or that is made more "
          "than once: it has no place in the section's frame");
    const auto *Call = dyn_cast<CallBase>(&I);
    if (!Call)
      return;
    switch (classifyCall(*Call).Kind) {
    case CallKind::Body:
      if (const Function *Callee = calledFunction(*Call); Callee->isVarArg())
        Fail("call of '" + prettyName(*originalOf(*Callee)) +
             "', which takes variable arguments: it cannot be put into a "
             "section of engine " +
             All.Options.Engine->Name);
      break;
    case CallKind::Logs:
      Fail("call of '" + nameOf(*Call) +
           "', which may change what it has read: a section of engine " +
           All.Options.Engine->Name + " could not go on in the midst of it");
      break;
    case CallKind::Writes:
      if (const RangeWriter *Shape = findRangeWriter(*Call);
          Shape && !isOneCopy(*Shape))
        Fail("call of '" + nameOf(*Call) + "', which a section of engine " +
             All.Options.Engine->Name + " could not go on in the midst of");
      break;
    case CallKind::NoAccess:
      if (const Function *Callee = calledFunction(*Call);
          Callee && Callee->getName() == "hf_adopt")
        Fail(
            "a staged block is adopted, which is not part of what a section of "
            "engine " +
            All.Options.Engine->Name + " logs: allocate in the section");
      break;
    default:
      break;
    }
  }

  const Function *originalOf(const Function &Instance) const {
    for (const auto &F : All.Functions)
      if (F->Instance == &Instance)
        return F->Original;
    return &Instance;
  }

  static std::string nameOf(const CallBase &Call) {
    return libraryNameOf(calledFunction(Call)->getName());
  }

  /// Whether it copies or fills, and does nothing else.
  static bool isOneCopy(const RangeWriter &Shape) {
    return Shape.FixedBytes == 0 && !Shape.Name.contains("strncpy");
  }
};

} // namespace

void findUnresumable(const Sections &All, SectionReport Report) {
  Finder(All, Report).run();
}

} // namespace holdfast
