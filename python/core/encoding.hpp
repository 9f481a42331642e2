// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Values other than str and bytes as they are stored: docs/format/python-values.md.
//
// (1) A value has one encoding, and decode() takes no other.
// (2) decode() takes any bytes. What is no encoding raises holdfast.Error "corrupt" with the offset
//     of the fault. It allocates nothing, and enters no loop, that is larger than these bytes.
// (3) No class is looked up by a name in the bytes, but those that the program has registered.
// (4) Numbers, strings and containers are encoded here, all else by holdfast/_encoding.py. Either
//     may run Python code, during which the objects that are being encoded may change.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace hf_python {

namespace nb = nanobind;

/// Bytes that are being made.
class buffer {
public:
    buffer() = default;
    buffer(const buffer&) = delete;
    char* data() noexcept { return data_; }
    const char* data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }
    void append(const void* from, std::size_t bytes) {
        if (bytes == 0) return;
        if (bytes > capacity_ - size_) grow(bytes);
        std::memcpy(data_ + size_, from, bytes);
        size_ += bytes;
    }
    void append(char byte) {
        if (size_ == capacity_) grow(1);
        data_[size_++] = byte;
    }

private:
    void grow(std::size_t bytes);
    char few_[248];
    std::unique_ptr<char[]> many_;
    char* data_ = few_;
    std::size_t size_ = 0, capacity_ = sizeof few_;
};

/// The use of an object: keys, and elements of sets, are whatever dict accepts as a key. Equal keys
/// of one type have one encoding. 'old_key' encodes them as version 1 of the format did: 0.0 and
/// -0.0 differ there, and one moment in two zones.
enum class as { value, key, old_key };

/// What decoding makes of lists, dicts, sets and arrays. Frozen ones cannot be changed: what is
/// still stored, where a change would be lost.
enum class form { plain, frozen };

/// Says what the package has for frozen lists, dicts and sets: holdfast/_frozen.py.
void set_frozen_types(nb::type_object of_list, nb::type_object of_dict, nb::type_object of_set);

/// What encoding met on its way.
struct encoding_facts {
    bool version_2 = false;    // kinds that version 1 of the format has not
    bool may_have_old = false; // of a key: its old encoding may be another one
};

/// Appends the object's encoding.
///
/// Errors: TypeError if it has none, ValueError if it is nested too deep.
encoding_facts encode(buffer& to, nb::handle object, as role);
/// The object of the encoding of version 1 or 2. Requires: 'data' stays, whatever Python code runs.
/// 'all' are the same bytes as an object, if there is one: else Python code gets a copy of them.
nb::object decode(const char* data, std::size_t bytes, int version, form made, nb::object all = {});

/// An array's place in its encoding. As it is made: of bytes.
struct array_place {
    std::string format = "B"; // of an element, as Python's buffers have it
    std::size_t element_bytes = 1;
    std::vector<Py_ssize_t> shape;
    std::size_t begin = 0; // of the elements, which lie in C's order
};
/// Raises holdfast.Error "corrupt". Raises TypeError when it is no array, or one of times: buffers
/// have no format for these.
array_place array_in(const char* data, std::size_t bytes);

/// The object of an encoding that Python's memory manager alone takes part in: None, bools, floats,
/// ints of 64 bits. Null: decode() knows what it is, or says what is wrong with it.
PyObject* decoded_number(const char* data, std::size_t bytes);

} // namespace hf_python
