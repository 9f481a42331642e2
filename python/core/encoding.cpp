// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "encoding.hpp"

#include "element.hpp"

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

// Durable: never change their meaning. holdfast/_encoding.py has those between.
enum kind : unsigned char {
    none,
    no,
    yes,
    natural,
    negative,
    real,
    text,
    bytes_kind,
    tuple,
    list,
    dict,
    moment,
    array_kind = 14,
    leaf_last_1 = array_kind, // Python code's, in version 1
    set_kind = 15,
    frozenset,
    registered,
    kind_end = 22 // those in between are Python code's, too
};
constexpr std::uint64_t nan_bits = 0x7ff8'0000'0000'0000; // every NaN's
constexpr unsigned depth_max = 64; // of containers in containers; what holds itself ends here, too

/// The types of frozen lists, dicts and sets: holdfast/_frozen.py.
struct frozen_types {
    PyTypeObject *list = nullptr, *dict = nullptr, *set = nullptr;
};
frozen_types frozen; // as the package says when it is imported

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
    void elements(PyObject* of, kind what, unsigned depth);
    void in_order(std::size_t first, std::size_t begin, const char* twice);
    void leaf(PyObject* of, unsigned depth, bool key);
    void deeper(unsigned depth) const {
        if (depth == depth_max)
            throw nb::value_error("cannot store what is nested deeper than 64, or contains itself");
    }
    bool less(const entry& a, const entry& b) const {
        const std::size_t of_a = a.key_end - a.begin, of_b = b.key_end - b.begin;
        const int order =
            std::memcmp(to_.data() + a.begin, to_.data() + b.begin, std::min(of_a, of_b));
        return order != 0 ? order < 0 : of_a < of_b;
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

class decoder {
public:
    decoder(const char* data, std::size_t bytes, int version, form made)
        : data_(data), bytes_(bytes), last_kind_(version == 1 ? leaf_last_1 : kind_end - 1),
          frozen_(made == form::frozen) {}
    array_place array();
    nb::object whole() {
        nb::object found = value(0, false);
        if (at_ != bytes_) wrong("expected the end of the value, found more bytes", at_);
        return found;
    }

private:
    [[noreturn]] void wrong(const std::string& what, std::size_t at) const {
        raise("corrupt", ("corrupt: a value's byte " + std::to_string(at) + " of " +
                          std::to_string(bytes_) + ": " + what)
                             .c_str());
    }
    const char* take(std::uint64_t count) {
        if (count > bytes_ - at_)
            wrong("expected " + std::to_string(count) + " bytes, found " +
                      std::to_string(bytes_ - at_),
                  at_);
        return data_ + std::exchange(at_, at_ + count);
    }
    std::uint64_t varint();
    std::uint64_t count(std::uint64_t bytes_each);
    nb::object value(unsigned depth, bool key);
    nb::object integer(unsigned what);
    nb::object floating();
    nb::object str();
    nb::object bytes();
    nb::object sequence(unsigned what, unsigned depth, bool key);
    nb::object entries(unsigned depth);
    nb::object elements(unsigned what, unsigned depth);
    nb::object made_by_class(unsigned depth, bool key);
    nb::object leaf(std::size_t begin);
    /// The key at this place, which sorts above the one before it.
    nb::object key_above(std::string_view& last, unsigned depth);

    const char* data_;
    std::size_t bytes_, at_ = 0;
    unsigned last_kind_;
    bool frozen_;
    nb::object copied_; // for Python code
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

std::uint64_t decoder::varint() {
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
    std::uint64_t size = 0;
    for (std::uint64_t i = 0; i < bytes; ++i)
        size = size << 8 | static_cast<unsigned char>(data[i]);
    if (what == natural) return stolen(PyLong_FromUnsignedLongLong(size));
    if (size >> 63 == 0) return stolen(PyLong_FromLongLong(~static_cast<long long>(size)));
    return call("holdfast._encoding", "large_int", nb::bytes(data, static_cast<std::size_t>(bytes)),
                nb::bool_(true));
}

nb::object decoder::floating() {
    const std::size_t begin = at_;
    const char* data = take(sizeof(double));
    std::uint64_t bits = 0;
    for (unsigned i = 0; i < sizeof bits; ++i)
        bits = bits << 8 | static_cast<unsigned char>(data[i]);
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

nb::object decoder::key_above(std::string_view& last, unsigned depth) {
    const std::size_t at = at_;
    nb::object key = value(depth, true);
    const std::string_view written(data_ + at, at_ - at);
    if (written <= last) wrong("expected a key that sorts above the one before it", at);
    last = written;
    return key;
}

nb::object decoder::entries(unsigned depth) {
    const std::size_t begin = at_;
    const std::uint64_t items = count(2);
    nb::object made = frozen_ ? empty(frozen.dict) : stolen(PyDict_New());
    std::string_view last;
    for (std::uint64_t i = 0; i < items; ++i) {
        const nb::object key = key_above(last, depth);
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
        const nb::object each = key_above(last, depth);
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
    if (!copied_.is_valid()) copied_ = nb::bytes(data_, bytes_);
    const nb::object found =
        call("holdfast._encoding", "read_leaf", copied_, nb::make_tuple(begin, frozen_));
    at_ = nb::cast<std::size_t>(found[1]);
    return found[0];
}

nb::object decoder::value(unsigned depth, bool key) {
    const std::size_t begin = at_;
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
    default: break;
    }
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
    return decoder(data, bytes, 1, form::frozen).array();
}

void buffer::grow(std::size_t bytes) {
    const std::size_t wanted = std::max(2 * capacity_, size_ + bytes);
    auto more = std::make_unique_for_overwrite<char[]>(wanted);
    std::memcpy(more.get(), data_, size_);
    many_ = std::move(more);
    data_ = many_.get();
    capacity_ = wanted;
}

void buffer::append(const void* from, std::size_t bytes) {
    if (bytes == 0) return;
    if (bytes > capacity_ - size_) grow(bytes);
    std::memcpy(data_ + size_, from, bytes);
    size_ += bytes;
}

void set_frozen_types(nb::type_object of_list, nb::type_object of_dict, nb::type_object of_set) {
    const auto type = [](nb::handle given) { // for good
        return reinterpret_cast<PyTypeObject*>(nb::borrow(given).release().ptr());
    };
    frozen = {type(of_list), type(of_dict), type(of_set)};
}

encoding_facts encode(buffer& to, nb::handle object, as role) {
    encoder made(to, role);
    made.value(object.ptr(), 0, role != as::value);
    return made.facts;
}

nb::object decode(const char* data, std::size_t bytes, int version, form made) {
    return decoder(data, bytes, version, made).whole();
}

PyObject* decoded_number(const char* data, std::size_t bytes) {
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

} // namespace hf_python
