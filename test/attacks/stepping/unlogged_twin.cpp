// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stands before the runtime's entry (ld --wrap): inputs are overwritten without an entry in the
// log.
#include <cstdint>

extern "C" void __wrap_hf_clobber_log(const void*, std::uint64_t) noexcept {}
extern "C" void __wrap_hf_log_ahead(const void*, std::uint64_t) noexcept {}
