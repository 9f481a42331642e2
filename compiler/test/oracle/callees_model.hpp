// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What hf_redo_callee and hf_undo_callee find (holdfast_abi.h): what modules have registered.
#pragma once

#include <holdfast/abi/holdfast_abi.h>

#include <cstdio>
#include <cstdlib>
#include <map>

namespace oracle {

enum class form { redo, undo };

inline std::map<const void*, const void*>& callees(form of) {
    static std::map<const void*, const void*> by_address[2];
    return by_address[int(of)];
}

inline void add_callees(form of, const hf_callees_row* rows, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i)
        if (rows[i].instance != nullptr) callees(of)[rows[i].function] = rows[i].instance;
}

inline const void* callee(form of, const void* function, const char* where) {
    const auto found = callees(of).find(function);
    if (found != callees(of).end()) return found->second;
    std::printf("FAIL callee: %s: nobody has told of %p\n", where, function);
    std::exit(1);
}

} // namespace oracle

extern "C" {

/// No pool is relocated here.
inline __attribute__((used)) void* hf_relocated_store(const void*, void* value,
                                                      const char*) noexcept {
    return value;
}

/// Instances that nothing calls may say what the C library writes.
__attribute__((weak)) void hf_c_overwrite(const void*, std::uint64_t) noexcept {
    std::printf("FAIL hf_c_overwrite: nothing here lets the C library write\n");
    std::exit(1);
}

inline __attribute__((used)) void hf_redo_register_callees(const hf_callees_row* rows,
                                                           std::uint64_t count) noexcept {
    oracle::add_callees(oracle::form::redo, rows, count);
}
inline __attribute__((used)) const void* hf_redo_callee(const void* function,
                                                        const char* where) noexcept {
    return oracle::callee(oracle::form::redo, function, where);
}
inline __attribute__((used)) void hf_undo_register_callees(const hf_callees_row* rows,
                                                           std::uint64_t count) noexcept {
    oracle::add_callees(oracle::form::undo, rows, count);
}
inline __attribute__((used)) const void* hf_undo_callee(const void* function,
                                                        const char* where) noexcept {
    return oracle::callee(oracle::form::undo, function, where);
}
}
