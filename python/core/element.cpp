// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "element.hpp"

#include <cstring>
#include <string>

namespace hf_python {

namespace {

enum tag : char { tag_bytes = 0, tag_str = 1 }; // durable: never change their meaning

struct raw {
    const char* data;
    std::size_t bytes;
    tag what;
};

raw raw_of(nb::handle object) {
    Py_ssize_t bytes = 0;
    if (PyUnicode_Check(object.ptr())) {
        const char* text = PyUnicode_AsUTF8AndSize(object.ptr(), &bytes);
        if (text == nullptr) throw nb::python_error(); // a lone surrogate
        return {text, static_cast<std::size_t>(bytes), tag_str};
    }
    char* data = nullptr;
    if (PyBytes_Check(object.ptr()) && PyBytes_AsStringAndSize(object.ptr(), &data, &bytes) == 0)
        return {data, static_cast<std::size_t>(bytes), tag_bytes};
    throw nb::type_error(
        (std::string("expected str or bytes, not ") + Py_TYPE(object.ptr())->tp_name).c_str());
}

void store(char* to, const raw& from) {
    if (from.bytes != 0) std::memcpy(to, from.data, from.bytes);
    to[from.bytes] = from.what;
}

} // namespace

void raise(const char* code, const char* message) {
    const nb::object type = nb::module_::import_("holdfast._error").attr("Error");
    PyErr_SetObject(type.ptr(), nb::make_tuple(code, message).ptr());
    throw nb::python_error();
}

void check(hf_status found) {
    if (found != HF_OK) raise(hf_strerror(found), hf_error_text());
}

const std::string& text_of(const char* what, const std::string& given) {
    if (given.find('\0') != std::string::npos)
        throw nb::value_error((std::string(what) + ": contains a zero byte").c_str());
    return given;
}

bool storable(nb::handle object) noexcept {
    return PyUnicode_Check(object.ptr()) || PyBytes_Check(object.ptr());
}

encoded::encoded(nb::handle object) {
    const raw from = raw_of(object);
    bytes_ = from.bytes + 1;
    if (bytes_ > sizeof few_) {
        many_ = std::make_unique_for_overwrite<char[]>(bytes_);
        data_ = many_.get();
    }
    store(data_, from);
}

void encoded_list::add(nb::handle object) {
    const raw from = raw_of(object);
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

nb::object decoded(hf_bytes stored) {
    const char* data = static_cast<const char*>(stored.data);
    const Py_ssize_t bytes = static_cast<Py_ssize_t>(stored.bytes) - 1;
    PyObject* made = nullptr;
    if (bytes >= 0 && data[bytes] == tag_str) made = PyUnicode_DecodeUTF8(data, bytes, nullptr);
    else if (bytes >= 0 && data[bytes] == tag_bytes) made = PyBytes_FromStringAndSize(data, bytes);
    else
        raise("corrupt", "corrupt: an element is neither str nor bytes; was it written by Python?");
    if (made == nullptr) throw nb::python_error();
    return nb::steal(made);
}

} // namespace hf_python
