// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Marks by which a program says which stores engine selective need not log
// (holdfast/selective.hpp). Other engines, and compilers without the plugin, ignore them: the store
// is a store.
//
//   hf::log_free(slot) = v;          nobody reads the old bytes, whatever becomes of the section
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

/// The section's stores to 'place' from here on are not logged. If the section is rolled back, it
/// leaves any mixture of the old and the new bytes there. Use it for a place that nothing leads to
/// when the section is rolled back, neither what it found nor what it changed: a slot that was free
/// when the section began.
///
/// Requires: the compiler sees that the store goes to the same object: write hf::log_free(x) = v.
/// Ordering: 0 points of its own; durable when the section returns.
/// Crash:    the section rolled back: garbage in 'place'.
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

/// The section's stores to 'place' from here on are neither logged nor durable when it returns. Use
/// it for what selective::options::rebuild computes from other stores. In a pool that was opened
/// without rebuild the store is a store like any other.
///
/// Requires: as log_free().
/// Ordering: 0 points; durable with a later section's commit, or with the clean close. Exception:
///           when the section returns, if open_options::engines names an engine whose sections are
///           re-executed or resumed after a crash, because they may read it.
/// Crash:    garbage, until the next open has rebuilt it.
/// Source:   SLPMT, Table I, lazy and log-free; section III-C. Differs: README of src/selective.
template <class T> [[gnu::always_inline]] static inline T& lazy(T& place) noexcept {
    if constexpr (selective::chosen) hf_lazy(&place, sizeof(T));
    return place;
}

} // namespace hf
