// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a program says of its stores to engine selective (holdfast/selective.hpp). Other engines
// take what is said here for nothing: the store is a store. Compilers without the plugin as well.
//
//   hf::log_free(slot) = v;          nobody reads what stood there, whether or not the section happens
//   hf::lazy(node->parent) = above;  selective::options::rebuild finds it again from the rest
//
// Source: SLPMT, sections II and IV; docs/guide/selective-logging.md.
#pragma once

#include <holdfast/txfunc.hpp>

#include <cstddef>
#include <string_view>

extern "C" {
void hf_log_free(const void* address, unsigned long bytes) noexcept;
void hf_lazy(const void* address, unsigned long bytes) noexcept;
}

namespace hf {

namespace selective {
/// Whether this translation unit is built for the engine.
static constexpr bool chosen = std::string_view(HF_ENGINE_TEXT(HF_ENGINE)) == "selective";
} // namespace selective

/// What the section stores to 'place' from here on is not logged: rolled back, the section leaves
/// there any of the old and the new bytes. Right where nothing leads to them if the section has not
/// happened, neither by what it had found nor by what it has changed: a slot that was free when the
/// section began.
///
/// Requires: the compiler sees that the store goes to the same object: write hf::log_free(x) = v.
/// Ordering: 0 points of its own; durable when the section returns.
/// Crash:    the section rolled back: garbage.
/// Source:   SLPMT, Table I, log-free; section IV-B, pattern 1.
template <class T> [[gnu::always_inline]] static inline T& log_free(T& place) noexcept {
    if constexpr (selective::chosen) hf_log_free(&place, sizeof(T));
    return place;
}
/// The same for 'bytes' bytes that memcpy, memmove or memset then overwrites.
[[maybe_unused, gnu::always_inline]] static inline void* log_free(void* to,
                                                                  std::size_t bytes) noexcept {
    if constexpr (selective::chosen) hf_log_free(to, bytes);
    return to;
}

/// What the section stores to 'place' from here on is neither logged nor durable when it returns.
/// Right where selective::options::rebuild computes it from what is stored otherwise. In a pool
/// that was opened without one the store is a store like any other.
///
/// Requires: as log_free().
/// Ordering: 0 points; durable with a later section's commit, or the clean close. Where
///           open_options::engines names one whose sections run again or go on after a crash, which
///           may read it: when the section returns.
/// Crash:    garbage, until the next open has rebuilt it.
/// Source:   SLPMT, Table I, lazy and log-free; section III-C. Differs: README of src/selective.
template <class T> [[gnu::always_inline]] static inline T& lazy(T& place) noexcept {
    if constexpr (selective::chosen) hf_lazy(&place, sizeof(T));
    return place;
}

} // namespace hf
