// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "encoding.hpp"

#include "element.hpp"
#include "kinds.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hf_python {

namespace {

/// The items of a small dict whose keys are short str, in the order of the keys' encodings. It
/// holds them, whatever becomes of the dict (4).
class str_items {
public:
    static constexpr Py_ssize_t count_max = 16;
    static constexpr Py_ssize_t bytes_max = 127; // then the length is a byte, and sorts first
    struct item {
        PyObject *key, *value;
        std::string_view text;
    };
    /// Requires: the dict has at most count_max items.
    explicit str_items(PyObject* dict) {
        PyObject *key, *value;
        for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, &value);) {
            Py_ssize_t bytes = bytes_max + 1;
            const char* data = nullptr;
            if (PyUnicode_CheckExact(key)) data = PyUnicode_AsUTF8AndSize(key, &bytes);
            if (data == nullptr) PyErr_Clear(); // of a surrogate, or there is no memory
            if (data == nullptr || bytes > bytes_max) return;
            Py_INCREF(key), Py_INCREF(value);
            add({key, value, {data, static_cast<std::size_t>(bytes)}});
        }
        all_ = true;
    }
    ~str_items() {
        for (const item& each : get()) Py_DECREF(each.key), Py_DECREF(each.value);
    }
    str_items(const str_items&) = delete;
    /// Whether all items of the dict are here. Else a key is another one, and the rest is missing.
    bool all() const noexcept { return all_; }
    std::span<const item> get() const noexcept { return {items_, count_}; }

private:
    void add(const item& added) noexcept {
        const auto below = [&](const item& other) {
            const std::size_t bytes = added.text.size(), of_other = other.text.size();
            return bytes != of_other ? bytes < of_other : sorts_below(added.text, other.text);
        };
        std::size_t at = count_++;
        for (; at != 0 && below(items_[at - 1]); --at) items_[at] = items_[at - 1];
        items_[at] = added;
    }
    item items_[count_max];
    std::size_t count_ = 0;
    bool all_ = false;
};

class encoder {
public:
    encoder(buffer& to, as role)
        : to_(to), in_key_(role != as::value), normalises_(role == as::key) {}
    void value(PyObject* of, unsigned depth, bool key);
    encoding_facts facts;

private:
    struct entry {
        std::size_t begin, key_end, end;
    };
    void varint(std::uint64_t number) {
        for (; number > 127; number >>= 7) to_.append(static_cast<char>(number | 128));
        to_.append(static_cast<char>(number));
    }
    void big_endian(std::uint64_t number, std::size_t count) {
        while (count-- > 0) to_.append(static_cast<char>(number >> 8 * count));
    }
    void sized(kind what, const char* data, Py_ssize_t bytes) {
        to_.append(static_cast<char>(what));
        varint(static_cast<std::uint64_t>(bytes));
        to_.append(data, static_cast<std::size_t>(bytes));
    }
    void str(PyObject* of);
    bool integer(PyObject* of);
    void floating(PyObject* of);
    void sequence(PyObject* of, kind what, unsigned depth, bool key);
    void mapping(PyObject* of, unsigned depth);
    bool small_mapping(PyObject* of, unsigned depth);
    void elements(PyObject* of, kind what, unsigned depth);
    void in_order(std::size_t first, std::size_t begin, const char* twice);
    void leaf(PyObject* of, unsigned depth, bool key);
    void deeper(unsigned depth) const {
        if (depth == depth_max)
            throw nb::value_error("cannot store what is nested deeper than 64, or contains itself");
    }
    bool less(const entry& a, const entry& b) const {
        return sorts_below({to_.data() + a.begin, a.key_end - a.begin},
                           {to_.data() + b.begin, b.key_end - b.begin});
    }

    buffer& to_;
    std::vector<entry> entries_; // of the containers that are being encoded, innermost last
    bool in_key_, normalises_;
};

void encoder::str(PyObject* of) {
    const utf8 made(of);
    sized(text, made.data(), static_cast<Py_ssize_t>(made.size()));
}

/// False: it has more than 64 bits.
bool encoder::integer(PyObject* of) {
    int beyond = 0;
    const long long number = PyLong_AsLongLongAndOverflow(of, &beyond);
    if (beyond != 0) return false;
    const auto size = static_cast<std::uint64_t>(number >= 0 ? number : ~number);
    const auto count = static_cast<std::size_t>(std::bit_width(size) + 7) / 8;
    to_.append(static_cast<char>(number >= 0 ? natural : negative));
    to_.append(static_cast<char>(count));
    big_endian(size, count);
    return true;
}

void encoder::floating(PyObject* of) {
    double number = PyFloat_AS_DOUBLE(of);
    if (in_key_ && number == 0 && std::signbit(number)) { // as 0.0, which is equal
        facts.may_have_old = true;
        if (normalises_) number = 0;
    }
    to_.append(static_cast<char>(real));
    big_endian(number == number ? std::bit_cast<std::uint64_t>(number) : nan_bits, sizeof number);
}

void encoder::sequence(PyObject* of, kind what, unsigned depth, bool key) {
    deeper(depth);
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(of);
    to_.append(static_cast<char>(what));
    varint(static_cast<std::uint64_t>(count));
    for (Py_ssize_t i = 0; i < count; ++i) {
        if (PySequence_Fast_GET_SIZE(of) != count) // (4)
            throw std::runtime_error("a list changed while it was stored");
        const nb::object each = nb::borrow(PySequence_Fast_GET_ITEM(of, i));
        value(each.ptr(), depth + 1, key);
    }
    if (PySequence_Fast_GET_SIZE(of) != count)
        throw std::runtime_error("a list changed while it was stored");
}

void encoder::mapping(PyObject* of, unsigned depth) {
    deeper(depth);
    const Py_ssize_t count = PyDict_GET_SIZE(of);
    to_.append(static_cast<char>(dict));
    varint(static_cast<std::uint64_t>(count));
    if (count <= str_items::count_max && small_mapping(of, depth)) return;
    const std::size_t first = entries_.size(), begin = to_.size();
    entries_.reserve(std::max<std::size_t>(16, first + static_cast<std::size_t>(count)));
    PyObject *key, *each;
    for (Py_ssize_t at = 0; PyDict_Next(of, &at, &key, &each);) {
        const nb::object kept_key = nb::borrow(key), kept = nb::borrow(each);
        entry place{to_.size(), 0, 0};
        value(key, depth + 1, true);
        place.key_end = to_.size();
        value(each, depth + 1, false);
        place.end = to_.size();
        entries_.push_back(place);
        if (PyDict_GET_SIZE(of) != count) break; // (4)
    }
    if (PyDict_GET_SIZE(of) != count || entries_.size() - first != static_cast<std::size_t>(count))
        throw std::runtime_error("a dict changed while it was stored");
    in_order(first, begin, "cannot store a dict with two keys that are not a number (nan)");
}

/// Appends the items where that needs no sorting of encodings. Else false, and nothing is appended.
bool encoder::small_mapping(PyObject* of, unsigned depth) {
    const str_items items(of);
    if (!items.all()) return false;
    for (const str_items::item& each : items.get()) {
        sized(text, each.text.data(), static_cast<Py_ssize_t>(each.text.size()));
        value(each.value, depth + 1, false);
    }
    if (static_cast<std::size_t>(PyDict_GET_SIZE(of)) != items.get().size())
        throw std::runtime_error("a dict changed while it was stored");
    return true;
}

void encoder::elements(PyObject* of, kind what, unsigned depth) {
    deeper(depth);
    facts.version_2 = true;
    const nb::object copied = nb::steal(PySequence_Tuple(of)); // (4)
    if (!copied.is_valid()) throw nb::python_error();
    const Py_ssize_t count = PyTuple_GET_SIZE(copied.ptr());
    to_.append(static_cast<char>(what));
    varint(static_cast<std::uint64_t>(count));
    const std::size_t first = entries_.size(), begin = to_.size();
    for (Py_ssize_t i = 0; i < count; ++i) {
        const std::size_t at = to_.size();
        value(PyTuple_GET_ITEM(copied.ptr(), i), depth + 1, true);
        entries_.push_back({at, to_.size(), to_.size()});
    }
    in_order(first, begin, "cannot store a set with two elements that are not a number (nan)");
}

/// Puts the entries from 'first' on, whose bytes lie from 'begin' on, into their one order (1), and
/// takes them off the list.
void encoder::in_order(std::size_t first, std::size_t begin, const char* twice) {
    const std::span all(entries_.begin() + static_cast<std::ptrdiff_t>(first), entries_.end());
    const auto less_than = [this](const entry& a, const entry& b) { return less(a, b); };
    if (!std::is_sorted(all.begin(), all.end(), less_than)) {
        std::sort(all.begin(), all.end(), less_than);
        buffer sorted;
        for (entry& each : all) {
            const std::size_t at = begin + sorted.size(), moved = at - each.begin;
            sorted.append(to_.data() + each.begin, each.end - each.begin);
            each = {at, each.key_end + moved, each.end + moved};
        }
        std::memcpy(to_.data() + begin, sorted.data(), sorted.size());
    }
    for (std::size_t i = 1; i < all.size(); ++i) {
        if (!less(all[i - 1], all[i])) throw nb::value_error(twice);
    }
    entries_.resize(first);
}

/// What Python code encodes: to bytes, or as another value (a tuple of it), or as the name of a
/// registered class and a value (a tuple of both).
void encoder::leaf(PyObject* of, unsigned depth, bool key) {
    const nb::object how = nb::int_(normalises_ ? 2 : key ? 1 : 0);
    const nb::object made = call("holdfast._encoding", "leaf", of, how);
    if (PyBytes_Check(made.ptr())) {
        const auto first = static_cast<unsigned char>(PyBytes_AS_STRING(made.ptr())[0]);
        facts.version_2 |= first > leaf_last_1;
        facts.may_have_old |= in_key_ && first == moment;
        return to_.append(PyBytes_AS_STRING(made.ptr()),
                          static_cast<std::size_t>(PyBytes_GET_SIZE(made.ptr())));
    }
    if (PyTuple_GET_SIZE(made.ptr()) == 1)
        return value(PyTuple_GET_ITEM(made.ptr(), 0), depth, key);
    deeper(depth);
    facts.version_2 = true;
    to_.append(static_cast<char>(registered));
    Py_ssize_t bytes = 0;
    const char* name = PyUnicode_AsUTF8AndSize(PyTuple_GET_ITEM(made.ptr(), 0), &bytes);
    if (name == nullptr) throw nb::python_error();
    varint(static_cast<std::uint64_t>(bytes));
    to_.append(name, static_cast<std::size_t>(bytes));
    value(PyTuple_GET_ITEM(made.ptr(), 1), depth + 1, key);
}

void encoder::value(PyObject* of, unsigned depth, bool key) {
    PyTypeObject* const type = Py_TYPE(of);
    if (type == &PyUnicode_Type) return str(of);
    if (type == &PyLong_Type) {
        if (!integer(of)) leaf(of, depth, key);
        return;
    }
    if (of == Py_None) return to_.append(static_cast<char>(none));
    if (type == &PyBool_Type) return to_.append(static_cast<char>(of == Py_True ? yes : no));
    if (type == &PyFloat_Type) return floating(of);
    if (type == &PyBytes_Type)
        return sized(bytes_kind, PyBytes_AS_STRING(of), PyBytes_GET_SIZE(of));
    if (type == &PyTuple_Type) return sequence(of, tuple, depth, key);
    if (type == &PyFrozenSet_Type) return elements(of, frozenset, depth);
    if (!key) {
        if (type == &PyDict_Type) return mapping(of, depth);
        if (type == &PyList_Type) return sequence(of, list, depth, false);
        if (type == &PySet_Type) return elements(of, set_kind, depth);
        if (type == frozen.dict) return mapping(of, depth);
        if (type == frozen.list) return sequence(of, list, depth, false);
        if (type == frozen.set) return elements(of, set_kind, depth);
    }
    leaf(of, depth, key);
}

} // namespace

void buffer::grow(std::size_t bytes) {
    const std::size_t wanted = std::max(2 * capacity_, size_ + bytes);
    auto more = std::make_unique_for_overwrite<char[]>(wanted);
    std::memcpy(more.get(), data_, size_);
    many_ = std::move(more);
    data_ = many_.get();
    capacity_ = wanted;
}

encoding_facts encode(buffer& to, nb::handle object, as role) {
    encoder made(to, role);
    made.value(object.ptr(), 0, role != as::value);
    return made.facts;
}

} // namespace hf_python
