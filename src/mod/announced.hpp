// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Announcements of functional shadowing besides its stores. The checker uses them to hold MOD to
// its rule (check/shadow_trace.hpp): nothing that can be reached is stored to.
#pragma once

#include <trace/trace.hpp>

namespace hf::mod::announced {

inline constexpr trace::event fresh{"fresh"};       // the range is a new node's
inline constexpr trace::event named{"named"};       // the commit that follows makes it reachable
inline constexpr trace::event commit{"commit"};     // the range is a word, stored next
inline constexpr trace::event in_place{"in_place"}; // it is an element of a node, stored next

// From here on readers may store the announced element: the checker lets them come in between.
inline constexpr trace::event offered{"offered"};

} // namespace hf::mod::announced
