// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "analysis/CallReasons.h"
#include "analysis/Calls.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/IntrinsicsAArch64.h"
#include "llvm/IR/IntrinsicsX86.h"

using namespace llvm;

namespace holdfast {

std::string whyVolatileMemory(StringRef Name) {
  bool Takes =
      StringSwitch<bool>(Name)
          .Cases("malloc", "calloc", "realloc", "reallocarray", true)
          .Cases("aligned_alloc", "memalign", "valloc", true)
          .Case("posix_memalign", true)
          .Cases("strdup", "strndup", "__strdup", true)
          .Cases("hf_c_new", "hf_c_new_aligned", true)
          .Default(Name.starts_with("_Znw") || Name.starts_with("_Zna"));
  bool GivesBack =
      Name == "free" || Name.starts_with("_Zdl") || Name.starts_with("_Zda");
  std::string Demangled = demangle(Name);
  std::string Written = "'" + StringRef(Demangled).split('(').first.str() + "'";
  if (Takes)
    return "volatile allocation by " + Written +
           ": a crash takes that memory away, and not the pointers to it in "
           "the pool; use hf::make or hf_alloc, and in a container "
           "hf::allocator";
  if (GivesBack)
    return "volatile memory given back by " + Written +
           ", which is not taken back with the section: use hf::destroy or "
           "hf_free for blocks of the pool, and in a container hf::allocator";
  return "";
}

bool varies(StringRef Name) {
  static const StringSet<> Varying = {"time",
                                      "clock",
                                      "clock_gettime",
                                      "gettimeofday",
                                      "rand",
                                      "rand_r",
                                      "random",
                                      "lrand48",
                                      "drand48",
                                      "mrand48",
                                      "getrandom",
                                      "getentropy",
                                      "getpid",
                                      "gettid",
                                      "pthread_self",
                                      "getenv",
                                      "arc4random",
                                      "_ZNSt6chrono3_V212system_clock3nowEv",
                                      "_ZNSt6chrono3_V212steady_clock3nowEv",
                                      "_ZNSt3__16chrono12system_clock3nowEv",
                                      "_ZNSt3__16chrono12steady_clock3nowEv",
                                      "_ZNSt13random_device9_M_getvalEv"};
  return Varying.contains(Name);
}

/// Whether HF_PURE may be right for it, as far as its declaration shows: not where
/// it has no result, nor where it takes a pointer or reference to what it may
/// change. In C nobody sees what that is.
static bool mayBePure(const Function &F, StringRef Demangled) {
  if (F.getReturnType()->isVoidTy() && !F.hasStructRetAttr())
    return false;
  auto [Name, Parameters] = Demangled.split('(');
  if (Name == F.getName())
    return none_of(F.args(), [](const Argument &A) {
      return A.getType()->isPointerTy() && !A.hasByValAttr();
    });
  for (size_t At = Parameters.find_first_of("*&"); At != StringRef::npos;
       At = Parameters.find_first_of("*&", At + 1))
    if (!Parameters.take_front(At).ends_with("const"))
      return false;
  return true;
}

bool isFunctionHook(StringRef Name) {
  return Name.starts_with("__cyg_profile_func_");
}

bool isForHooks(const IntrinsicInst &Call) {
  return Call.getIntrinsicID() == Intrinsic::returnaddress &&
         all_of(Call.users(), [](const User *U) {
           const auto *By = dyn_cast<CallBase>(U);
           const Function *Callee = By ? calledFunction(*By) : nullptr;
           return Callee && isFunctionHook(Callee->getName());
         });
}

StringRef stringStreamOf(StringRef Name) {
  for (auto [Part, Class] :
       {std::pair{"basic_ostringstream", "std::ostringstream"},
        {"basic_istringstream", "std::istringstream"},
        {"basic_stringstream", "std::stringstream"},
        {"basic_stringbuf", "std::stringbuf"}})
    if (Name.contains(Part))
      return Class;
  return "";
}

bool isOfStreams(StringRef Name) {
  return !stringStreamOf(Name).empty() ||
         any_of(ArrayRef<StringRef>{"ios_base", "basic_ios", "basic_streambuf",
                                    "basic_ostream", "basic_istream", "locale",
                                    "16__ostream_insert"},
                [&](StringRef Part) { return Name.contains(Part); }) ||
         Name.starts_with("_ZNSo") || Name.starts_with("_ZNSi") ||
         Name.starts_with("_ZStls") || Name.starts_with("_ZStrs");
}

std::string whyStringStream(StringRef Class) {
  return (Class +
          ": the library formats by a locale, out of sight; append to a "
          "std::string (std::to_string, std::to_chars), or call snprintf "
          "on a local array")
      .str();
}

std::string whyHidden(const Function &F) {
  StringRef Name = F.getName();
  std::string Plain = demangle(Name), Pretty = "'" + Plain + "'";
  if (Name.contains("_Rb_tree_") || Name.contains("15_List_node_base"))
    return "call of " + Pretty +
           ", by which libstdc++'s containers change their nodes out of sight: "
           "include <holdfast/libstdcxx.hpp>, which has a body for it, build "
           "with -stdlib=libc++, whose containers are all in headers, or use a "
           "container of hf::structures";
  for (StringRef Durable : {"_ZN2hf3mod", "_ZNK2hf3mod", "hf_mod_",
                            "_ZN2hf5simpo", "_ZNK2hf5simpo", "hf_simpo_"})
    if (Name.starts_with(Durable))
      return "call of " + Pretty +
             ": durable containers and persistent objects are no part of a "
             "section, which would not take their changes back: use them "
             "before it or after it";
  return "call of " + Pretty +
         ", whose body is not visible here: define it in a header, mark its "
         "declaration HF_SECTION (engines auto, undo, redo, selective), " +
         (mayBePure(F, Plain) ? "mark it HF_PURE, " : "") +
         "or use link-time optimisation (-flto=full where a thin link does not "
         "show it)";
}

std::string whyMachineState(Intrinsic::ID Id) {
  switch (Id) {
  case Intrinsic::frameaddress:
  case Intrinsic::returnaddress:
  case Intrinsic::addressofreturnaddress:
  case Intrinsic::sponentry:
  case Intrinsic::localaddress:
  case Intrinsic::localescape:
  case Intrinsic::localrecover:
  case Intrinsic::thread_pointer:
  case Intrinsic::read_register:
  case Intrinsic::read_volatile_register:
  case Intrinsic::write_register:
    return "address of a frame, thread or caller, or a register: it means "
           "nothing to another process";
  case Intrinsic::get_rounding:
  case Intrinsic::set_rounding:
  case Intrinsic::get_fpenv:
  case Intrinsic::set_fpenv:
  case Intrinsic::reset_fpenv:
  case Intrinsic::get_fpmode:
  case Intrinsic::set_fpmode:
  case Intrinsic::reset_fpmode:
  case Intrinsic::x86_sse_ldmxcsr:
  case Intrinsic::x86_sse_stmxcsr:
  case Intrinsic::aarch64_get_fpcr:
  case Intrinsic::aarch64_set_fpcr:
    return "access of the floating-point environment: set it before the "
           "section, which keeps it to its end";
  default:
    return "";
  }
}

std::string whyElsewhere(const Function &F, const EngineInfo &Engine) {
  return "call of '" + demangle(F.getName()) +
         "', whose body is in another file: " +
         (Engine.resumes()
              ? "a section of engine " + Engine.Name +
                    " goes on where it was, with what it calls in its own frame"
              : "a section of engine " + Engine.Name +
                    " runs again after a crash, in the build that began it, "
                    "which is known by what this file shows")
             .str() +
         "; define it in a header, use link-time optimisation, or engine auto";
}

} // namespace holdfast
