// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Objects as they are stored: the bytes of a str (UTF-8) or of bytes, or what holdfast/_encoding.py
// makes of another value, then one byte that says which. So a str comes back as a str, bytes as
// bytes, and "a" is another key than b"a".
//
// (1) Values other than None, bools, floats and ints of 64 bits are encoded and decoded by Python
//     code, during which other threads may run, and change or close a pool: never between two looks
//     into it, and never with memory of it.
#pragma once

#include <holdfast/mod.h>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstddef>
#include <cxxabi.h>
#include <memory>
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

/// The use of an object: keys, and elements of sets, are whatever dict accepts as a key.
enum class as { value, key };

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
    void add(nb::handle object, as role = as::value);
    void add_stored(hf_bytes stored);
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
    bool needs_python() const noexcept { return value_; }
    /// Whether these are the bytes that it was made of. Requires: needs_python().
    bool is(hf_bytes stored) const noexcept;
    /// The object. Raises holdfast.Error "corrupt", or "unsupported" of an array where there is no
    /// numpy.
    nb::object whole() const;

private:
    nb::object made_;
    bool value_ = false;
};

/// The object again, as the last step of a look into a pool (1). Raises holdfast.Error "corrupt"
/// when it is no stored form.
nb::object decoded(hf_bytes stored);

} // namespace hf_python
