// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Objects as they are stored: the bytes of a str (UTF-8) or of bytes, or what holdfast/_encoding.py
// makes of another value, then one byte that says which. So a str comes back as a str, bytes as
// bytes, and "a" is another key than b"a".
//
// (1) While values are encoded or decoded, other threads may run, and change or close a pool: never
//     between two looks into it, and never with memory of it (encoding.hpp (4)). That is not so
//     of None, bools, floats, ints of 64 bits, bytes, and a str without surrogates.
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
/// What 'name' in a module of the package returns. Unwinding (await_end) finds plain pointers in
/// there, and nothing to let go of.
nb::object call(const char* module, const char* name, nb::handle first, nb::handle second = {});
/// Raises holdfast.Error unless 'found' is HF_OK.
void check(hf_status found);

/// 'given', for C. Raises ValueError when it has a zero byte, where C would cut it short.
const std::string& text_of(const char* what, const std::string& given);

/// The bytes of a str as they are stored: UTF-8. Lone surrogates, which stand for the bytes of a
/// file's name that is not UTF-8, have the three bytes that their numbers would have there.
class utf8 {
public:
    explicit utf8(PyObject* of);
    const char* data() const noexcept { return data_; }
    std::size_t size() const noexcept { return static_cast<std::size_t>(bytes_); }

private:
    Py_ssize_t bytes_ = 0;
    const char* data_;
    nb::object made_; // null: the str has the bytes
};
/// The str of these bytes. Null, with an exception: they are no such.
inline PyObject* str_of(const char* data, std::size_t bytes) {
    return PyUnicode_DecodeUTF8(data, static_cast<Py_ssize_t>(bytes), "surrogatepass");
}

inline bool same(hf_bytes a, hf_bytes b) noexcept {
    return a.bytes == b.bytes && (a.bytes == 0 || std::memcmp(a.data, b.data, a.bytes) == 0);
}
inline hf_bytes bytes_of(const nb::bytes& of) { return {of.c_str(), of.size()}; }

inline constexpr std::size_t stored_bytes_max = std::size_t{1}
                                                << 30; // of a key and its value together
[[noreturn]] void refuse_size(std::size_t stored_bytes);
/// Raises ValueError when it is more.
inline void check_size(std::size_t stored_bytes) {
    if (stored_bytes > stored_bytes_max) refuse_size(stored_bytes);
}

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

/// Stored bytes of bytes, or of an encoded value.
class stored_bytes {
public:
    /// Raises TypeError of a str, which has no buffer, and holdfast.Error "corrupt".
    explicit stored_bytes(hf_bytes stored);
    bool is_value() const noexcept { return value_; }
    const char* data;
    std::size_t bytes;

private:
    bool value_ = false;
};

/// What is left to do for an object when its stored form may go (1).
class half_decoded {
public:
    /// Where few bytes are copied to. It outlives what was made with it.
    struct room {
        char bytes[256];
    };
    /// Runs no Python code. Raises holdfast.Error "corrupt" if the last byte is not one of ours.
    explicit half_decoded(hf_bytes stored, room* within = nullptr);
    bool needs_python() const noexcept { return value_ != 0; }
    /// Whether these are the bytes that it was made of. Requires: needs_python().
    bool is(hf_bytes stored) const noexcept;
    /// The object. Raises holdfast.Error "corrupt", or "unsupported" of an array where there is no
    /// numpy and of a class that is not registered.
    nb::object whole(form made) const;

private:
    nb::object made_; // the object, or the bytes that it will be made of; null: they are in a room
    const char* data_ = nullptr; // these bytes
    std::size_t bytes_ = 0;
    char value_ = 0; // the tag; 0 when the object is made
};

/// The object again, as the last step of a look into a pool (1). Raises holdfast.Error "corrupt"
/// when it is no stored form.
nb::object decoded(hf_bytes stored, form made = form::frozen);

} // namespace hf_python
