// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "analysis/CallReasons.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Demangle/Demangle.h"

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

/// Whether HF_PURE may be right for it, as far as its name shows: not where it
/// takes a pointer or reference to what it may change.
static bool mayBePure(StringRef Demangled) {
  StringRef Parameters = Demangled.split('(').second;
  for (size_t At = Parameters.find_first_of("*&"); At != StringRef::npos;
       At = Parameters.find_first_of("*&", At + 1))
    if (!Parameters.take_front(At).ends_with("const"))
      return false;
  return true;
}

std::string whyHidden(StringRef Name) {
  std::string Pretty = "'" + demangle(Name) + "'";
  if (Name.contains("_Rb_tree_") || Name.contains("15_List_node_base"))
    return "call of " + Pretty +
           ", by which libstdc++'s containers change their nodes out of sight: "
           "include <holdfast/libstdcxx.hpp>, which has a body for it, build "
           "with -stdlib=libc++, whose containers are all in headers, or use a "
           "container of hf::structures";
  return "call of " + Pretty +
         ", whose body is not visible here: define it in a header, " +
         (mayBePure(Pretty) ? "mark it HF_PURE, " : "") +
         "or use link-time optimisation (-flto=full where a thin link does not "
         "show it)";
}

} // namespace holdfast
