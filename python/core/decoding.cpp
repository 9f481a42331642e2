// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "element.hpp"
#include "encoding.hpp"
#include "kinds.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace hf_python {

frozen_types frozen;

namespace {

/// The number of these bytes, the most significant first.
inline std::uint64_t number_of(const char* data, std::size_t bytes) noexcept {
    std::uint64_t number = 0;
    for (std::size_t i = 0; i < bytes; ++i)
        number = number << 8 | static_cast<unsigned char>(data[i]);
    return number;
}

/// The str that were keys of dicts, by their bytes. The same ones come again and again, and have
/// their hash already. A place has the last key that came to it.
class known_keys {
public:
    static constexpr std::size_t bytes_max = 64;
    /// The key of these bytes; made by 'make' if it is not known. Requires: bytes <= bytes_max.
    template <class Make> nb::object get(const char* data, std::size_t bytes, Make&& make) {
        const ends wanted = ends_of(data, bytes);
        place& at = places_[(wanted.first ^ std::rotl(wanted.last, 23) ^ bytes) *
                                std::uint64_t{0x9e37'79b9'7f4a'7c15} >>
                            (64 - bits)];
        if (at.key != nullptr && at.bytes == bytes && at.of == wanted &&
            (bytes <= sizeof wanted || std::memcmp(at.data, data, bytes) == 0))
            return nb::borrow(at.key);
        nb::object made = make();
        Py_ssize_t own_bytes = 0; // its own UTF-8, which it keeps
        const char* own = PyUnicode_AsUTF8AndSize(made.ptr(), &own_bytes);
        if (own == nullptr) return PyErr_Clear(), made; // of a surrogate, or there is no memory
        Py_XDECREF(at.key);
        at = {nb::borrow(made).release().ptr(), own, bytes, wanted};
        return made;
    }

private:
    struct ends { // all of it, up to 16 bytes
        std::uint64_t first = 0, last = 0;
        bool operator==(const ends&) const = default;
    };
    struct place {
        PyObject* key = nullptr;
        const char* data = nullptr;
        std::size_t bytes = 0;
        ends of;
    };
    template <class Word> static ends words(const char* data, std::size_t bytes) noexcept {
        Word first, last;
        std::memcpy(&first, data, sizeof first);
        std::memcpy(&last, data + bytes - sizeof last, sizeof last);
        return {first, last};
    }
    static ends ends_of(const char* data, std::size_t bytes) noexcept {
        if (bytes >= sizeof(std::uint64_t)) return words<std::uint64_t>(data, bytes);
        if (bytes >= sizeof(std::uint32_t)) return words<std::uint32_t>(data, bytes);
        return {number_of(data, bytes), 0};
    }
    static constexpr unsigned bits = 10;
    place places_[std::size_t{1} << bits];
};
known_keys known; // under the interpreter's lock

class decoder {
public:
    decoder(const char* data, std::size_t bytes, int version, form made, nb::object all)
        : data_(data), bytes_(bytes), last_kind_(version == 1 ? leaf_last_1 : kind_end - 1),
          frozen_(made == form::frozen), all_(std::move(all)) {}
    array_place array();
    nb::object whole() {
        nb::object found = value(0, false);
        if (at_ != bytes_) wrong("expected the end of the value, found more bytes", at_);
        return found;
    }

private:
    [[noreturn, gnu::cold]] void wrong(const std::string& what, std::size_t at) const {
        raise("corrupt", ("corrupt: a value's byte " + std::to_string(at) + " of " +
                          std::to_string(bytes_) + ": " + what)
                             .c_str());
    }
    [[noreturn, gnu::cold]] void too_few(std::uint64_t count) const {
        const std::uint64_t found = bytes_ - at_;
        wrong("expected " + std::to_string(count) + " bytes, found " + std::to_string(found), at_);
    }
    const char* take(std::uint64_t count) {
        if (count > bytes_ - at_) too_few(count);
        return data_ + std::exchange(at_, at_ + count);
    }
    std::uint64_t varint() {
        const auto byte = static_cast<unsigned char>(at_ != bytes_ ? data_[at_] : '\xff');
        if (byte > 127) return long_varint();
        ++at_;
        return byte;
    }
    [[gnu::noinline]] std::uint64_t long_varint();
    std::uint64_t count(std::uint64_t bytes_each);
    nb::object value(unsigned depth, bool key);
    [[gnu::noinline]] nb::object compound(unsigned what, unsigned depth, bool key);
    nb::object integer(unsigned what);
    nb::object floating();
    nb::object str();
    nb::object dict_key(unsigned depth);
    nb::object bytes();
    nb::object sequence(unsigned what, unsigned depth, bool key);
    nb::object entries(unsigned depth);
    nb::object elements(unsigned what, unsigned depth);
    nb::object made_by_class(unsigned depth, bool key);
    nb::object leaf(std::size_t begin);
    /// What was read from 'begin' on is a key that sorts above the one before it.
    void check_order(std::string_view& last, std::size_t begin) const {
        const std::string_view written(data_ + begin, at_ - begin);
        if (!sorts_below(last, written))
            wrong("expected a key that sorts above the one before it", begin);
        last = written;
    }

    const char* data_;
    std::size_t bytes_, at_ = 0;
    unsigned last_kind_;
    bool frozen_;
    nb::object all_; // as an object, for Python code
};

nb::object stolen(PyObject* made) {
    if (made == nullptr) throw nb::python_error();
    return nb::steal(made);
}

/// An empty object of a frozen type.
nb::object empty(PyTypeObject* type) {
    static PyObject* const nothing = PyTuple_New(0);
    return stolen(type->tp_new(type, nothing, nullptr));
}

/// Hides from gc.get_objects() what has still to be filled: code of the program that runs meanwhile
/// would find items that are not there. Dicts cannot be hidden, but are whole after each item.
nb::object hidden(nb::object made) {
    PyObject_GC_UnTrack(made.ptr());
    return made;
}

nb::object shown(nb::object filled) {
    if (PyObject_GC_IsTracked(filled.ptr()) == 0) PyObject_GC_Track(filled.ptr());
    return filled;
}

std::uint64_t decoder::long_varint() {
    const std::size_t begin = at_;
    std::uint64_t number = 0;
    unsigned shift = 0;
    for (;;) {
        const auto byte = static_cast<unsigned char>(*take(1));
        number |= std::uint64_t{byte & 127u} << shift;
        if (byte < 128) {
            if ((byte == 0 && shift != 0) || shift > 62 || number >> 63 != 0)
                wrong("expected a number of at most 9223372036854775807, in its shortest form",
                      begin);
            return number;
        }
        shift += 7;
        if (shift > 63) wrong("expected the end of a number, found more of it", begin);
    }
}

/// The number of items that follow, each of at least so many bytes (2).
std::uint64_t decoder::count(std::uint64_t bytes_each) {
    const std::size_t begin = at_;
    const std::uint64_t number = varint();
    if (number > (bytes_ - at_) / bytes_each)
        wrong("expected " + std::to_string(number) + " items, found " +
                  std::to_string(bytes_ - at_) + " bytes",
              begin);
    return number;
}

nb::object decoder::integer(unsigned what) {
    const std::size_t begin = at_;
    const std::uint64_t bytes = varint();
    const char* data = take(bytes);
    if (bytes != 0 && *data == 0) wrong("expected a number in its shortest form", begin);
    if (bytes > sizeof(std::uint64_t))
        return call("holdfast._encoding", "large_int",
                    nb::bytes(data, static_cast<std::size_t>(bytes)), nb::bool_(what == negative));
    const std::uint64_t size = number_of(data, static_cast<std::size_t>(bytes));
    if (what == natural) return stolen(PyLong_FromUnsignedLongLong(size));
    if (size >> 63 == 0) return stolen(PyLong_FromLongLong(~static_cast<long long>(size)));
    return call("holdfast._encoding", "large_int", nb::bytes(data, static_cast<std::size_t>(bytes)),
                nb::bool_(true));
}

nb::object decoder::floating() {
    const std::size_t begin = at_;
    const std::uint64_t bits = number_of(take(sizeof(double)), sizeof(double));
    const auto number = std::bit_cast<double>(bits);
    if (number != number && bits != nan_bits)
        wrong("expected the one not-a-number that is stored, found another", begin);
    return stolen(PyFloat_FromDouble(number));
}

nb::object decoder::str() {
    const std::uint64_t size = varint();
    const std::size_t begin = at_;
    const char* data = take(size);
    PyObject* const made = str_of(data, static_cast<std::size_t>(size));
    if (made != nullptr) return nb::steal(made);
    nb::python_error error;
    if (!error.matches(PyExc_UnicodeDecodeError)) throw error;
    Py_ssize_t start = 0;
    (void)PyUnicodeDecodeError_GetStart(error.value().ptr(), &start);
    wrong("expected UTF-8", begin + static_cast<std::size_t>(start));
}

nb::object decoder::bytes() {
    const std::uint64_t size = varint();
    return stolen(PyBytes_FromStringAndSize(take(size), static_cast<Py_ssize_t>(size)));
}

nb::object decoder::sequence(unsigned what, unsigned depth, bool key) {
    const auto items = static_cast<Py_ssize_t>(count(1));
    if (what == tuple && items == 0) return stolen(PyTuple_New(0)); // the only one
    const bool plain_list = what == list && !frozen_;
    nb::object made = hidden(stolen(plain_list      ? PyList_New(items)
                                    : what == tuple ? PyTuple_New(items)
                                                    : frozen.list->tp_alloc(frozen.list, items)));
    for (Py_ssize_t i = 0; i < items; ++i) {
        PyObject* const each = value(depth, key).release().ptr();
        plain_list ? PyList_SET_ITEM(made.ptr(), i, each) : PyTuple_SET_ITEM(made.ptr(), i, each);
    }
    return shown(std::move(made));
}

nb::object decoder::dict_key(unsigned depth) {
    const std::size_t begin = at_;
    if (*take(1) == text) {
        const std::size_t length_at = at_;
        const std::uint64_t size = varint();
        if (size <= known_keys::bytes_max) {
            const char* data = take(size);
            return known.get(data, static_cast<std::size_t>(size),
                             [&] { return at_ = length_at, str(); });
        }
    }
    at_ = begin;
    return value(depth, true);
}

nb::object decoder::entries(unsigned depth) {
    const std::size_t begin = at_;
    const std::uint64_t items = count(2);
    nb::object made = frozen_ ? empty(frozen.dict) : stolen(PyDict_New());
    std::string_view last;
    for (std::uint64_t i = 0; i < items; ++i) {
        const std::size_t at = at_;
        const nb::object key = dict_key(depth);
        check_order(last, at);
        const nb::object each = value(depth, false);
        if (in_python([&] { return PyDict_SetItem(made.ptr(), key.ptr(), each.ptr()); }) != 0)
            throw nb::python_error();
    }
    if (static_cast<std::uint64_t>(PyDict_GET_SIZE(made.ptr())) != items)
        wrong("expected a dict of different keys", begin);
    return made;
}

nb::object decoder::elements(unsigned what, unsigned depth) {
    const std::size_t begin = at_;
    const std::uint64_t items = count(1);
    nb::object made = hidden(what == frozenset ? stolen(PyFrozenSet_New(nullptr))
                             : frozen_         ? empty(frozen.set)
                                               : stolen(PySet_New(nullptr)));
    std::string_view last;
    for (std::uint64_t i = 0; i < items; ++i) {
        const std::size_t at = at_;
        const nb::object each = value(depth, true);
        check_order(last, at);
        if (in_python([&] { return PySet_Add(made.ptr(), each.ptr()); }) != 0)
            throw nb::python_error();
    }
    if (static_cast<std::uint64_t>(PySet_GET_SIZE(made.ptr())) != items)
        wrong("expected a set of different elements", begin);
    return shown(std::move(made));
}

/// Makes an instance of a class that the program has registered (3).
nb::object decoder::made_by_class(unsigned depth, bool key) {
    const nb::object name = str();
    const nb::object stored = value(depth, key);
    return call("holdfast._encoding", "of_class", name, stored);
}

nb::object decoder::leaf(std::size_t begin) {
    if (!all_.is_valid()) all_ = nb::bytes(data_, bytes_);
    const nb::object found =
        call("holdfast._encoding", "read_leaf", all_, nb::make_tuple(begin, frozen_));
    at_ = nb::cast<std::size_t>(found[1]);
    return found[0];
}

nb::object decoder::value(unsigned depth, bool key) {
    const auto what = static_cast<unsigned char>(*take(1));
    switch (what) {
    case none: return nb::none();
    case no: return nb::bool_(false);
    case yes: return nb::bool_(true);
    case natural:
    case negative: return integer(what);
    case real: return floating();
    case text: return str();
    case bytes_kind: return bytes();
    default: return compound(what, depth, key);
    }
}

/// The value of the kind at the byte before this place, which is no number, str or bytes.
nb::object decoder::compound(unsigned what, unsigned depth, bool key) {
    const std::size_t begin = at_ - 1;
    const bool refused =
        key && (what == list || what == dict || what == leaf_last_1 || what == set_kind);
    if (what > last_kind_ || refused)
        wrong(std::string("expected the kind of a ") + (key ? "key" : "value") + ", found " +
                  std::to_string(what),
              begin);
    if (what > dict && what != set_kind && what != frozenset && what != registered)
        return leaf(begin);
    if (depth == depth_max) wrong("expected at most 64 levels, found more", begin);
    if (what == dict) return entries(depth + 1);
    if (what == registered) return made_by_class(depth + 1, key);
    if (what == set_kind || what == frozenset) return elements(what, depth + 1);
    return sequence(what, depth + 1, key);
}

array_place decoder::array() {
    array_place found;
    if (bytes_ == 0 || *take(1) != array_kind)
        throw nb::type_error("view: expected bytes or an array, found another value: read it");
    const std::uint64_t name_bytes = varint();
    const std::size_t name_at = at_;
    const std::string_view name(take(name_bytes), static_cast<std::size_t>(name_bytes));
    const std::string_view type = name.substr(std::min<std::size_t>(1, name.size()));
    if (type.starts_with('M') || type.starts_with('m'))
        throw nb::type_error("view: an array of datetime64 or timedelta64 has no buffer format: "
                             "read it, or store array.view('i8')");
    constexpr std::pair<std::string_view, std::string_view> formats[] = {
        {"b1", "?"}, {"i1", "b"}, {"u1", "B"},  {"i2", "h"},  {"u2", "H"},
        {"i4", "i"}, {"u4", "I"}, {"i8", "q"},  {"u8", "Q"},  {"f2", "e"},
        {"f4", "f"}, {"f8", "d"}, {"c8", "Zf"}, {"c16", "Zd"}};
    const auto* const known =
        std::ranges::find(formats, type, [](auto& each) { return each.first; });
    if (known == std::end(formats)) wrong("expected the type of an array's elements", name_at);
    found.format = known->second;
    if (name[0] == '>') found.format.insert(found.format.begin(), '>');
    found.element_bytes = known->first == "c16" ? 16 : static_cast<std::size_t>(type[1] - '0');
    const std::size_t shape_at = at_;
    const std::uint64_t dimensions = count(1);
    bool none = false;
    std::uint64_t elements = 1; // of the dimensions that are not 0, at most bytes_ + 1
    for (std::uint64_t i = 0; i < dimensions; ++i) {
        const std::uint64_t each = varint();
        found.shape.push_back(static_cast<Py_ssize_t>(each));
        none |= each == 0;
        if (each != 0) elements = elements > bytes_ / each ? bytes_ + 1 : elements * each;
    }
    if (none) elements = 0;
    if (elements > bytes_ || elements * found.element_bytes != bytes_ - at_)
        wrong("expected the shape of an array, and so many elements", shape_at);
    found.begin = at_;
    return found;
}

} // namespace

array_place array_in(const char* data, std::size_t bytes) {
    return decoder(data, bytes, 1, form::frozen, {}).array();
}

void set_frozen_types(nb::type_object of_list, nb::type_object of_dict, nb::type_object of_set) {
    const auto type = [](nb::handle given) { // for good
        return reinterpret_cast<PyTypeObject*>(nb::borrow(given).release().ptr());
    };
    frozen = {type(of_list), type(of_dict), type(of_set)};
}

nb::object decode(const char* data, std::size_t bytes, int version, form made, nb::object all) {
    return decoder(data, bytes, version, made, std::move(all)).whole();
}

PyObject* decoded_number(const char* data, std::size_t bytes) {
    const int what = bytes == 0 ? -1 : data[0];
    if (bytes == 1 && what == none) return Py_INCREF(Py_None), Py_None;
    if (bytes == 1 && (what == no || what == yes)) return PyBool_FromLong(what == yes);
    if (bytes == 1 + sizeof(double) && what == real) {
        const std::uint64_t bits = number_of(data + 1, sizeof(double));
        const auto number = std::bit_cast<double>(bits);
        return number == number || bits == nan_bits ? PyFloat_FromDouble(number) : nullptr;
    }
    if (bytes < 2 || (what != natural && what != negative)) return nullptr;
    if (bytes > 2 + sizeof(std::uint64_t) || static_cast<std::size_t>(data[1]) != bytes - 2 ||
        (bytes > 2 && data[2] == 0)) // one encoding each
        return nullptr;
    const std::uint64_t size = number_of(data + 2, bytes - 2);
    if (what == natural) return PyLong_FromUnsignedLongLong(size);
    return size >> 63 != 0 ? nullptr : PyLong_FromLongLong(~static_cast<long long>(size));
}

} // namespace hf_python
