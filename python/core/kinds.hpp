// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What encoding.cpp, which writes values, and decoding.cpp, which reads them, agree on.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hf_python {

// Durable: never change their meaning. holdfast/_encoding.py has those between.
enum kind : unsigned char {
    none,
    no,
    yes,
    natural,
    negative,
    real,
    text,
    bytes_kind,
    tuple,
    list,
    dict,
    moment,
    array_kind = 14,
    leaf_last_1 = array_kind, // Python code's, in version 1
    set_kind = 15,
    frozenset,
    registered,
    kind_end = 22 // those in between are Python code's, too
};
inline constexpr std::uint64_t nan_bits = 0x7ff8'0000'0000'0000; // every NaN's
/// Containers nest so deep at most. What contains itself ends here, too.
inline constexpr unsigned depth_max = 64;

/// The types of frozen lists, dicts and sets: holdfast/_frozen.py.
struct frozen_types {
    PyTypeObject *list = nullptr, *dict = nullptr, *set = nullptr;
};
extern frozen_types frozen; // as the package says when it is imported

/// a < b. The first bytes of encodings differ mostly.
inline bool sorts_below(std::string_view a, std::string_view b) noexcept {
    const std::size_t looked_at = std::min<std::size_t>(3, std::min(a.size(), b.size()));
    for (std::size_t i = 0; i < looked_at; ++i) {
        if (a[i] != b[i])
            return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[i]);
    }
    return a < b;
}

} // namespace hf_python
