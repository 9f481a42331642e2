// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Classifies the calls of a section:
//
// 1. Inline assembly passes when it is empty and has no output but what went in
//    (a compiler barrier), else it is forbidden.
// 2. An indirect call may reach another function when it is re-executed. So only
//    sections that are never re-executed make it: they look up what it reaches.
// 3. The runtime's own functions, functions promised pure and a short list of C
//    and C++ library functions pass by name. Some library functions write where
//    we cannot log before them, or depend on the locale. Sections call the
//    runtime's own versions of these (RuntimeVersions).
// 4. A visible body is cloned and instrumented. A function that is marked for
//    sections and has its body in another file is called in the version that is
//    made there.
// 5. Exceptions, clocks and random numbers are for sections that are never
//    re-executed and can be taken back.
// 6. Memory outside of the pool is for sections that never run again: a crash
//    takes it away with all that knows of it.
// 7. Everything else is forbidden, with the most helpful reason we know.
#include "analysis/Calls.h"
#include "analysis/CallReasons.h"
#include "analysis/Names.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/GlobalAlias.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace holdfast {

static const RangeWriter RangeWriters[] = {
    {"memcpy", 0, 1, 2},
    {"memmove", 0, 1, 2},
    {"mempcpy", 0, 1, 2},
    {"memset", 0, -1, 2},
    {"bcopy", 1, 0, 2},
    {"bzero", 0, -1, 1},
    {"strcpy", 0, 1, -1},
    {"stpcpy", 0, 1, -1},
    {"strncpy", 0, 1, 2},
    {"__memcpy_chk", 0, 1, 2},
    {"__memmove_chk", 0, 1, 2},
    {"__memset_chk", 0, -1, 2},
    {"__strcpy_chk", 0, 1, -1},
    {"__strncpy_chk", 0, 1, 2},
    // libstdc++ keeps the next resize threshold in the hash table's policy
    // object, which these read and write; their result depends on nothing else.
    {"_ZNKSt8__detail20_Prime_rehash_policy11_M_next_bktEm", 0, 0, -1, 16},
    {"_ZNKSt8__detail20_Prime_rehash_policy14_M_need_rehashEmmm", 0, 0, -1, 16},
};

const RangeWriter *findRangeWriter(const CallBase &Call) {
  const Function *Callee = calledFunction(Call);
  if (!Callee || !Callee->isDeclaration())
    return nullptr;
  for (const RangeWriter &W : RangeWriters)
    if (Callee->getName() == W.Name)
      return &W;
  return nullptr;
}

namespace {

struct RuntimeVersion {
  StringRef Name; ///< the library's; the runtime's is "hf_c_" and Stem
  StringRef Stem;
  CallKind Kind;
  int Format = -1;   ///< which argument is a format of printf
  int Function = -1; ///< which argument is a function that is called back
};

} // namespace

/// The functions that the runtime has its own versions of (c_library.cpp).
static const std::vector<RuntimeVersion> &runtimeVersions() {
  static const std::vector<RuntimeVersion> Table = [] {
    std::vector<RuntimeVersion> T;
    // Character classes, conversions and comparisons: of the C locale.
    for (StringRef Name :
         {"isalnum", "isalpha", "isblank", "iscntrl", "isdigit", "isgraph",
          "islower", "isprint", "ispunct", "isspace", "isupper", "isxdigit",
          "tolower", "toupper"})
      T.push_back({Name, Name, CallKind::NoAccess});
    T.push_back({"__ctype_b_loc", "ctype_b_loc", CallKind::NoAccess});
    T.push_back(
        {"__ctype_tolower_loc", "ctype_tolower_loc", CallKind::NoAccess});
    T.push_back(
        {"__ctype_toupper_loc", "ctype_toupper_loc", CallKind::NoAccess});
    for (StringRef Name :
         {"strcasecmp", "strncasecmp", "atoi", "atol", "atoll", "atof"})
      T.push_back({Name, Name, CallKind::Reads});
    // They store where the number ends; newer C libraries rename four of them.
    for (StringRef Name : {"strtol", "strtoul", "strtoll", "strtoull", "strtof",
                           "strtod", "strtold"})
      T.push_back({Name, Name, CallKind::Logs});
    T.push_back({"__isoc23_strtol", "strtol", CallKind::Logs});
    T.push_back({"__isoc23_strtoul", "strtoul", CallKind::Logs});
    T.push_back({"__isoc23_strtoll", "strtoll", CallKind::Logs});
    T.push_back({"__isoc23_strtoull", "strtoull", CallKind::Logs});
    T.push_back({"snprintf", "snprintf", CallKind::Logs, 2});
    T.push_back({"sprintf", "sprintf", CallKind::Logs, 1});
    T.push_back({"__snprintf_chk", "snprintf_chk", CallKind::Logs, 4});
    T.push_back({"__sprintf_chk", "sprintf_chk", CallKind::Logs, 3});
    // How much they write shows when they have.
    for (StringRef Name : {"strcat", "strncat", "memccpy"})
      T.push_back({Name, Name, CallKind::Logs});
    T.push_back({"__strcat_chk", "strcat_chk", CallKind::Logs});
    T.push_back({"__strncat_chk", "strncat_chk", CallKind::Logs});
    T.push_back({"qsort", "qsort", CallKind::Logs, -1, 3});
    // Second results through pointers; lgamma's is a global variable.
    for (StringRef Name :
         {"frexp", "frexpf", "frexpl", "modf", "modff", "modfl", "remquo",
          "remquof", "remquol", "sincos", "sincosf", "sincosl"})
      T.push_back({Name, Name, CallKind::Logs});
    for (StringRef Name : {"lgamma", "lgammaf", "lgammal"})
      T.push_back({Name, Name, CallKind::NoAccess});
    // Floating point in <charconv>; libc++ has only one direction.
    static const struct {
      StringRef Name, Stem;
    } Numbers[] = {
#define HF_NUMBER(letter)                                                      \
  {"_ZSt8to_charsPcS_" letter, "to_chars_" letter},                            \
      {"_ZSt8to_charsPcS_" letter "St12chars_format", "to_chars_as_" letter},  \
      {"_ZSt8to_charsPcS_" letter "St12chars_formati",                         \
       "to_chars_digits_" letter},                                             \
      {"_ZSt10from_charsPKcS0_R" letter "St12chars_format",                    \
       "from_chars_" letter},                                                  \
      {"_ZNSt3__18to_charsEPcS0_" letter, "to_chars_" letter},                 \
      {"_ZNSt3__18to_charsEPcS0_" letter "NS_12chars_formatE",                 \
       "to_chars_as_" letter},                                                 \
  {                                                                            \
    "_ZNSt3__18to_charsEPcS0_" letter "NS_12chars_formatEi",                   \
        "to_chars_digits_" letter                                              \
  }
        HF_NUMBER("f"), HF_NUMBER("d"), HF_NUMBER("e")};
#undef HF_NUMBER
    for (const auto &N : Numbers)
      T.push_back({N.Name, N.Stem, CallKind::Logs});
    for (StringRef Name : {"wcscpy", "wcsncpy", "wcscat", "wcsncat"})
      T.push_back({Name, Name, CallKind::Logs});
    return T;
  }();
  return Table;
}

std::string runtimeVersionOf(StringRef Name) {
  for (const RuntimeVersion &V : runtimeVersions())
    if (V.Name == Name)
      return ("hf_c_" + V.Stem).str();
  return "";
}

StringRef quietNewOf(StringRef Name) {
  return StringSwitch<StringRef>(Name)
      .Cases("_Znwm", "_Znam", "hf_c_new")
      .Cases("_ZnwmSt11align_val_t", "_ZnamSt11align_val_t", "hf_c_new_aligned")
      .Default("");
}

static const RuntimeVersion *findRuntimeVersion(StringRef Name) {
  if (!Name.consume_front("hf_c_"))
    return nullptr;
  for (const RuntimeVersion &V : runtimeVersions())
    if (V.Stem == Name)
      return &V;
  return nullptr;
}

std::string libraryNameOf(StringRef Name) {
  if (const RuntimeVersion *V = findRuntimeVersion(Name))
    Name = V->Name;
  std::string Demangled = demangle(Name);
  return StringRef(Demangled).split('(').first.str();
}

int calledBack(const CallBase &Call) {
  const Function *Callee = calledFunction(Call);
  const RuntimeVersion *V =
      Callee ? findRuntimeVersion(Callee->getName()) : nullptr;
  return V ? V->Function : -1;
}

/// Returns what is wrong with a format of printf, or nothing. What printf
/// prints must not depend on the process, and it must not store.
static std::string whyFormat(const Value *Given) {
  StringRef Format;
  if (!getConstantStringInfo(Given, Format))
    return "format that is not a string literal: what it prints or stores "
           "cannot be checked";
  for (size_t At = 0; (At = Format.find('%', At)) != StringRef::npos;) {
    size_t Conversion = Format.find_first_not_of("0123456789+-# .*$'Ihlqjzt"
                                                 "L",
                                                 At + 1);
    if (Conversion == StringRef::npos)
      break;
    switch (Format[Conversion]) {
    case 'n':
      return "conversion %n of a format stores out of sight";
    case 'p':
      return "conversion %p of a format prints an address";
    case 'm':
      return "conversion %m of a format prints what errno says";
    default:
      break;
    }
    At = Conversion + 1;
  }
  return "";
}

static CallMeaning classifyRuntimeVersion(const CallBase &Call,
                                          const RuntimeVersion &V) {
  if (V.Format >= 0)
    if (std::string Why = whyFormat(Call.getArgOperand(V.Format)); !Why.empty())
      return {CallKind::Forbidden,
              "call of '" + V.Name.str() + "' with a " + Why};
  if (V.Function >= 0) {
    const auto *F =
        dyn_cast<Function>(Call.getArgOperand(V.Function)->stripPointerCasts());
    if (!F || F->isDeclaration() || F->isInterposable())
      return {CallKind::Forbidden,
              "call of '" + V.Name.str() +
                  "' with a function whose body is not visible here"};
  }
  return {V.Kind, ""};
}

Function *calledFunction(const CallBase &Call) {
  Value *Callee = Call.getCalledOperand()->stripPointerCasts();
  if (auto *Alias = dyn_cast<GlobalAlias>(Callee))
    if (!Alias->isInterposable())
      Callee = Alias->getAliaseeObject();
  return dyn_cast<Function>(Callee);
}

/// Library functions whose result is a function of their arguments alone.
static bool touchesNoMemory(StringRef Name) {
  static const StringSet<> Math = {
      "sqrt",   "sin",       "cos",      "tan",       "asin",      "acos",
      "atan",   "atan2",     "sinh",     "cosh",      "tanh",      "exp",
      "exp2",   "expm1",     "log",      "log2",      "log10",     "log1p",
      "pow",    "cbrt",      "hypot",    "floor",     "ceil",      "round",
      "trunc",  "fmod",      "fma",      "fabs",      "fmin",      "fmax",
      "fdim",   "ldexp",     "rint",     "lround",    "llround",   "lrint",
      "llrint", "remainder", "copysign", "nearbyint", "scalbn",    "erf",
      "erfc",   "asinh",     "acosh",    "atanh",     "nextafter", "nexttoward",
      "logb",   "ilogb",     "scalbln",  "tgamma",    "roundeven", "exp10",
      "cabs",   "carg",      "creal",    "cimag",     "conj",      "cproj",
      "csqrt",  "cexp",      "clog",     "cpow",      "csin",      "ccos",
      "ctan",   "csinh",     "ccosh",    "ctanh"};
  // Complex arithmetic that the compiler leaves to its runtime.
  static const StringSet<> Complex = {"__mulsc3", "__muldc3", "__mulxc3",
                                      "__divsc3", "__divdc3", "__divxc3"};
  if (Complex.contains(Name))
    return true;
  StringRef Stem = Name;
  if (Math.contains(Stem) ||
      ((Stem.consume_back("f") || Stem.consume_back("l")) &&
       Math.contains(Stem)))
    return true;
  return StringSwitch<bool>(Name)
      .Cases("abs", "labs", "llabs", "div", "ldiv", "lldiv", true)
      .Case("_ZNSt3__112__next_primeEm", true)
      .Default(Name.starts_with("__ubsan_handle_") ||
               Name.starts_with("__sanitizer_dtor_callback") ||
               // An object with a virtual table is in no pool.
               Name == "__dynamic_cast" ||
               // libstdc++'s std::allocator of characters is empty. Without
               // optimisation clang leaves its constructors to the library.
               (Name.starts_with("_ZNSaIcE") && !Name.contains("allocate")) ||
               Name.starts_with("__sanitizer_cov_") ||
               // Counters of -fprofile-generate.
               Name.starts_with("__llvm_profile_instrument_") ||
               // memcpy and relatives are not among them: those write.
               ((Name.starts_with("__asan_") || Name.starts_with("__tsan_")) &&
                !Name.contains("_mem")) ||
               Name.starts_with("hf_check_"));
}

static bool readsThroughArguments(StringRef Name) {
  return StringSwitch<bool>(Name)
      .Cases("memcmp", "bcmp", "memchr", "memrchr", "rawmemchr", true)
      .Cases("strlen", "strnlen", "strcmp", "strncmp", "strchr", "strrchr",
             true)
      .Cases("strchrnul", "strstr", "strspn", "strcspn", "memmem", true)
      .Cases("strpbrk", "wcslen", "wmemchr", "wmemcmp", true)
      .Cases("wcsnlen", "wcscmp", "wcsncmp", "wcschr", "wcsrchr", true)
      .Cases("wcsstr", "wcsspn", "wcscspn", "wcspbrk", true)
      .Case("_ZSt11_Hash_bytesPKvmm", true)
      .Default(false);
}

static bool neverReturns(StringRef Name) {
  return StringSwitch<bool>(Name)
      .Cases("abort", "__assert_fail", "__assert", "__assert_rtn", true)
      .Cases("__stack_chk_fail", "__chk_fail", "__clang_call_terminate", true)
      .Cases("_ZSt9terminatev", "_ZSt21__glibcxx_assert_failPKciS0_S0_", true)
      .Cases("_ZNSt3__122__libcpp_verbose_abortEPKcz", "__cxa_pure_virtual",
             true)
      .Cases("hf_assert_fail", "hf_pool_full", true)
      .Default(false);
}

/// The standard libraries throw from functions of their own, named
/// std::__throw_*; inlined, one is known by its line information and begins by
/// allocating the exception.
static bool isLibraryThrow(const CallBase &Call, StringRef Name) {
  if ((Name.starts_with("_ZSt") || Name.starts_with("_ZNSt3__1") ||
       Name.starts_with("_ZNKSt3__1")) &&
      Name.contains("__throw_"))
    return true;
  if (Name != "__cxa_allocate_exception" || !Call.getDebugLoc())
    return false;
  const auto *Scope = cast<DIScope>(Call.getDebugLoc().getScope());
  while (Scope && !isa<DISubprogram>(Scope))
    Scope = Scope->getScope();
  return Scope && Scope->getName().starts_with("__throw_");
}

/// The language's own functions for exceptions.
static bool isExceptionRuntime(StringRef Name) {
  return StringSwitch<bool>(Name)
      .Cases("__cxa_allocate_exception", "__cxa_free_exception", true)
      .Cases("__cxa_throw", "__cxa_rethrow", "__cxa_get_exception_ptr", true)
      .Cases("__cxa_begin_catch", "__cxa_end_catch", true)
      .Default(false);
}

/// A constructor or destructor of a standard exception that lies in the library:
/// it changes the exception and the text that it holds, nothing else.
static bool isStandardException(StringRef Name) {
  if (!Name.consume_front("_ZNSt"))
    return false;
  for (StringRef Class :
       {"9exception", "9bad_alloc", "20bad_array_new_length", "11logic_error",
        "12domain_error", "16invalid_argument", "12length_error",
        "12out_of_range", "13runtime_error", "11range_error",
        "14overflow_error", "15underflow_error"}) {
    StringRef Rest = Name;
    if (Rest.consume_front(Class))
      return is_contained({"C1E", "C2E", "D0E", "D1E", "D2E"},
                          Rest.take_front(3));
  }
  return false;
}

int thrownText(const CallBase &Call) {
  const Function *Callee = calledFunction(Call);
  if (!Callee)
    return -1;
  StringRef Name = Callee->getName();
  int Text = isStandardException(Name) && Name.ends_with("EPKc")       ? 1
             : Name.contains("__throw_") && isLibraryThrow(Call, Name) ? 0
                                                                       : -1;
  return Text >= 0 && unsigned(Text) < Call.arg_size() &&
                 Call.getArgOperand(Text)->getType()->isPointerTy()
             ? Text
             : -1;
}

bool changesException(const CallBase &Call) {
  const Function *Callee = calledFunction(Call);
  return Callee && Callee->isDeclaration() &&
         isStandardException(Callee->getName());
}

bool mayUnwind(const CallBase &Call) {
  switch (classifyCall(Call).Kind) {
  case CallKind::Body:
  case CallKind::Elsewhere:
  case CallKind::Throws:
  case CallKind::Unrepeatable:
  case CallKind::Scratch:
    return true;
  default:
    return !calledFunction(Call);
  }
}

bool isVarying(const CallBase &Call) {
  const Function *Callee = calledFunction(Call);
  return Callee && varies(Callee->getName());
}

/// Where a thread's errno lies, always the same for it.
static bool isErrno(StringRef Name) { return Name == "__errno_location"; }

bool isErrno(const CallBase &Call) {
  const Function *Callee = calledFunction(Call);
  return Callee && isErrno(Callee->getName());
}

static std::string whyForbidden(const Function &Callee) {
  StringRef Name = Callee.getName();
  static const StringSet<> Io = {
      "printf",       "fprintf",       "vprintf", "vfprintf", "puts",
      "fputs",        "putchar",       "fputc",   "putc",     "fwrite",
      "fread",        "fopen",         "fclose",  "fflush",   "write",
      "read",         "pwrite",        "pread",   "open",     "close",
      "send",         "recv",          "sendto",  "recvfrom", "ioctl",
      "mmap",         "munmap",        "msync",   "fsync",    "fdatasync",
      "scanf",        "fscanf",        "getchar", "fgets",    "perror",
      "__printf_chk", "__fprintf_chk", "syscall", "system"};
  std::string Pretty = "'" + demangle(Name) + "'";
  if (Io.contains(Name) || Name.starts_with("_ZNSo") ||
      Name.starts_with("_ZStls") || Name.starts_with("_ZSt16__ostream_insert"))
    return "input or output by " + Pretty +
           " would happen again if the section must be run again, and is not "
           "taken back with it: do it before the section or after it";
  if (varies(Name))
    return "nondeterministic call of " + Pretty +
           ": call it before the section and pass the result as an argument, "
           "or use engine auto";
  if (Name.ends_with("setjmp") || Name.ends_with("longjmp") ||
      Name == "setcontext" || Name == "swapcontext" || Name == "getcontext")
    return "non-local jump " + Pretty;
  if (isErrno(Name))
    return "errno, which is volatile: a crash takes it away; return what went "
           "wrong, or use engine auto";
  if (Name == "__cxa_thread_atexit")
    return "initialisation of a thread-local variable with a destructor";
  if (Name.starts_with("__cxa_guard_") || Name == "__cxa_atexit")
    return "initialisation of a function-local static variable";
  if (Name.starts_with("__cxa_") || Name.starts_with("_Unwind_") ||
      isStandardException(Name))
    return "exception handling (" + Pretty +
           "): a section of this engine can only go forward; check before it "
           "begins, build with -fno-exceptions, or use engine auto";
  if (Name.starts_with("_ZN2hf12shared_mutex") || // in the pool, but not logged
      Name.starts_with("pthread_") || Name.starts_with("sem_") ||
      Name.starts_with("__atomic_") || Name.starts_with("__sync_"))
    return "synchronisation by " + Pretty +
           ": take locks before calling the failure-atomic function";
  if (Name.starts_with("_ZN2hf6detail7base_of") || Name == "hf_pool_base")
    return "hf::tx in a section: call the function itself, it joins the "
           "section that is open";
  return whyHidden(Callee);
}

/// A member function of hf::shared_mutex.
static bool isPoolLock(StringRef Name) {
  return Name.starts_with("_ZN2hf12shared_mutex");
}

static CallMeaning classifyIntrinsic(const IntrinsicInst &Call) {
  if (isForHooks(Call))
    return {CallKind::NoAccess, ""};
  if (std::string Why = whyMachineState(Call.getIntrinsicID()); !Why.empty())
    return {CallKind::Forbidden, Why};
  switch (Call.getIntrinsicID()) {
  case Intrinsic::readcyclecounter:
  case Intrinsic::readsteadycounter:
    return {CallKind::Unrepeatable,
            "nondeterministic read of a machine counter: read it before the "
            "section"};
  case Intrinsic::eh_sjlj_setjmp:
  case Intrinsic::eh_sjlj_longjmp:
    return {CallKind::Forbidden, "non-local jump"};
  case Intrinsic::trap:
  case Intrinsic::ubsantrap:
  case Intrinsic::debugtrap:
    return {CallKind::Terminates, ""};
  case Intrinsic::prefetch:
  case Intrinsic::invariant_start:
  case Intrinsic::invariant_end:
  case Intrinsic::stacksave:
  case Intrinsic::stackrestore:
  case Intrinsic::lifetime_start:
  case Intrinsic::lifetime_end:
  case Intrinsic::threadlocal_address: // the variable's own use is what is
                                       // diagnosed
  case Intrinsic::vastart:             // argument lists live in locals
  case Intrinsic::vaend:
  case Intrinsic::vacopy:
    return {CallKind::NoAccess, ""};
  default:
    break;
  }
  if (isa<AnyMemIntrinsic>(Call))
    return {isa<MemIntrinsic>(Call) ? CallKind::Writes : CallKind::Forbidden,
            "atomic memory intrinsic"};
  // Machine intrinsics such as rdtsc, rdrand and rndr claim no memory but have side
  // effects; the pure ones are speculatable or at least willreturn and
  // memory(none).
  StringRef Name = Call.getCalledFunction()->getName();
  if (Name.contains("rdtsc") || Name.contains("rdrand") ||
      Name.contains("rdseed") || Name.contains("rdpmc") ||
      Name.contains("rdpid") || Name.starts_with("llvm.aarch64.rndr"))
    return {CallKind::Unrepeatable,
            "nondeterministic machine instruction (" + Name.str() + ")"};
  if (Name.contains("xgetbv") || Name.contains("rdfsbase") ||
      Name.contains("rdgsbase") || Name.contains("rdpkru") ||
      Name.contains("rdssp"))
    return {CallKind::Forbidden,
            "nondeterministic machine instruction (" + Name.str() + ")"};
  if (Call.doesNotAccessMemory() || Call.onlyAccessesInaccessibleMemory())
    return {CallKind::NoAccess, ""};
  if (Call.onlyReadsMemory())
    return {CallKind::Reads, ""};
  return {CallKind::Forbidden,
          "intrinsic " + Name.str() + " writes memory in a way not followed"};
}

/// Whether the function comes from a table that an argument's first word points
/// to.
static bool isVirtual(const CallBase &Call) {
  const auto *Entry = dyn_cast<LoadInst>(Call.getCalledOperand());
  const auto *Table =
      Entry ? dyn_cast<LoadInst>(
                  Entry->getPointerOperand()->stripInBoundsConstantOffsets())
            : nullptr;
  return Table && is_contained(Call.args(), Table->getPointerOperand());
}

static std::string whyUnresolved(const CallBase &Call) {
  if (isVirtual(Call))
    return "virtual call that is not resolved here: make the class or the "
           "function final, name the class (object.type::function()), keep "
           "alternatives in a std::variant, or use engine auto";
  return "indirect call: what it reaches cannot be checked or logged; make the "
         "function a template argument, choose among calls of known functions, "
         "or use engine auto";
}

/// Empty assembly is no instruction: a register that it claims to write, and
/// that no input is in, holds whatever was there.
static CallMeaning classifyAssembly(const InlineAsm &Asm) {
  if (!StringRef(Asm.getAsmString()).trim().empty())
    return {CallKind::Forbidden, "inline assembly"};
  for (const InlineAsm::ConstraintInfo &C : Asm.ParseConstraints())
    if (C.Type == InlineAsm::isOutput && !C.isIndirect && !C.hasMatchingInput())
      return {CallKind::Forbidden,
              "empty inline assembly with an output that has no input: its "
              "value is what a register happens to hold"};
  return {CallKind::NoAccess, ""};
}

CallMeaning classifyCall(const CallBase &Call) {
  if (const auto *Asm = dyn_cast<InlineAsm>(Call.getCalledOperand()))
    return classifyAssembly(*Asm);
  const Function *Callee = calledFunction(Call);
  if (!Callee)
    return {CallKind::Indirect, whyUnresolved(Call)};
  if (const auto *Intrinsic = dyn_cast<IntrinsicInst>(&Call))
    return classifyIntrinsic(*Intrinsic);

  StringRef Name = Callee->getName();
  if (Name == "hf_alloc")
    return {CallKind::Alloc, ""};
  if (Name == "hf_vlog_preserve")
    return {CallKind::Preserve, ""};
  if (Name == "hf_free" || Name == "hf_adopt" || Name == "hf_crash_point" ||
      Name == AbortSection || Name == "hf_section_in" || Name == LinkGuard ||
      isFunctionHook(Name) || isSelection(Call))
    return {CallKind::NoAccess, ""};
  if (Callee->hasFnAttribute(PureAttr) || Call.hasFnAttr(PureAttr))
    return {CallKind::NoAccess, ""};
  if (neverReturns(Name))
    return {CallKind::Terminates, ""};
  if (isLibraryThrow(Call, Name))
    return {CallKind::Throws, ""};
  if (!Callee->isDeclaration()) {
    if (Callee->isInterposable())
      return {CallKind::Forbidden,
              "call of '" + demangle(Name.str()) +
                  "', which is weak: another body may replace it"};
    return {CallKind::Body, ""};
  }
  if (isForSections(*Callee))
    return {CallKind::Elsewhere, ""};
  if (const RuntimeVersion *V = findRuntimeVersion(Name))
    return classifyRuntimeVersion(Call, *V);
  if (findRangeWriter(Call))
    return {CallKind::Writes, ""};
  if (readsThroughArguments(Name))
    return {CallKind::Reads, ""};
  if (touchesNoMemory(Name))
    return {CallKind::NoAccess, ""};
  if (std::string Why = whyVolatileMemory(Name); !Why.empty())
    return {Name == "posix_memalign" ? CallKind::Forbidden // stores the address
                                     : CallKind::Scratch,
            Why};
  if (isPoolLock(Name))
    return {CallKind::Locks, whyForbidden(*Callee)};
  if (isExceptionRuntime(Name) || isStandardException(Name) || varies(Name) ||
      isErrno(Name))
    return {CallKind::Unrepeatable, whyForbidden(*Callee)};
  return {CallKind::Forbidden, whyForbidden(*Callee)};
}

} // namespace holdfast
