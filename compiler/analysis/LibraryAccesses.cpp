// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "analysis/LibraryAccesses.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace holdfast {

static constexpr bool Strings = true;

static constexpr LibraryCall Table[] = {
    // function, reads, writes, length
    {LibFunc_memcpy, {1, -1}, 0, 2, false},
    {LibFunc_memcpy_chk, {1, -1}, 0, 2, false},
    {LibFunc_memmove, {1, -1}, 0, 2, false},
    {LibFunc_memmove_chk, {1, -1}, 0, 2, false},
    {LibFunc_mempcpy, {1, -1}, 0, 2, false},
    {LibFunc_mempcpy_chk, {1, -1}, 0, 2, false},
    {LibFunc_memset, {-1, -1}, 0, 2, false},
    {LibFunc_memset_chk, {-1, -1}, 0, 2, false},
    {LibFunc_bzero, {-1, -1}, 0, 1, false},
    {LibFunc_memcmp, {0, 1}, -1, 2, false},
    {LibFunc_bcmp, {0, 1}, -1, 2, false},
    {LibFunc_memchr, {0, -1}, -1, 2, false},
    {LibFunc_memrchr, {0, -1}, -1, 2, false},
    {LibFunc_read, {-1, -1}, 1, 2, false},
    {LibFunc_pread, {-1, -1}, 1, 2, false},
    {LibFunc_write, {1, -1}, -1, 2, false},
    {LibFunc_pwrite, {1, -1}, -1, 2, false},
    {LibFunc_strlen, {0, -1}, -1, -1, Strings},
    {LibFunc_strnlen, {0, -1}, -1, 1, Strings},
    {LibFunc_strcmp, {0, 1}, -1, -1, Strings},
    {LibFunc_strncmp, {0, 1}, -1, 2, Strings},
    {LibFunc_strchr, {0, -1}, -1, -1, Strings},
    {LibFunc_strrchr, {0, -1}, -1, -1, Strings},
    {LibFunc_strcpy, {1, -1}, 0, -1, Strings},
    {LibFunc_strcpy_chk, {1, -1}, 0, -1, Strings},
    {LibFunc_strncpy, {1, -1}, 0, 2, Strings},
    {LibFunc_strncpy_chk, {1, -1}, 0, 2, Strings},
    {LibFunc_strcat, {0, 1}, 0, -1, Strings},
};

const LibraryCall *findLibraryCall(const CallBase &Call,
                                   const TargetLibraryInfo &Library) {
  const Function *Callee = Call.getCalledFunction();
  LibFunc Name;
  if (!Callee || !Callee->isDeclaration() || !Library.getLibFunc(*Callee, Name))
    return nullptr;
  const auto *Row =
      find_if(Table, [&](const LibraryCall &R) { return R.Function == Name; });
  return Row == std::end(Table) ? nullptr : Row;
}

} // namespace holdfast
