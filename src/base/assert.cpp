// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace hf {

void contract_broken(const char* condition, const char* file, int line) noexcept {
    std::fprintf(stderr, "holdfast: %s:%d: contract broken: %s\n", file, line, condition);
    std::abort();
}

void fatal(const char* format, ...) noexcept {
    std::fputs("holdfast: ", stderr);
    va_list arguments;
    va_start(arguments, format);
    std::vfprintf(stderr, format, arguments);
    va_end(arguments);
    std::fputc('\n', stderr);
    std::abort();
}

} // namespace hf
