// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "analysis/BufferedCalls.h"
#include "analysis/Calls.h"

#include "llvm/ADT/STLExtras.h"

#include <ctime>

using namespace llvm;

namespace holdfast {

static constexpr ArgumentExtent bytes(int Argument, int Length) {
  return {ArgumentExtent::Bytes, Argument, Length};
}
static constexpr ArgumentExtent until(int Argument, int Stop, int Length) {
  return {ArgumentExtent::Until, Argument, Length, Stop};
}
static constexpr ArgumentExtent string(int Argument) {
  return {ArgumentExtent::String, Argument};
}
static constexpr ArgumentExtent result(int Argument, unsigned Bytes) {
  return {ArgumentExtent::Result, Argument, -1, -1, Bytes};
}

static constexpr ArgumentExtent end(int Argument) {
  return {ArgumentExtent::End, Argument};
}
static constexpr ArgumentExtent append(int Argument) {
  return {ArgumentExtent::Append, Argument};
}

static constexpr int Zero = -1, NoLimit = -1;
static constexpr unsigned LongDouble = 10;

static const BufferedCall Table[] = {
    // function, what it does through two of its arguments, result
    {"memcmp", {bytes(0, 2), bytes(1, 2)}},
    {"bcmp", {bytes(0, 2), bytes(1, 2)}},
    {"memchr", {until(0, 1, 2)}, 0},
    {"memrchr", {bytes(0, 2)}, 0},
    {"rawmemchr", {until(0, 1, NoLimit)}, 0},
    {"memmem", {bytes(0, 1), bytes(2, 3)}, 0},
    {"strlen", {string(0)}},
    {"strnlen", {until(0, Zero, 1)}},
    {"strcmp", {string(0), string(1)}},
    {"strncmp", {until(0, Zero, 2), until(1, Zero, 2)}},
    {"strchr", {string(0)}, 0},
    {"strrchr", {string(0)}, 0},
    {"strchrnul", {string(0)}, 0},
    {"strstr", {string(0), string(1)}, 0},
    {"strpbrk", {string(0), string(1)}, 0},
    {"strspn", {string(0), string(1)}},
    {"strcspn", {string(0), string(1)}},
    {"_ZSt11_Hash_bytesPKvmm", {bytes(0, 1)}},
    {"hf_vlog_preserve", {bytes(0, 1)}},
    {"getenv", {string(0)}},
    {"strdup", {string(0)}},
    {"__strdup", {string(0)}},
    {"strndup", {until(0, Zero, 1)}},
    {"clock_gettime", {result(1, sizeof(timespec))}},
    {"hf_c_strcasecmp", {string(0), string(1)}},
    {"hf_c_strncasecmp", {until(0, Zero, 2), until(1, Zero, 2)}},
    {"hf_c_strcat", {append(0), string(1)}},
    {"hf_c_strcat_chk", {append(0), string(1)}},
    {"hf_c_atoi", {string(0)}},
    {"hf_c_atol", {string(0)}},
    {"hf_c_atoll", {string(0)}},
    {"hf_c_atof", {string(0)}},
    {"hf_c_strtol", {string(0), end(1)}},
    {"hf_c_strtoul", {string(0), end(1)}},
    {"hf_c_strtoll", {string(0), end(1)}},
    {"hf_c_strtoull", {string(0), end(1)}},
    {"hf_c_strtof", {string(0), end(1)}},
    {"hf_c_strtod", {string(0), end(1)}},
    {"hf_c_strtold", {string(0), end(1)}},
    {"hf_c_frexp", {result(1, sizeof(int))}},
    {"hf_c_frexpf", {result(1, sizeof(int))}},
    {"hf_c_frexpl", {result(1, sizeof(int))}},
    {"hf_c_modf", {result(1, sizeof(double))}},
    {"hf_c_modff", {result(1, sizeof(float))}},
    {"hf_c_modfl", {result(1, LongDouble)}},
    {"hf_c_remquo", {result(2, sizeof(int))}},
    {"hf_c_remquof", {result(2, sizeof(int))}},
    {"hf_c_remquol", {result(2, sizeof(int))}},
    {"hf_c_sincos", {result(1, sizeof(double)), result(2, sizeof(double))}},
    {"hf_c_sincosf", {result(1, sizeof(float)), result(2, sizeof(float))}},
    {"hf_c_sincosl", {result(1, LongDouble), result(2, LongDouble)}},
};

const ArgumentExtent *BufferedCall::extentOf(unsigned Argument) const {
  for (const ArgumentExtent &Extent : Extents)
    if (Extent.What != ArgumentExtent::None &&
        unsigned(Extent.Argument) == Argument)
      return &Extent;
  return nullptr;
}

const BufferedCall *findBufferedCall(const CallBase &Call) {
  const Function *Callee = calledFunction(Call);
  if (!Callee || !Callee->isDeclaration())
    return nullptr;
  const auto *Row = find_if(Table, [&](const BufferedCall &R) {
    return R.Name == Callee->getName();
  });
  return Row == std::end(Table) ? nullptr : Row;
}

} // namespace holdfast
