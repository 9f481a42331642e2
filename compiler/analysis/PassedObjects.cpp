// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "analysis/PassedObjects.h"
#include "analysis/Names.h"
#include "analysis/SectionRules.h"

#include "llvm/Demangle/Demangle.h"

#include <cstdlib>

using namespace llvm;

namespace holdfast {

/// Returns the types of the function's parameters as the source names them, without
/// 'this'.
static SmallVector<std::string, 8> parametersInSource(const Function &F) {
  SmallVector<std::string, 8> Named;
  ItaniumPartialDemangler Demangler;
  const std::string Symbol = F.getName().str(); // which 'Demangler' points into
  if (Demangler.partialDemangle(Symbol.c_str()) || !Demangler.isFunction())
    return Named;
  char *Text = Demangler.getFunctionParameters(nullptr, nullptr);
  StringRef Rest = Text; // "(list*, pair<long, long>)"
  Rest.consume_front("(");
  Rest.consume_back(")");
  for (size_t I = 0, Start = 0, Depth = 0; I <= Rest.size() && !Rest.empty();
       ++I) {
    if (I == Rest.size() || (Rest[I] == ',' && Depth == 0)) {
      Named.push_back(Rest.slice(Start, I).trim().str());
      Start = I + 1;
    } else if (StringRef("(<[{").contains(Rest[I])) {
      ++Depth;
    } else if (StringRef(")>]}").contains(Rest[I])) {
      Depth -= Depth != 0;
    }
  }
  std::free(Text);
  return Named;
}

/// Returns the type of the pointer 'Index' among the parameters where the source
/// passes an object of it by value; else "". ARM64 passes objects of more than 16
/// bytes so. (On x86-64 an object that holds nothing but a pointer is passed like
/// that pointer.)
static std::string objectPassed(const Function &F, unsigned Index) {
  if (!isForArm64(F))
    return "";
  SmallVector<std::string, 8> Named = parametersInSource(F);
  unsigned Hidden = F.hasStructRetAttr();
  if (F.arg_size() == Named.size() + Hidden + 1)
    ++Hidden; // 'this'
  if (Index < Hidden || F.arg_size() != Named.size() + Hidden)
    return "";
  StringRef T = Named[Index - Hidden];
  return T.ends_with("*") || T.ends_with("&") || T.contains("(*") ||
                 T.contains("(&") || T.contains("nullptr")
             ? ""
             : T.str();
}

bool checkPassedObjects(const Function &F, const ArgumentBlock &Block) {
  for (const PackedArgument &A : Block.Arguments)
    if (std::string T =
            A.Kind == HF_ARG_POOL_POINTER ? objectPassed(F, A.Index) : "";
        !T.empty()) {
      reportError(
          F,
          "failure-atomic function '" + prettyName(F) + "' takes a '" + T +
              "' by value, which this processor passes by its address: "
              "the section's record would lack it. Mark the parameter "
              "HF_BY_VALUE if its type is trivially copyable and this "
              "file calls the function; or pass a pointer into the pool",
          {});
      return false;
    }
  return true;
}

} // namespace holdfast
