// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The failure-atomic functions of holdfast-kv: everything that ever changes its pool. Plain code;
// the build chooses the engine.
//
// (1) The caller holds the instance's lock for writing from before the call until it returns.
// (2) An item handed in as 'fresh' is staged and durable already: a section logs pointers, no
//     bytes.
// (3) Each does its work in a bounded number of steps, for any size of the value or the table.
#pragma once

#include "items.hpp"

namespace hf::kv {

/// First use of a pool.
HF_TXFUNC void initialise(kv_root* root, std::uint64_t seed) noexcept;

/// Links a new item.
HF_TXFUNC void insert_item(structures::hash_table* table, item* fresh) noexcept;
/// Puts 'fresh', of the same key, where 'old' was and frees 'old'.
HF_TXFUNC void replace_item(structures::hash_table* table, item* old, item* fresh) noexcept;
/// Unlinks and frees.
HF_TXFUNC void remove_item(structures::hash_table* table, item* old) noexcept;

HF_TXFUNC void set_exptime(item* of, std::uint32_t exptime) noexcept;
/// The changes of meta commands to an item that keeps its value.
HF_TXFUNC void set_state(item* of, std::uint32_t exptime, std::uint8_t marks,
                         std::uint64_t cas) noexcept;
/// Writes 'number' in digits over the value, padded with spaces to its length.
///
/// Requires: the value has room for the digits.
HF_TXFUNC void set_number(item* of, std::uint64_t number, std::uint64_t cas,
                          std::uint32_t exptime) noexcept;

/// No lock of an instance is needed; callers of this one exclude each other.
HF_TXFUNC void set_flush(kv_root* root, std::uint64_t cas, std::uint64_t times) noexcept;

} // namespace hf::kv
