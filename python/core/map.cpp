// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "structure.hpp"

namespace hf_python {

namespace {

using map = structure<map_calls>;

[[noreturn]] void no_such_key(nb::handle key) {
    PyErr_SetObject(PyExc_KeyError, key.ptr());
    throw nb::python_error();
}

/// The value, or nothing.
template <class From> nb::object found_in(const From* from, const encoded& key) {
    hf_bytes value;
    const hf_status found = get(from, key.get(), &value);
    if (found == HF_NOT_FOUND) return {};
    check(found);
    return decoded(value);
}

template <class Source> nb::object at(const Source& of, nb::handle key) {
    const encoded wanted(key, as::key);
    nb::object found = of.read([&](const auto* from) { return found_in(from, wanted); });
    if (!found.is_valid()) no_such_key(key);
    return found;
}

template <class Source>
nb::object get_or(const Source& of, nb::handle key, const nb::object& otherwise) {
    const encoded wanted(key, as::key);
    nb::object found = of.read([&](const auto* from) { return found_in(from, wanted); });
    return found.is_valid() ? found : otherwise;
}

template <class Source> bool contains(const Source& of, nb::handle key) {
    if (!storable(key, as::key)) return false;
    const encoded wanted(key, as::key);
    return of.read([&](const auto* from) { return get(from, wanted.get(), nullptr) == HF_OK; });
}

void put(map& to, nb::handle key, nb::handle value) {
    const encoded at(key, as::key), what(value);
    check_size(at.get().bytes + what.get().bytes);
    to.change([&](hf_mod_map* map) {
        check(to.commit(what.get().bytes,
                        [&] { return hf_mod_map_put(map, at.get(), what.get(), nullptr); }));
    });
}

nb::object take(map& from, nb::handle key) {
    const encoded wanted(key, as::key);
    return taken(
        from,
        [&](hf_mod_map* map) {
            looked found;
            const hf_status status = hf_mod_map_get(map, wanted.get(), &found.bytes);
            if (status != HF_NOT_FOUND) check(status);
            found.there = status == HF_OK;
            return found;
        },
        [&](hf_mod_map* map, looked&) { return hf_mod_map_take(map, wanted.get(), nullptr); });
}

nb::object take_at(map& from, nb::handle key) {
    nb::object found = take(from, key);
    if (!found.is_valid()) no_such_key(key);
    return found;
}

nb::object take_or(map& from, nb::handle key, const nb::object& otherwise) {
    nb::object found = take(from, key);
    return found.is_valid() ? found : otherwise;
}

nb::object set_default(map& to, nb::handle key, nb::handle value) {
    const encoded wanted(key, as::key);
    nb::object found = to.read([&](const auto* from) { return found_in(from, wanted); });
    if (found.is_valid()) return found;
    const encoded what(value); // as late as dict looks at it
    check_size(wanted.get().bytes + what.get().bytes);
    return to.change([&](hf_mod_map* map) {
        nb::object meanwhile = found_in(map, wanted);
        if (meanwhile.is_valid()) return meanwhile;
        check(to.commit(what.get().bytes,
                        [&] { return hf_mod_map_insert(map, wanted.get(), what.get(), nullptr); }));
        return nb::borrow(value);
    });
}

/// Puts pairs of key and value in one section.
void put_all(map& to, nb::iterable pairs) {
    encoded_list all;
    for_each(pairs, [&](nb::handle each) {
        const nb::object pair = nb::steal(
            in_python([=] { return PySequence_Fast(each.ptr(), "expected (key, value)"); }));
        if (!pair.is_valid()) throw nb::python_error();
        if (PySequence_Fast_GET_SIZE(pair.ptr()) != 2)
            throw nb::value_error("expected pairs of key and value");
        all.add(PySequence_Fast_GET_ITEM(pair.ptr(), 0), as::key);
        all.add(PySequence_Fast_GET_ITEM(pair.ptr(), 1));
    });
    const std::vector<hf_bytes> parts = all.get();
    std::vector<hf_mod_map_step> steps;
    steps.reserve(parts.size() / 2);
    for (std::size_t i = 0; i < parts.size(); i += 2) {
        check_size(parts[i].bytes + parts[i + 1].bytes);
        steps.push_back({parts[i], parts[i + 1], 0});
    }
    to.change_many(all, steps.size(), [&](hf_mod_map* map) {
        return hf_mod_map_update(map, steps.data(), steps.size());
    });
}

template <class Source> void bind_map_reading(nb::class_<Source>& to) {
    to.def("__getitem__", &at<Source>, nb::arg("key").none());
    to.def("__contains__", &contains<Source>, nb::arg("key").none());
    to.def("get", &get_or<Source>, nb::arg("key").none(), nb::arg("default").none() = nb::none());
    to.def("_values", [](const Source& of) { return iterate(of, cursor::gives::values); });
    to.def("_items", [](const Source& of) { return iterate(of, cursor::gives::pairs); });
}

} // namespace

void bind_map(nb::module_& to) {
    nb::class_<snapshot<map_calls>> version(to, "MapSnapshot");
    bind_snapshot(version);
    bind_map_reading(version);

    nb::class_<map> bound(to, "Map");
    bind_structure(bound);
    bind_map_reading(bound);
    bound.def("__setitem__", &put, nb::arg("key").none(), nb::arg("value").none());
    bound.def(
        "__delitem__", [](map& from, nb::handle key) { take_at(from, key); },
        nb::arg("key").none());
    bound.def("pop", &take_at, nb::arg("key").none());
    bound.def("pop", &take_or, nb::arg("key").none(), nb::arg("default").none());
    bound.def("setdefault", &set_default, nb::arg("key").none(), nb::arg("default").none());
    bound.def("_update", &put_all, nb::arg("pairs"));
}

} // namespace hf_python
