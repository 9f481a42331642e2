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

bool is_registered(nb::handle object) {
    return nb::cast<bool>(call("holdfast._encoding", "is_registered", object));
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
        (void)encoded(object, role);
        return true;
    } catch (const nb::python_error& error) {
        if (error.matches(PyExc_TypeError)) return false;
        throw;
    }
}

encoded::encoded(nb::handle object, as role) {
    Py_ssize_t bytes = 0;
    char what = 0;
    const bool text = PyUnicode_Check(object.ptr()), plain = text || PyBytes_Check(object.ptr());
    const bool exact = PyUnicode_CheckExact(object.ptr()) || PyBytes_CheckExact(object.ptr());
    if (!plain || (!exact && role == as::value && is_registered(object))) {
        const encoding_facts facts = encode(made_, object, role);
        what = facts.version_2 ? tag_value_2 : tag_value;
        may_have_old_ = facts.may_have_old;
    } else if (text) {
        const char* utf8 = PyUnicode_AsUTF8AndSize(object.ptr(), &bytes);
        if (utf8 == nullptr) throw nb::python_error(); // a lone surrogate
        check_size(static_cast<std::size_t>(bytes) + 1);
        made_.append(utf8, static_cast<std::size_t>(bytes));
        what = tag_str;
    } else {
        check_size(static_cast<std::size_t>(PyBytes_GET_SIZE(object.ptr())) + 1);
        made_.append(PyBytes_AS_STRING(object.ptr()),
                     static_cast<std::size_t>(PyBytes_GET_SIZE(object.ptr())));
        what = tag_bytes;
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

half_decoded::half_decoded(hf_bytes stored) {
    const char* data = static_cast<const char*>(stored.data);
    const Py_ssize_t bytes = static_cast<Py_ssize_t>(stored.bytes) - 1;
    PyObject* made = nullptr;
    const char tag = bytes >= 0 ? data[bytes] : '\x7f';
    if (tag == tag_value) {
        made = decoded_number(data, static_cast<std::size_t>(bytes));
        if (made == nullptr && PyErr_Occurred() == nullptr) value_ = tag;
    } else if (tag == tag_value_2) value_ = tag;
    if (tag == tag_str) made = PyUnicode_DecodeUTF8(data, bytes, nullptr);
    else if (tag == tag_bytes || value_ != 0) made = PyBytes_FromStringAndSize(data, bytes);
    else if (tag != tag_value)
        raise("corrupt",
              "corrupt: an element is neither str, bytes nor a value of version 1 or 2; was it "
              "written by Python, and not by a later version?");
    if (made == nullptr) throw nb::python_error();
    made_ = nb::steal(made);
}

bool half_decoded::is(hf_bytes stored) const noexcept {
    const auto bytes = static_cast<std::size_t>(PyBytes_GET_SIZE(made_.ptr()));
    const char* data = static_cast<const char*>(stored.data);
    return stored.bytes == bytes + 1 && data[bytes] == value_ &&
           std::memcmp(data, PyBytes_AS_STRING(made_.ptr()), bytes) == 0;
}

nb::object half_decoded::whole(form made) const {
    if (value_ == 0) return made_;
    const auto bytes = static_cast<std::size_t>(PyBytes_GET_SIZE(made_.ptr()));
    return decode(PyBytes_AS_STRING(made_.ptr()), bytes, value_ == tag_value ? 1 : 2, made);
}

nb::object decoded(hf_bytes stored, form made) { return half_decoded(stored).whole(made); }

} // namespace hf_python
