// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What hf_redo_callee finds (holdfast_abi.h): nothing that no module told of.
#pragma once

#include <holdfast/abi/holdfast_abi.h>

#include <cstdio>
#include <cstdlib>
#include <map>

namespace oracle {

inline std::map<const void*, const void*>& callees() {
    static std::map<const void*, const void*> by_address;
    return by_address;
}

} // namespace oracle

extern "C" {

/// Instances that nothing calls may say what the C library writes.
__attribute__((weak)) void hf_c_overwrite(const void*, std::uint64_t) noexcept {
    std::printf("FAIL hf_c_overwrite: nothing here lets the C library write\n");
    std::exit(1);
}

inline __attribute__((used)) void hf_redo_register_callees(const hf_redo_callees_row* rows,
                                                           std::uint64_t count) noexcept {
    for (std::uint64_t i = 0; i < count; ++i)
        if (rows[i].instance != nullptr) oracle::callees()[rows[i].function] = rows[i].instance;
}

inline __attribute__((used)) const void* hf_redo_callee(const void* function,
                                                        const char* where) noexcept {
    const auto found = oracle::callees().find(function);
    if (found != oracle::callees().end()) return found->second;
    std::printf("FAIL hf_redo_callee: %s: nobody has told of %p\n", where, function);
    std::exit(1);
}
}
