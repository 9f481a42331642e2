// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// str and bytes as they are stored: their bytes (of a str, UTF-8), then one that says which. So a
// str comes back as a str, bytes as bytes, and "a" is another key than b"a".
#pragma once

#include <holdfast/mod.h>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace hf_python {

namespace nb = nanobind;

/// Raises holdfast.Error.
[[noreturn]] void raise(const char* code, const char* message);
/// Raises holdfast.Error unless 'found' is HF_OK.
void check(hf_status found);

/// 'given', for C. Raises ValueError when it has a zero byte, where C would cut it short.
const std::string& text_of(const char* what, const std::string& given);

bool storable(nb::handle object) noexcept;

/// One object's stored form.
class encoded {
public:
    /// Raises TypeError when it is neither str nor bytes.
    explicit encoded(nb::handle object);
    hf_bytes get() const noexcept { return {data_, bytes_}; }

private:
    char few_[248];
    std::unique_ptr<char[]> many_;
    char* data_ = few_;
    std::size_t bytes_;
};

/// Many objects' stored forms.
class encoded_list {
public:
    void add(nb::handle object);
    void add_stored(hf_bytes stored);
    std::size_t size() const noexcept { return places_.size(); }
    /// Valid until add() is called again.
    std::vector<hf_bytes> get() const;

private:
    struct place {
        std::size_t at, bytes;
    };
    std::vector<char> all_;
    std::vector<place> places_;
};

/// The object again. Raises holdfast.Error "corrupt" when it is no stored form.
nb::object decoded(hf_bytes stored);

} // namespace hf_python
