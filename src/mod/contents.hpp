// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The elements of a container whose types nobody knows here: as bytes, found by the shape of the
// root.
//
// (1) Nodes are hostile: each is read where the pool's header lets refs lead, and a damaged one has
//     no elements.
// (2) Every walk ends: inner nodes of maps are visited once, and no more elements, nor bytes of
//     them, are given than the caller wants. Damaged refs may all lead to one long string.
#pragma once

#include <mod/format.hpp>

#include <holdfast/mod/detail/element.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace hf::mod {

/// What a root's shape says of its elements.
struct contents_form {
    std::uint32_t kind;
    detail::slot_form key{}, value{}; // of sequences, the value alone; of sets, the key alone
    bool has_keys = false, has_values = true;
    bool values_in_keys = false; // strings, in the blobs of their keys
    std::uint16_t identity = 0;  // of the hash, or of the order; 0: none

    /// Requires: is_container(kind).
    static contents_form of(std::uint32_t kind, std::uint64_t shape) noexcept;
    static bool is_container(std::uint32_t kind) noexcept;
};

/// "map (key string, value 8 bytes aligned to 8; shape 0x…)", for messages. Of a kind that this
/// library does not have: its name and its shape.
std::string shape_text(std::string_view name, std::uint32_t kind, std::uint64_t shape);

/// Gets an element: its number (of sequences, from the oldest, bottom or first on) and its bytes.
using element_reader =
    std::function<void(std::uint64_t at, std::string_view key, std::string_view value)>;

/// Reads the elements of the version that a word names, as many at most, and of them no more than
/// so many bytes. Returns how many there were; fewer than the word says: the rest is damaged.
///
/// Requires: addresses from 'base' on can be read as far as the header there lets refs lead.
std::uint64_t read_elements(const std::byte* base, std::uint64_t word, const contents_form& form,
                            std::uint64_t most, std::uint64_t bytes_most, const element_reader& to);
/// How many elements a word says that there are.
inline std::uint64_t element_count(std::uint64_t word) noexcept { return word >> 32; }

} // namespace hf::mod
