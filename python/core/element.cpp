// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "element.hpp"

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <unistd.h>

namespace hf_python {

namespace {

// Durable: never change their meaning. Of a value, the tag is its encoding's version, too.
enum tag : char { tag_bytes = 0, tag_str = 1, tag_value = 2 };

/// What Python code returns. Unwinding (await_end) finds plain pointers in here, and nothing to let
/// go of.
nb::object call(const char* module, const char* name, nb::handle first, nb::handle second = {}) {
    PyObject* const made = in_python([=] {
        PyObject* const from = PyImport_ImportModule(module);
        PyObject* const called = from == nullptr ? nullptr : PyObject_GetAttrString(from, name);
        Py_XDECREF(from);
        PyObject* const returned =
            called == nullptr
                ? nullptr
                : PyObject_CallFunctionObjArgs(called, first.ptr(), second.ptr(), nullptr);
        Py_XDECREF(called);
        return returned;
    });
    if (made == nullptr) throw nb::python_error();
    return nb::steal(made);
}

// Kinds of the commonest values: docs/format/python-values.md, and _encoding.py, which has all.
enum kind : unsigned char { none, no, yes, natural, negative, real };
constexpr std::uint64_t nan_bits = 0x7ff8'0000'0000'0000; // every NaN's

/// The encoding of None, a bool, a float, an int of 64 bits. Null: Python code encodes it.
PyObject* encoded_here(PyObject* value) {
    char out[2 + sizeof(std::uint64_t)];
    std::size_t bytes = 1;
    const auto append = [&](std::uint64_t number, std::size_t count) {
        while (count-- > 0) out[bytes++] = static_cast<char>(number >> 8 * count);
    };
    if (value == Py_None) out[0] = none;
    else if (PyBool_Check(value)) out[0] = value == Py_True ? yes : no;
    else if (PyFloat_CheckExact(value)) {
        const double number = PyFloat_AsDouble(value);
        out[0] = real;
        append(number == number ? std::bit_cast<std::uint64_t>(number) : nan_bits, sizeof number);
    } else if (PyLong_CheckExact(value)) {
        int beyond = 0;
        const long long number = PyLong_AsLongLongAndOverflow(value, &beyond);
        if (beyond != 0) return nullptr;
        const auto size = static_cast<std::uint64_t>(number >= 0 ? number : ~number);
        const auto count = static_cast<std::size_t>(std::bit_width(size) + 7) / 8;
        out[0] = number >= 0 ? natural : negative;
        out[bytes++] = static_cast<char>(count);
        append(size, count);
    } else return nullptr;
    return PyBytes_FromStringAndSize(out, static_cast<Py_ssize_t>(bytes));
}

/// The value of such an encoding. Null: Python code decodes it, or says what is wrong with it.
PyObject* decoded_here(const char* data, std::size_t bytes) {
    const auto number_at = [&](std::size_t begin) {
        std::uint64_t number = 0;
        for (std::size_t i = begin; i < bytes; ++i)
            number = number << 8 | static_cast<unsigned char>(data[i]);
        return number;
    };
    const int what = bytes == 0 ? -1 : data[0];
    if (bytes == 1 && what == none) return Py_INCREF(Py_None), Py_None;
    if (bytes == 1 && (what == no || what == yes)) return PyBool_FromLong(what == yes);
    if (bytes == 1 + sizeof(double) && what == real) {
        const std::uint64_t bits = number_at(1);
        const auto number = std::bit_cast<double>(bits);
        return number == number || bits == nan_bits ? PyFloat_FromDouble(number) : nullptr;
    }
    if (bytes < 2 || (what != natural && what != negative)) return nullptr;
    if (bytes > 2 + sizeof(std::uint64_t) || static_cast<std::size_t>(data[1]) != bytes - 2 ||
        (bytes > 2 && data[2] == 0)) // one encoding each
        return nullptr;
    const std::uint64_t size = number_at(2);
    if (what == natural) return PyLong_FromUnsignedLongLong(size);
    return size >> 63 != 0 ? nullptr : PyLong_FromLongLong(~static_cast<long long>(size));
}

struct raw {
    const char* data;
    std::size_t bytes;
    tag what;
    nb::object kept; // has the data of a value
};

raw raw_of(nb::handle object, as role) {
    Py_ssize_t bytes = 0;
    if (PyUnicode_Check(object.ptr())) {
        const char* text = PyUnicode_AsUTF8AndSize(object.ptr(), &bytes);
        if (text == nullptr) throw nb::python_error(); // a lone surrogate
        return {text, static_cast<std::size_t>(bytes), tag_str, {}};
    }
    nb::object made = nb::borrow(object);
    const bool plain = PyBytes_Check(object.ptr()) != 0;
    if (!plain) {
        PyObject* const here = encoded_here(object.ptr());
        if (here == nullptr && PyErr_Occurred() != nullptr) throw nb::python_error();
        made = here != nullptr
                   ? nb::steal(here)
                   : call("holdfast._encoding", "encode", made, nb::bool_(role == as::key));
    }
    char* data = nullptr;
    if (PyBytes_AsStringAndSize(made.ptr(), &data, &bytes) != 0) throw nb::python_error();
    return {data, static_cast<std::size_t>(bytes), plain ? tag_bytes : tag_value, std::move(made)};
}

raw checked(nb::handle object, as role) {
    raw from = raw_of(object, role);
    check_size(from.bytes + 1);
    return from;
}

void store(char* to, const raw& from) {
    if (from.bytes != 0) std::memcpy(to, from.data, from.bytes);
    to[from.bytes] = from.what;
}

} // namespace

void raise(const char* code, const char* message) {
    const nb::object error = call("holdfast._error", "Error", nb::str(code), nb::str(message));
    PyErr_SetObject(error.type().ptr(), error.ptr());
    throw nb::python_error();
}

void await_end() noexcept {
    for (;;) ::pause();
}

void check(hf_status found) {
    if (found != HF_OK) raise(hf_strerror(found), hf_error_text());
}

const std::string& text_of(const char* what, const std::string& given) {
    if (given.find('\0') != std::string::npos)
        throw nb::value_error((std::string(what) + ": contains a zero byte").c_str());
    return given;
}

void check_size(std::size_t stored_bytes) {
    if (stored_bytes <= stored_bytes_max) return;
    throw nb::value_error(("an element, or a key and its value together, take at most 1 GiB (" +
                           std::to_string(stored_bytes_max) + " bytes), not " +
                           std::to_string(stored_bytes))
                              .c_str());
}

bool storable(nb::handle object, as role) {
    if (PyUnicode_Check(object.ptr()) || PyBytes_Check(object.ptr())) return true;
    try {
        (void)raw_of(object, role);
        return true;
    } catch (const nb::python_error& error) {
        if (error.matches(PyExc_TypeError)) return false;
        throw;
    }
}

encoded::encoded(nb::handle object, as role) {
    const raw from = checked(object, role);
    bytes_ = from.bytes + 1;
    if (bytes_ > sizeof few_) {
        many_ = std::make_unique_for_overwrite<char[]>(bytes_);
        data_ = many_.get();
    }
    store(data_, from);
}

void encoded_list::add(nb::handle object, as role) {
    const raw from = checked(object, role);
    const std::size_t at = all_.size();
    all_.resize(at + from.bytes + 1);
    store(&all_[at], from);
    places_.push_back({at, from.bytes + 1});
}

void encoded_list::add_stored(hf_bytes stored) {
    const char* data = static_cast<const char*>(stored.data);
    places_.push_back({all_.size(), stored.bytes});
    all_.insert(all_.end(), data, data + stored.bytes);
}

std::vector<hf_bytes> encoded_list::get() const {
    std::vector<hf_bytes> found;
    found.reserve(places_.size());
    for (const place& each : places_) found.push_back({&all_[each.at], each.bytes});
    return found;
}

half_decoded::half_decoded(hf_bytes stored) {
    const char* data = static_cast<const char*>(stored.data);
    const Py_ssize_t bytes = static_cast<Py_ssize_t>(stored.bytes) - 1;
    PyObject* made = nullptr;
    const char tag = bytes >= 0 ? data[bytes] : '\x7f';
    if (tag == tag_value) {
        made = decoded_here(data, static_cast<std::size_t>(bytes));
        value_ = made == nullptr && PyErr_Occurred() == nullptr;
    }
    if (tag == tag_str) made = PyUnicode_DecodeUTF8(data, bytes, nullptr);
    else if (tag == tag_bytes || value_) made = PyBytes_FromStringAndSize(data, bytes);
    else if (tag != tag_value)
        raise("corrupt",
              "corrupt: an element is neither str, bytes nor a value of version 1; was it written "
              "by Python, and not by a later version?");
    if (made == nullptr) throw nb::python_error();
    made_ = nb::steal(made);
}

bool half_decoded::is(hf_bytes stored) const noexcept {
    const auto bytes = static_cast<std::size_t>(PyBytes_GET_SIZE(made_.ptr()));
    const char* data = static_cast<const char*>(stored.data);
    return stored.bytes == bytes + 1 && data[bytes] == tag_value &&
           std::memcmp(data, PyBytes_AS_STRING(made_.ptr()), bytes) == 0;
}

nb::object half_decoded::whole() const {
    if (!value_) return made_;
    return call("holdfast._encoding", "decode", made_);
}

nb::object decoded(hf_bytes stored) { return half_decoded(stored).whole(); }

} // namespace hf_python
