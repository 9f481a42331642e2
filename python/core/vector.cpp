// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "structure.hpp"
#include "view.hpp"

#include <algorithm>
#include <vector>

namespace hf_python {

namespace {

using vector = structure<vector_calls>;
using calls = vector_calls;

constexpr auto out_of_range = "vector index out of range";

/// An index as Python gives it. Its code may run: never in the middle of a look or change
/// (element.hpp, 1).
Py_ssize_t index_from(nb::handle index) {
    const Py_ssize_t given =
        in_python([=] { return PyNumber_AsSsize_t(index.ptr(), PyExc_IndexError); });
    if (given == -1 && PyErr_Occurred()) throw nb::python_error();
    return given;
}

/// A negative index counts from the end.
std::uint64_t place(Py_ssize_t given, std::uint64_t count, const char* otherwise = out_of_range) {
    const Py_ssize_t found = given < 0 ? given + static_cast<Py_ssize_t>(count) : given;
    if (found < 0 || static_cast<std::uint64_t>(found) >= count) throw nb::index_error(otherwise);
    return static_cast<std::uint64_t>(found);
}

/// Where insert() puts, which takes any index.
std::uint64_t place_between(Py_ssize_t index, std::uint64_t count) {
    const auto all = static_cast<Py_ssize_t>(count);
    return static_cast<std::uint64_t>(std::clamp(index < 0 ? index + all : index, {}, all));
}

struct slice {
    Py_ssize_t start, stop, step, length = 0;
    /// As Python gives it: as index_from().
    explicit slice(nb::handle given) {
        if (in_python([&] { return PySlice_Unpack(given.ptr(), &start, &stop, &step); }) < 0)
            throw nb::python_error();
    }
    slice of(std::uint64_t count) const {
        slice fitted = *this;
        fitted.length = PySlice_AdjustIndices(static_cast<Py_ssize_t>(count), &fitted.start,
                                              &fitted.stop, step);
        return fitted;
    }
    std::uint64_t at(Py_ssize_t i) const { return static_cast<std::uint64_t>(start + i * step); }
    /// In ascending order; for slices that are not empty.
    std::uint64_t lowest() const { return step > 0 ? at(0) : at(length - 1); }
    std::uint64_t highest() const { return step > 0 ? at(length - 1) : at(0); }
};

template <class From> nb::object element(const From* from, std::uint64_t index) {
    hf_bytes found;
    check(get(from, index, &found));
    return decoded(found);
}

/// Elements as they are stored, copied: they outlive the change they are for.
template <class From> void copy(const From* from, std::uint64_t index, encoded_list& to) {
    hf_bytes found;
    check(get(from, index, &found));
    to.add(found);
}

template <class Source> nb::object get_slice(const Source& of, const slice& given) {
    return of.read([&](const auto* from) -> nb::object {
        const slice wanted = given.of(calls::count(from));
        std::vector<half_decoded> halves; // all of them, before Python code runs
        halves.reserve(static_cast<std::size_t>(wanted.length));
        for (Py_ssize_t i = 0; i < wanted.length; ++i) {
            hf_bytes each;
            check(get(from, wanted.at(i), &each));
            halves.emplace_back(each);
        }
        nb::list found;
        for (const half_decoded& half : halves) found.append(half.whole(form::frozen));
        return found;
    });
}

template <class Source> nb::object get_item(const Source& of, nb::handle what) {
    if (PySlice_Check(what.ptr())) return get_slice(of, slice(what));
    const Py_ssize_t index = index_from(what);
    return of.read(
        [&](const auto* from) { return element(from, place(index, calls::count(from))); });
}

/// A memoryview of the element.
nb::object view(snapshot<calls>& of, nb::handle where) {
    const Py_ssize_t index = index_from(where);
    return viewed(of, [&](const auto* from) {
        hf_bytes found;
        check(get(from, place(index, calls::count(from)), &found));
        return found;
    });
}

encoded_list encoded_all(nb::handle elements) {
    encoded_list all;
    for_each(elements, [&](nb::handle each) { all.add(each); });
    return all;
}

void splice(vector& to, std::uint64_t index, std::uint64_t removed_count,
            const encoded_list& with) {
    const std::vector<hf_bytes> elements = with.get();
    to.change_many(with, elements.size() + removed_count, [&](hf_mod_vector* vector) {
        return hf_mod_vector_splice(vector, index, removed_count, elements.data(), elements.size());
    });
}

void set_slice(vector& to, nb::handle where, nb::handle elements) {
    const encoded_list with = encoded_all(elements);
    const slice given(where);
    const slice wanted =
        to.change([&](hf_mod_vector* vector) { return given.of(hf_mod_vector_count(vector)); });
    const auto removed_count = static_cast<std::uint64_t>(wanted.length);
    if (wanted.step == 1)
        return splice(to, static_cast<std::uint64_t>(wanted.start), removed_count, with);
    if (with.size() != removed_count)
        throw nb::value_error(("attempt to assign sequence of size " + std::to_string(with.size()) +
                               " to extended slice of size " + std::to_string(removed_count))
                                  .c_str());
    const std::vector<hf_bytes> all = with.get();
    std::vector<hf_mod_vector_step> steps;
    for (std::size_t i = 0; i < all.size(); ++i)
        steps.push_back({wanted.at(static_cast<Py_ssize_t>(i)), all[i]});
    to.change_many(with, steps.size(), [&](hf_mod_vector* vector) {
        return hf_mod_vector_update(vector, steps.data(), steps.size());
    });
}

void set_item(vector& to, nb::handle where, nb::handle what) {
    if (PySlice_Check(where.ptr())) return set_slice(to, where, what);
    const encoded with(what);
    const Py_ssize_t index = index_from(where);
    to.change([&](hf_mod_vector* vector) {
        const std::uint64_t at =
            place(index, hf_mod_vector_count(vector), "vector assignment index out of range");
        check(
            to.commit(with.get().bytes, [&] { return hf_mod_vector_set(vector, at, with.get()); }));
    });
}

void erase_slice(vector& from, nb::handle where) {
    const slice given(where);
    encoded_list kept; // between those that go
    std::uint64_t first = 0, removed_count = 0;
    from.change([&](hf_mod_vector* vector) {
        const slice wanted = given.of(hf_mod_vector_count(vector));
        if (wanted.length == 0) return;
        first = wanted.lowest();
        removed_count = wanted.highest() - first + 1;
        const auto step = static_cast<std::uint64_t>(std::abs(wanted.step));
        for (std::uint64_t i = 0; i < removed_count; ++i) {
            if (i % step != 0) copy(vector, first + i, kept);
        }
    });
    if (removed_count != 0) splice(from, first, removed_count, kept);
}

hf_status erased(vector& from, hf_mod_vector* in, std::uint64_t at) {
    return from.commit(0, [&] { return hf_mod_vector_splice(in, at, 1, nullptr, 0); });
}

void erase_item(vector& from, nb::handle where) {
    if (PySlice_Check(where.ptr())) return erase_slice(from, where);
    const Py_ssize_t index = index_from(where);
    from.change([&](hf_mod_vector* vector) {
        const std::uint64_t at =
            place(index, hf_mod_vector_count(vector), "vector assignment index out of range");
        check(erased(from, vector, at));
    });
}

/// The stored bytes of the element.
nb::bytes stored(const vector& of, nb::handle where) {
    const Py_ssize_t index = index_from(where);
    return of.read([&](const auto* from) {
        hf_bytes found;
        check(get(from, place(index, calls::count(from)), &found));
        return nb::bytes(found.data, found.bytes);
    });
}

/// Sets the element if its stored bytes are still these. Says whether they were.
bool exchange(vector& to, nb::handle where, const nb::bytes& before, nb::handle what) {
    const encoded with(what);
    const Py_ssize_t index = index_from(where);
    return to.change([&](hf_mod_vector* vector) {
        const std::uint64_t at = place(index, hf_mod_vector_count(vector));
        hf_bytes found;
        check(hf_mod_vector_get(vector, at, &found));
        if (!same(found, bytes_of(before))) return false;
        if (same(found, with.get())) return true;
        check(
            to.commit(with.get().bytes, [&] { return hf_mod_vector_set(vector, at, with.get()); }));
        return true;
    });
}

void append(vector& to, nb::handle what) {
    const encoded with(what);
    to.change([&](hf_mod_vector* vector) {
        check(to.commit(with.get().bytes, [&] { return hf_mod_vector_push(vector, with.get()); }));
    });
}

void insert(vector& to, Py_ssize_t index, nb::handle what) {
    const encoded with(what);
    const hf_bytes element = with.get();
    to.change([&](hf_mod_vector* vector) {
        const std::uint64_t at = place_between(index, hf_mod_vector_count(vector));
        check(to.commit(element.bytes,
                        [&] { return hf_mod_vector_splice(vector, at, 0, &element, 1); }));
    });
}

void extend(vector& to, nb::handle elements) {
    const encoded_list with = encoded_all(elements);
    const std::uint64_t end = to.change(&hf_mod_vector_count);
    splice(to, end, 0, with);
}

nb::object take_at(vector& from, nb::handle where) {
    const Py_ssize_t index = index_from(where);
    std::uint64_t count = 0, at = 0;
    return taken(
        from,
        [&](hf_mod_vector* vector) {
            count = hf_mod_vector_count(vector);
            if (count == 0) throw nb::index_error("pop from empty vector");
            at = place(index, count, "pop index out of range");
            looked found;
            check(hf_mod_vector_get(vector, at, &found.bytes));
            found.there = true;
            return found;
        },
        [&](hf_mod_vector* vector, looked&) {
            return at == count - 1 ? hf_mod_vector_pop(vector, nullptr)
                                   : hf_mod_vector_splice(vector, at, 1, nullptr, 0);
        });
}

void reverse(vector& of) {
    encoded_list all;
    of.change([&](hf_mod_vector* vector) {
        for (std::uint64_t i = hf_mod_vector_count(vector); i-- > 0;) copy(vector, i, all);
    });
    splice(of, 0, all.size(), all);
}

/// The first index of an equal element in [start, stop); stop without one.
template <class From>
std::uint64_t search(const From* from, const encoded& wanted, std::uint64_t start,
                     std::uint64_t stop) {
    const hf_bytes like = wanted.get();
    for (; start < stop; ++start) {
        hf_bytes each;
        check(get(from, start, &each));
        if (same(each, like)) break;
    }
    return start;
}

template <class Source> bool contains(const Source& of, nb::handle what) {
    if (!storable(what)) return false;
    const encoded wanted(what);
    return of.read([&](const auto* from) {
        const std::uint64_t count = calls::count(from);
        return search(from, wanted, 0, count) != count;
    });
}

template <class Source> std::uint64_t occurrences(const Source& of, nb::handle what) {
    if (!storable(what)) return 0;
    const encoded wanted(what);
    return of.read([&](const auto* from) {
        const std::uint64_t count = calls::count(from);
        std::uint64_t found = 0;
        for (std::uint64_t i = 0; (i = search(from, wanted, i, count)) != count; ++i) ++found;
        return found;
    });
}

[[noreturn]] void not_in_vector() { throw nb::value_error("element is not in the vector"); }

template <class Source>
std::uint64_t index_of(const Source& of, nb::handle what, Py_ssize_t start, Py_ssize_t stop) {
    if (!storable(what)) not_in_vector();
    const encoded wanted(what);
    return of.read([&](const auto* from) {
        const std::uint64_t count = calls::count(from);
        const std::uint64_t end = place_between(stop, count);
        const std::uint64_t found = search(from, wanted, place_between(start, count), end);
        if (found >= end) not_in_vector();
        return found;
    });
}

void remove(vector& from, nb::handle what) {
    if (!storable(what)) not_in_vector();
    const encoded wanted(what);
    from.change([&](hf_mod_vector* vector) {
        const std::uint64_t count = hf_mod_vector_count(vector);
        const std::uint64_t found = search(vector, wanted, 0, count);
        if (found == count) not_in_vector();
        check(erased(from, vector, found));
    });
}

template <class Source> void bind_vector_reading(nb::class_<Source>& to) {
    to.def("__getitem__", &get_item<Source>, nb::arg("index"));
    to.def("__contains__", &contains<Source>, nb::arg("element").none());
    to.def("count", &occurrences<Source>, nb::arg("element").none());
    to.def("index", &index_of<Source>, nb::arg("element").none(), nb::arg("start") = 0,
           nb::arg("stop") = PY_SSIZE_T_MAX);
}

} // namespace

void bind_vector(nb::module_& to) {
    nb::class_<snapshot<vector_calls>> version(to, "VectorSnapshot");
    bind_snapshot(version);
    bind_vector_reading(version);
    version.def("view", &view, nb::arg("index"));

    nb::class_<vector> bound(to, "Vector");
    bind_structure(bound);
    bind_vector_reading(bound);
    bound.def("__setitem__", &set_item, nb::arg("index"), nb::arg("element").none());
    bound.def("__delitem__", &erase_item, nb::arg("index"));
    bound.def("append", &append, nb::arg("element").none());
    bound.def("_stored", &stored, nb::arg("index"));
    bound.def("_exchange", &exchange, nb::arg("index"), nb::arg("before"), nb::arg("element"));
    bound.def("insert", &insert, nb::arg("index"), nb::arg("element").none());
    bound.def("extend", &extend, nb::arg("elements"));
    bound.def("pop", &take_at, nb::arg("index") = -1);
    bound.def("remove", &remove, nb::arg("element").none());
    bound.def("reverse", &reverse);
}

} // namespace hf_python
