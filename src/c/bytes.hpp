// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the files of <holdfast/mod.h> share: bytes, cursors, and copies that a thread was given.
//
// Every function that may allocate memory of the process runs under guarded(): no exception leaves.
#pragma once

#include <base/of_thread.hpp>
#include <c/pool_handle.hpp>

#include <holdfast/mod.h>

#include <new>
#include <string>
#include <string_view>

struct hf_mod_cursor {
    virtual ~hf_mod_cursor() = default;
    virtual bool next(hf_bytes* element, hf_bytes* value) noexcept = 0;
};

namespace hf::c {

inline std::string_view view(hf_bytes of) noexcept {
    return {static_cast<const char*>(of.data), of.bytes};
}
inline hf_bytes bytes(std::string_view of) noexcept { return {of.data(), of.size()}; }

inline hf_status not_found() noexcept {
    return fail(errc::not_found, "not_found");
} // no allocation

template <class Work> hf_status guarded(Work&& work) noexcept try {
    return work();
} catch (const std::bad_alloc&) {
    return fail(errc::io_error, {}); // no room for words either
}

/// The last element that take or pop gave this thread.
struct taken_element {
    std::string bytes;
};
inline std::string& taken() { return of_thread<taken_element>::get().bytes; }
inline void give(std::string_view element, hf_bytes* to) {
    constexpr std::size_t worth_keeping_bytes = 64 << 10;
    if (to == nullptr) return;
    if (taken().capacity() > worth_keeping_bytes) taken() = {};
    *to = bytes(taken().assign(element));
}

/// Gives what 'made' returns.
template <class Make> hf_status give_cursor(hf_mod_cursor** cursor, Make&& made) noexcept {
    *cursor = nullptr;
    return guarded([&] {
        *cursor = made();
        return HF_OK;
    });
}

} // namespace hf::c
