// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "known.hpp"

#include "body.hpp"

#include <clang/AST/ASTContext.h>
#include <clang/Basic/Builtins.h>
#include <clang/Basic/SourceManager.h>
#include <llvm/ADT/StringSet.h>
#include <llvm/ADT/StringSwitch.h>

namespace hf::classify {
namespace {

llvm::StringSet<> words(llvm::StringRef text) {
    llvm::SmallVector<llvm::StringRef> parts;
    text.split(parts, ' ');
    llvm::StringSet<> out;
    for (const llvm::StringRef part : parts) out.insert(part);
    return out;
}

// Functions of <cstring>, <cstdlib>, <cmath> and builtins of these names, with and without
// __builtin_ before them. Left out are lgamma (it writes signgam), rint (it reads the rounding
// mode), strtok, strerror and rand. A mathematical function appears here with its name for double;
// the letter at the end of the names for float and long double is removed.
const llvm::StringSet<>& pure_names() {
    static const llvm::StringSet<> names = words(
        "memcpy memmove memset memcmp memchr strlen strnlen strcmp strncmp strchr strrchr bcmp "
        "wmemcpy wmemmove wmemset wmemcmp wcslen char_memchr abs labs llabs div ldiv lldiv fabs "
        "fmod remainder fma fmax fmin fdim exp exp2 expm1 log log10 log2 log1p pow sqrt cbrt "
        "hypot sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh erf erfc tgamma "
        "ceil floor trunc round lround llround frexp ldexp modf scalbn scalbln ilogb logb "
        "nextafter nexttoward copysign remquo");
    return names;
}

// Builtins that no library has as functions.
const llvm::StringSet<>& pure_builtins() {
    static const llvm::StringSet<> names = words(
        "expect expect_with_probability unreachable assume addressof launder "
        "is_constant_evaluated constant_p object_size assume_aligned clz clzl clzll clzg ctz ctzl "
        "ctzll ctzg ffs ffsl ffsll popcount popcountl popcountll popcountg parity parityl "
        "parityll clrsb clrsbl clrsbll bswap16 bswap32 bswap64 bitreverse8 bitreverse16 "
        "bitreverse32 bitreverse64 rotateleft8 rotateleft16 rotateleft32 rotateleft64 "
        "rotateright8 rotateright16 rotateright32 rotateright64 add_overflow sub_overflow "
        "mul_overflow isnan isinf isinf_sign isfinite isnormal issubnormal iszero signbit "
        "signbitf signbitl fpclassify isgreater isgreaterequal isless islessequal islessgreater "
        "isunordered huge_val huge_valf huge_vall inf inff infl nan nanf nanl prefetch "
        "memcpy_inline memset_inline");
    return names;
}

// Functions of the standard library that clang itself recognises, and gives no body.
bool is_known_cast(const clang::FunctionDecl& f) {
    return f.getBuiltinID() != 0 && f.isInStdNamespace() &&
           llvm::StringSwitch<bool>(f.getName())
               .Cases("move", "forward", "forward_like", "move_if_noexcept", "as_const", true)
               .Cases("addressof", "__addressof", true)
               .Default(false);
}

bool is_pure_name(llvm::StringRef name) {
    if (pure_names().contains(name)) return true;
    return (name.ends_with("f") || name.ends_with("l")) && pure_names().contains(name.drop_back());
}

bool in_system_header(const clang::FunctionDecl& f) {
    const auto& sources = f.getASTContext().getSourceManager();
    return f.getLocation().isInvalid() || sources.isInSystemHeader(f.getLocation());
}

const char* explain_io_or_system(llvm::StringRef name) {
    return llvm::StringSwitch<const char*>(name)
        .Cases("printf", "fprintf", "vprintf", "puts", "fputs", "putchar", "fwrite", "does I/O")
        .Cases("fread", "fgets", "getchar", "fopen", "fclose", "fflush", "does I/O")
        .Cases("write", "read", "open", "close", "pwrite", "pread", "ioctl", "does I/O")
        .Cases("getenv", "secure_getenv", "getpid", "gettid", "asks the system")
        .Cases("pthread_self", "sched_yield", "sched_getcpu", "asks the system")
        .Case("pthread_mutex_lock", "locks")
        .Default(nullptr);
}

const char* explain_name(llvm::StringRef name) {
    if (const char* text = explain_io_or_system(name)) return text;
    return llvm::StringSwitch<const char*>(name)
        .Cases("rand", "srand", "random", "srandom", "rand_r", "drand48", "draws a random number")
        .Cases("getrandom", "getentropy", "arc4random", "draws a random number")
        .Cases("time", "clock", "gettimeofday", "clock_gettime", "now", "reads the clock")
        .Case("__builtin_readcyclecounter", "reads the clock")
        .Cases("malloc", "calloc", "realloc", "free", "aligned_alloc", "posix_memalign",
               "allocates or frees memory outside of the object")
        .Cases("__builtin_malloc", "__builtin_operator_new", "__builtin_operator_delete",
               "allocates or frees memory outside of the object")
        .Cases("__builtin_alloca", "alloca", "takes memory of the stack")
        .Case("__errno_location", "uses errno")
        .Cases("fegetround", "fesetround", "fesetenv", "feclearexcept", "fetestexcept",
               "uses the floating-point mode")
        .Cases("feenableexcept", "feholdexcept", "feupdateenv", "feraiseexcept",
               "uses the floating-point mode")
        .Cases("rint", "nearbyint", "lrint", "llrint", "uses the floating-point mode")
        .Cases("abort", "exit", "_Exit", "quick_exit", "terminate", "__builtin_trap",
               "ends the process, and recovery would call it again")
        .Cases("__assert_fail", "__assert_perror_fail", "__glibcxx_assert_fail",
               "may end the process, and recovery would call it again")
        .StartsWith("__throw_", "may throw")
        .StartsWith("__builtin_va_", "takes unnamed arguments")
        .Cases("pthread_mutex_unlock", "pthread_rwlock_wrlock", "locks")
        .StartsWith("__sync_", "uses atomics")
        .StartsWith("__atomic_", "uses atomics")
        .Default(nullptr);
}

} // namespace

bool is_allowed(const clang::FunctionDecl& f) {
    if (!f.getIdentifier()) return false;
    if (is_known_cast(f)) return true;
    llvm::StringRef name = f.getName();
    const bool builtin = f.getBuiltinID() != 0;
    if (builtin && name.consume_front("__builtin_")) // declared where it is used
        return pure_builtins().contains(name) || is_pure_name(name);
    return in_system_header(f) && (f.isExternC() || builtin) && is_pure_name(name);
}

std::string explain(const clang::FunctionDecl& f) {
    const std::string name = name_of(f);
    if (f.isReplaceableGlobalAllocationFunction() || f.getOverloadedOperator() == clang::OO_New ||
        f.getOverloadedOperator() == clang::OO_Delete)
        return "allocates or frees memory outside of the object (" + name + ")";
    if (f.getIdentifier() != nullptr)
        if (const char* text = explain_name(f.getName()))
            return std::string(text) + " (" + name + ")";
    return "calls " + name + "(), whose body is not visible";
}

} // namespace hf::classify
