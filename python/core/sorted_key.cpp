// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sorted_key.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace hf_python {

namespace {

// Durable: never change their meaning, nor their order.
enum kind : unsigned char {
    end = 0x00, // of a str, bytes or tuple
    none = 0x01,
    minus_infinity = 0x10,
    negative,
    zero,
    positive,
    infinity,
    nan,
    text = 0x20,
    bytes_kind,
    date = 0x30,
    moment,
    moment_utc,
    delta, // each of so many bytes: time_bytes
    tuple = 0x40,
    escaped = 0xff, // behind a zero byte of a str or of bytes
};
enum number_type : char { of_int = 0, of_float = 1, of_bool = 2 };
constexpr std::size_t time_bytes[] = {4, 10, 10, 10};
constexpr int exponent_base = 1100;   // below those of all floats
constexpr std::uint64_t far = 0xffff; // exponents from here on have 8 bytes more
constexpr unsigned depth_max = 64;

/// A number is sign, exponent of 2, and the bits behind its leading 1, in groups of seven bits. A
/// group's lowest bit says whether others follow; the last one has a bit that is not 0. So what is
/// larger sorts behind. All bits of a negative number are turned round.
class maker {
public:
    explicit maker(buffer& to) : to_(to) {}
    void value(PyObject* of, unsigned depth);
    const std::string& types() const noexcept { return types_; }

private:
    void put(unsigned byte) { to_.append(static_cast<char>(byte)); }
    void escaped_bytes(kind what, const char* data, Py_ssize_t bytes) {
        put(what);
        for (Py_ssize_t i = 0; i < bytes; ++i) {
            to_.append(data[i]);
            if (data[i] == 0) put(escaped);
        }
        put(end);
    }
    void integer(PyObject* of);
    void floating(double number);
    /// 'bits' has the leading 1 first, then the others.
    void number(bool below_zero, std::int64_t exponent, const std::vector<bool>& bits);
    void small(bool below_zero, std::int64_t exponent, std::uint64_t leading_first);

    buffer& to_;
    std::string types_;
};

void maker::number(bool below_zero, std::int64_t exponent, const std::vector<bool>& bits) {
    const unsigned turned = below_zero ? 0xff : 0;
    put(below_zero ? negative : positive);
    const auto place = static_cast<std::uint64_t>(exponent + exponent_base);
    const auto big_endian = [&](std::uint64_t given, unsigned count) {
        while (count-- > 0) put((static_cast<unsigned>(given >> 8 * count) & 0xff) ^ turned);
    };
    big_endian(std::min(place, far), 2);
    if (place >= far) big_endian(place, 8);
    std::size_t last = bits.size();
    while (last > 1 && !bits[last - 1]) --last;
    std::size_t at = 1;
    do {
        unsigned group = 0;
        for (unsigned i = 0; i < 7; ++i, ++at) group = group << 1 | unsigned(at < last && bits[at]);
        put((group << 1 | unsigned(at < last)) ^ turned);
    } while (at < last);
}

void maker::small(bool below_zero, std::int64_t exponent, std::uint64_t leading_first) {
    std::vector<bool> bits;
    for (std::uint64_t rest = leading_first; rest != 0; rest <<= 1) bits.push_back(rest >> 63 != 0);
    number(below_zero, exponent, bits);
}

void maker::integer(PyObject* of) {
    int beyond = 0;
    const long long given = PyLong_AsLongLongAndOverflow(of, &beyond);
    if (beyond == 0) {
        if (given == 0) return put(zero);
        const auto size =
            given > 0 ? static_cast<std::uint64_t>(given) : ~static_cast<std::uint64_t>(given) + 1;
        const int shift = std::countl_zero(size);
        return small(given < 0, 63 - shift, size << shift);
    }
    const nb::object size = nb::steal(PyNumber_Absolute(of));
    const auto bit_count = nb::cast<std::size_t>(size.attr("bit_length")());
    const nb::bytes data(size.attr("to_bytes")((bit_count + 7) / 8, "big"));
    std::vector<bool> bits;
    for (std::size_t i = 8 * data.size() - bit_count; i < 8 * data.size(); ++i)
        bits.push_back(data.c_str()[i / 8] >> (7 - i % 8) & 1);
    number(beyond < 0, static_cast<std::int64_t>(bit_count) - 1, bits);
}

void maker::floating(double given) {
    if (given != given) return put(nan);
    if (given == 0) return put(zero);
    if (std::isinf(given)) return put(given < 0 ? minus_infinity : infinity);
    int exponent = 0;
    const double fraction = std::frexp(std::fabs(given), &exponent); // in [0.5, 1)
    small(given < 0, exponent - 1, static_cast<std::uint64_t>(std::ldexp(fraction, 64)));
}

void maker::value(PyObject* of, unsigned depth) {
    PyTypeObject* const type = Py_TYPE(of);
    if (PyUnicode_Check(of)) {
        const utf8 made(of);
        return escaped_bytes(text, made.data(), static_cast<Py_ssize_t>(made.size()));
    }
    if (PyBytes_Check(of))
        return escaped_bytes(bytes_kind, PyBytes_AS_STRING(of), PyBytes_GET_SIZE(of));
    if (of == Py_None) return put(none);
    if (type == &PyLong_Type || type == &PyBool_Type) {
        types_ += type == &PyLong_Type ? of_int : of_bool;
        return integer(of);
    }
    if (type == &PyFloat_Type) {
        types_ += of_float;
        return floating(PyFloat_AS_DOUBLE(of));
    }
    if (type == &PyTuple_Type) {
        if (depth == depth_max)
            throw nb::value_error("cannot store a key that is nested deeper than 64");
        put(tuple);
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(of); ++i)
            value(PyTuple_GET_ITEM(of, i), depth + 1);
        return put(end);
    }
    const nb::object made = call("holdfast._encoding", "sortable", of);
    if (!PyBytes_Check(made.ptr())) return value(made.ptr(), depth); // numpy's number: Python's
    to_.append(PyBytes_AS_STRING(made.ptr()),
               static_cast<std::size_t>(PyBytes_GET_SIZE(made.ptr())));
}

/// Takes keys from bytes that may be anything.
class taker {
public:
    explicit taker(hf_bytes stored)
        : data_(static_cast<const unsigned char*>(stored.data)), bytes_(stored.bytes) {
        skip(0);
        types_at_ = at_;
        at_ = 0;
    }
    nb::object value();
    bool ended() const noexcept { return types_at_ == bytes_; }

private:
    [[noreturn]] static void wrong() {
        raise("corrupt", "corrupt: a key of a SortedMap is no key that Python has written");
    }
    unsigned byte() {
        if (at_ == bytes_) wrong();
        return data_[at_++];
    }
    void skip(unsigned depth);
    void skip_number(unsigned turned);
    std::string escaped_bytes();
    nb::object number(bool below_zero);

    const unsigned char* data_;
    std::size_t bytes_, at_ = 0, types_at_ = 0;
};

void taker::skip_number(unsigned turned) {
    const unsigned high = byte() ^ turned, low = byte() ^ turned;
    if ((high << 8 | low) == far) {
        for (unsigned i = 0; i < 8; ++i) (void)byte();
    }
    while (((byte() ^ turned) & 1) != 0) {}
}

void taker::skip(unsigned depth) {
    const unsigned what = byte();
    switch (what) {
    case negative: return skip_number(0xff);
    case positive: return skip_number(0);
    case none:
    case minus_infinity:
    case zero:
    case infinity:
    case nan: return;
    case text:
    case bytes_kind: (void)escaped_bytes(); return;
    case date:
    case moment:
    case moment_utc:
    case delta:
        for (std::size_t i = 0; i < time_bytes[what - date]; ++i) (void)byte();
        return;
    case tuple: break;
    default: wrong();
    }
    if (depth == depth_max) wrong();
    for (;;) {
        if (at_ == bytes_) wrong();
        if (data_[at_] == end) break;
        skip(depth + 1);
    }
    ++at_;
}

std::string taker::escaped_bytes() {
    std::string found;
    for (;;) {
        const unsigned each = byte();
        if (each == 0) {
            if (at_ == bytes_ || data_[at_] != escaped) return found;
            ++at_;
        }
        found += static_cast<char>(each);
    }
}

nb::object taker::number(bool below_zero) {
    const unsigned turned = below_zero ? 0xff : 0;
    std::uint64_t place = (byte() ^ turned) << 8;
    place |= byte() ^ turned;
    if (place == far) {
        place = 0;
        for (unsigned i = 0; i < 8; ++i) place = place << 8 | (byte() ^ turned);
    }
    const std::int64_t exponent = static_cast<std::int64_t>(place) - exponent_base;
    const std::size_t begin = at_;
    while (((byte() ^ turned) & 1) != 0) {}
    const std::size_t groups = at_ - begin;
    const auto group = [&](std::size_t i) { return (data_[begin + i] ^ turned) >> 1; };
    const unsigned type = types_at_ == bytes_ ? 0xffu : data_[types_at_++];
    if (type == of_float) {
        if (groups > 8) wrong();
        double size = 0;
        for (std::size_t i = groups; i-- > 0;) size = (size + group(i)) / 128;
        size =
            std::ldexp(1 + size, static_cast<int>(std::clamp<std::int64_t>(exponent, -2000, 2000)));
        return nb::float_(below_zero ? -size : size);
    }
    // The leading 1, and the other bits as far as the exponent goes.
    if (exponent < 0 || exponent > std::int64_t{1} << 34 ||
        7 * (groups - 1) > static_cast<std::uint64_t>(exponent))
        wrong();
    if (type == of_bool) return nb::bool_(true);
    nb::object size = nb::int_(1);
    if (exponent < 63) {
        std::uint64_t bits = 1;
        std::int64_t left = exponent;
        for (std::size_t i = 0; i < groups; ++i, left -= 7)
            bits = left >= 7 ? bits << 7 | group(i) : bits << left | group(i) >> (7 - left);
        if (left > 0) bits <<= left;
        return nb::int_(below_zero ? -static_cast<long long>(bits) : static_cast<long long>(bits));
    }
    for (std::size_t i = 0; i < groups; ++i)
        size = (size << nb::int_(7)) | nb::int_(unsigned(group(i)));
    const std::int64_t shift = exponent - static_cast<std::int64_t>(7 * groups);
    size = shift >= 0 ? size << nb::int_(shift) : size >> nb::int_(-shift);
    return below_zero ? nb::object(-size) : size;
}

nb::object taker::value() {
    const std::size_t begin = at_;
    const unsigned what = byte();
    const auto number_of = [&](double of) -> nb::object {
        const unsigned type = types_at_ == bytes_ ? 0xffu : data_[types_at_++];
        if (type == of_float) return nb::float_(of);
        if (of != 0 || (type != of_int && type != of_bool)) wrong();
        return type == of_int ? nb::object(nb::int_(0)) : nb::object(nb::bool_(false));
    };
    switch (what) {
    case none: return nb::none();
    case negative:
    case positive: return number(what == negative);
    case zero: return number_of(0);
    case minus_infinity: return number_of(-HUGE_VAL);
    case infinity: return number_of(HUGE_VAL);
    case nan: return number_of(NAN);
    case text: {
        const std::string found = escaped_bytes();
        PyObject* const made = str_of(found.data(), found.size());
        if (made == nullptr) {
            PyErr_Clear();
            wrong();
        }
        return nb::steal(made);
    }
    case bytes_kind: {
        const std::string found = escaped_bytes();
        return nb::bytes(found.data(), found.size());
    }
    case tuple: break;
    default:
        at_ += time_bytes[what - date];
        return call("holdfast._encoding", "from_sortable", nb::bytes(data_ + begin, at_ - begin));
    }
    nb::list found;
    while (data_[at_] != end) found.append(value());
    ++at_;
    return nb::tuple(found);
}

} // namespace

sorted_key::sorted_key(nb::handle object) {
    maker made(made_);
    made.value(object.ptr(), 0);
    ordered_bytes_ = made_.size();
    made_.append(made.types().data(), made.types().size());
    check_size(made_.size());
}

bool sorted_key::storable(nb::handle object) {
    try {
        (void)sorted_key(object);
        return true;
    } catch (const nb::python_error& error) {
        if (error.matches(PyExc_TypeError)) return false;
        throw;
    }
}

nb::object decoded_key(hf_bytes stored) {
    // Python code may run below: with no memory of the pool (element.hpp (1)).
    const std::string copied(static_cast<const char*>(stored.data), stored.bytes);
    taker from({copied.data(), copied.size()});
    nb::object found = from.value();
    const sorted_key again(found); // (1)
    if (!from.ended() || again.get().bytes != copied.size() ||
        std::memcmp(again.get().data, copied.data(), copied.size()) != 0)
        raise("corrupt", "corrupt: a key of a SortedMap has another form than Python gives it");
    return found;
}

} // namespace hf_python
