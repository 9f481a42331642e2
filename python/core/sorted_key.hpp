// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Keys of a SortedMap as they are stored: docs/format/python-values.md. The order of the bytes is
// the order of the keys: None, numbers, str, bytes, dates, times; a tuple as its elements.
//
// (1) A key has one encoding: its ordered part, which equal numbers share whatever their types, and
//     a byte for each number's type. decoded_key() takes no other bytes.
#pragma once

#include "element.hpp"

namespace hf_python {

class sorted_key {
public:
    /// Raises TypeError when it has no place in the order.
    explicit sorted_key(nb::handle object);
    hf_bytes get() const noexcept { return {made_.data(), made_.size()}; }
    /// The part that all keys equal to it begin with: a bound.
    hf_bytes ordered() const noexcept { return {made_.data(), ordered_bytes_}; }
    const encoded* old() const noexcept { return nullptr; }
    static bool storable(nb::handle object);

private:
    buffer made_;
    std::size_t ordered_bytes_ = 0;
};

/// The key again. Raises holdfast.Error "corrupt".
nb::object decoded_key(hf_bytes stored);

} // namespace hf_python
