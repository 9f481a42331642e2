// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Objects as they are stored: the bytes of a str (UTF-8) or of bytes, or what holdfast/_encoding.py
// makes of another value, then one byte that says which. So a str comes back as a str, bytes as
// bytes, and "a" is another key than b"a".
//
// (1) While values other than None, bools, floats and ints of 64 bits are encoded or decoded, other
//     threads may run, and change or close a pool: never between two looks into it, and never with
//     memory of it (encoding.hpp (4)).
#pragma once

#include "encoding.hpp"

#include <holdfast/mod.h>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstddef>
#include <cstring>
#include <cxxabi.h>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hf_python {

namespace nb = nanobind;

/// Raises holdfast.Error.
[[noreturn]] void raise(const char* code, const char* message);

/// For a daemon thread that may not have the interpreter's lock any more, since the interpreter
/// ends. It would be ended by unwinding, which neither destructors nor the callers here can bear:
/// it waits for the process's end.
[[noreturn]] void await_end() noexcept;
/// What 'work' returns, which may run Python code, where a thread can meet that. Nothing in it has
/// a destructor that needs the lock.
template <class Work> auto in_python(Work&& work) {
    try {
        return work();
    } catch (abi::__forced_unwind&) { // of pthread_exit; must not end here, but by being thrown on
        await_end();
    }
}
/// Calls 'each' with everything that 'given' gives, whose Python code may run.
template <class Each> void for_each(nb::handle given, Each&& each) {
    const nb::object from = nb::steal(in_python([=] { return PyObject_GetIter(given.ptr()); }));
    if (!from.is_valid()) throw nb::python_error();
    const auto next = [at = from.ptr()] { return PyIter_Next(at); };
    while (PyObject* found = in_python(next)) each(nb::steal(found));
    if (PyErr_Occurred() != nullptr) throw nb::python_error();
}
/// Raises holdfast.Error unless 'found' is HF_OK.
void check(hf_status found);

/// 'given', for C. Raises ValueError when it has a zero byte, where C would cut it short.
const std::string& text_of(const char* what, const std::string& given);

inline bool same(hf_bytes a, hf_bytes b) noexcept {
    return a.bytes == b.bytes && (a.bytes == 0 || std::memcmp(a.data, b.data, a.bytes) == 0);
}
inline hf_bytes bytes_of(const nb::bytes& of) { return {of.c_str(), of.size()}; }

inline constexpr std::size_t stored_bytes_max = std::size_t{1}
                                                << 30; // of a key and its value together
/// Raises ValueError when it is more.
void check_size(std::size_t stored_bytes);

bool storable(nb::handle object, as role = as::value);

/// One object's stored form.
class encoded {
public:
    /// Raises TypeError when it has no stored form, ValueError when that is too long.
    explicit encoded(nb::handle object, as role = as::value);
    hf_bytes get() const noexcept { return {made_.data(), made_.size()}; }
    /// Whether the key of an older version of the format may be another one.
    bool may_have_old() const noexcept { return may_have_old_; }

private:
    buffer made_;
    bool may_have_old_ = false;
};

/// A key as it is stored, and as it was stored before version 2 of the format where that differs.
class encoded_key : public encoded {
public:
    explicit encoded_key(nb::handle object);
    /// Null: it was the same.
    const encoded* old() const noexcept { return old_ ? &*old_ : nullptr; }
    static bool storable(nb::handle object) { return hf_python::storable(object, as::key); }

private:
    std::optional<encoded> old_;
};

/// Many objects' stored forms.
class encoded_list {
public:
    void add(nb::handle object, as role = as::value);
    void add(hf_bytes stored);
    std::size_t size() const noexcept { return places_.size(); }
    std::size_t bytes() const noexcept { return all_.size(); }
    /// Valid until add() is called again.
    std::vector<hf_bytes> get() const;

private:
    struct place {
        std::size_t at, bytes;
    };
    std::vector<char> all_;
    std::vector<place> places_;
};

/// What is left to do for an object when its stored form may go (1).
class half_decoded {
public:
    /// Runs no Python code. Raises holdfast.Error "corrupt" if the last byte is not one of ours.
    explicit half_decoded(hf_bytes stored);
    bool needs_python() const noexcept { return value_ != 0; }
    /// Whether these are the bytes that it was made of. Requires: needs_python().
    bool is(hf_bytes stored) const noexcept;
    /// The object. Raises holdfast.Error "corrupt", or "unsupported" of an array where there is no
    /// numpy and of a class that is not registered.
    nb::object whole(form made) const;

private:
    nb::object made_;
    char value_ = 0; // the tag; 0 when the object is made
};

/// The object again, as the last step of a look into a pool (1). Raises holdfast.Error "corrupt"
/// when it is no stored form.
nb::object decoded(hf_bytes stored, form made = form::frozen);

} // namespace hf_python
