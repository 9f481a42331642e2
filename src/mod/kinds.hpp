// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kinds of structures, by their durable number.
#pragma once

#include <holdfast/author/mod/store.hpp>

namespace hf::mod {

namespace detail {
extern const kind hash_trie_kind;
extern const kind cache_kind;
extern const kind queue_kind;
extern const kind bplus_tree_kind;
extern const kind stack_kind;
extern const kind vector_kind;
} // namespace detail

/// Null if this program does not know the kind.
const kind* find_kind(std::uint32_t id) noexcept;

} // namespace hf::mod
