// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "element.hpp"

#include <cstring>
#include <string>
#include <unistd.h>

namespace hf_python {

namespace {

// Durable: never change their meaning. Of a value, the tag is its encoding's version and 1: the
// lowest version that has its kinds.
enum tag : char { tag_bytes = 0, tag_str = 1, tag_value = 2, tag_value_2 = 3 };

[[noreturn]] void refuse_tag() {
    raise("corrupt", "corrupt: an element is neither str, bytes nor a value of version 1 or 2; was "
                     "it written by Python, and not by a later version?");
}

/// Whether these bytes have a surrogate.
bool has_surrogate(const char* data, std::size_t bytes) noexcept {
    const char* const end = data + bytes;
    while (data != end) {
        data = static_cast<const char*>(
            std::memchr(data, '\xed', static_cast<std::size_t>(end - data)));
        if (data == nullptr) return false;
        ++data;
        if (data != end && static_cast<unsigned char>(*data) >= 0xa0) return true;
    }
    return false;
}

/// Raises the error that the making of a str left. Where its bytes are not UTF-8, "corrupt".
[[noreturn]] void refuse_str() {
    const nb::python_error error;
    if (!error.matches(PyExc_UnicodeDecodeError)) throw nb::python_error(error);
    Py_ssize_t at = 0;
    (void)PyUnicodeDecodeError_GetStart(error.value().ptr(), &at);
    raise("corrupt", ("corrupt: a str's byte " + std::to_string(at) + ": expected UTF-8").c_str());
}

} // namespace

void raise(const char* code, const char* message) {
    const nb::object error = call("holdfast._error", "Error", nb::str(code), nb::str(message));
    PyErr_SetObject(error.type().ptr(), error.ptr());
    throw nb::python_error();
}

nb::object call(const char* module, const char* name, nb::handle first, nb::handle second) {
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

utf8::utf8(PyObject* of) : data_(PyUnicode_AsUTF8AndSize(of, &bytes_)) {
    if (data_ != nullptr) return;
    if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) throw nb::python_error();
    PyErr_Clear();
    made_ = nb::steal(PyUnicode_AsEncodedString(of, "utf-8", "surrogatepass"));
    if (!made_.is_valid()) throw nb::python_error();
    data_ = PyBytes_AS_STRING(made_.ptr());
    bytes_ = PyBytes_GET_SIZE(made_.ptr());
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

void refuse_size(std::size_t stored_bytes) {
    throw nb::value_error(("an element, or a key and its value together, take at most 1 GiB (" +
                           std::to_string(stored_bytes_max) + " bytes), not " +
                           std::to_string(stored_bytes))
                              .c_str());
}

bool storable(nb::handle object, as role) {
    if (PyUnicode_CheckExact(object.ptr()) || PyBytes_CheckExact(object.ptr())) return true;
    try {
        (void)encoded(object, role);
        return true;
    } catch (const nb::python_error& error) {
        if (error.matches(PyExc_TypeError)) return false;
        throw;
    }
}

encoded::encoded(nb::handle object, as role) {
    // A key of a subclass is equal to one of str or bytes, and is stored as that.
    const bool key = role != as::value;
    char what = 0;
    if (PyUnicode_CheckExact(object.ptr()) || (key && PyUnicode_Check(object.ptr()))) {
        const utf8 text(object.ptr());
        check_size(text.size() + 1);
        made_.append(text.data(), text.size());
        what = tag_str;
    } else if (PyBytes_CheckExact(object.ptr()) || (key && PyBytes_Check(object.ptr()))) {
        const auto bytes = static_cast<std::size_t>(PyBytes_GET_SIZE(object.ptr()));
        check_size(bytes + 1);
        made_.append(PyBytes_AS_STRING(object.ptr()), bytes);
        what = tag_bytes;
    } else {
        const encoding_facts facts = encode(made_, object, role);
        what = facts.version_2 ? tag_value_2 : tag_value;
        may_have_old_ = facts.may_have_old;
    }
    made_.append(what);
    check_size(made_.size());
}

encoded_key::encoded_key(nb::handle object) : encoded(object, as::key) {
    if (!may_have_old()) return;
    old_.emplace(object, as::old_key);
    if (same(get(), old_->get())) old_.reset();
}

void encoded_list::add(nb::handle object, as role) { add(encoded(object, role).get()); }

void encoded_list::add(hf_bytes stored) {
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

half_decoded::half_decoded(hf_bytes stored, room* within) {
    const char* data = static_cast<const char*>(stored.data);
    const Py_ssize_t bytes = static_cast<Py_ssize_t>(stored.bytes) - 1;
    PyObject* made = nullptr;
    const char tag = bytes >= 0 ? data[bytes] : '\x7f';
    if (tag == tag_value) {
        made = decoded_number(data, static_cast<std::size_t>(bytes));
        if (made == nullptr && PyErr_Occurred() == nullptr) value_ = tag;
    } else if (tag == tag_value_2) value_ = tag;
    else if (tag == tag_str && has_surrogate(data, static_cast<std::size_t>(bytes))) value_ = tag;
    bytes_ = static_cast<std::size_t>(bytes);
    if (value_ != 0 && within != nullptr && bytes_ <= sizeof within->bytes) {
        data_ = static_cast<const char*>(std::memcpy(within->bytes, data, bytes_));
        return;
    }
    if (tag == tag_str && value_ == 0) made = PyUnicode_DecodeUTF8(data, bytes, nullptr);
    else if (tag == tag_bytes || value_ != 0) made = PyBytes_FromStringAndSize(data, bytes);
    else if (tag != tag_value) refuse_tag();
    if (made == nullptr && tag == tag_str) refuse_str();
    if (made == nullptr) throw nb::python_error();
    made_ = nb::steal(made);
    if (value_ != 0) data_ = PyBytes_AS_STRING(made);
}

stored_bytes::stored_bytes(hf_bytes stored)
    : data(static_cast<const char*>(stored.data)), bytes(stored.bytes - 1) {
    const char tag = stored.bytes != 0 ? data[bytes] : '\x7f';
    if (tag == tag_str || tag == tag_value_2)
        throw nb::type_error("view: expected bytes or an array, found another value: read it");
    if (tag != tag_bytes && tag != tag_value) refuse_tag();
    value_ = tag == tag_value;
}

bool half_decoded::is(hf_bytes stored) const noexcept {
    const char* data = static_cast<const char*>(stored.data);
    return stored.bytes == bytes_ + 1 && data[bytes_] == value_ &&
           std::memcmp(data, data_, bytes_) == 0;
}

nb::object half_decoded::whole(form made) const {
    if (value_ == 0) return made_;
    if (value_ == tag_str) {
        PyObject* const text = str_of(data_, bytes_);
        if (text == nullptr) refuse_str();
        return nb::steal(text);
    }
    return decode(data_, bytes_, value_ == tag_value ? 1 : 2, made, made_);
}

nb::object decoded(hf_bytes stored, form made) {
    half_decoded::room room;
    return half_decoded(stored, &room).whole(made);
}

} // namespace hf_python
