// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What Map and SortedMap have in common. 'Key' is the stored form of their keys: encoded_key,
// sorted_key.
#pragma once

#include "structure.hpp"
#include "view.hpp"

#include <optional>
#include <type_traits>
#include <vector>

namespace hf_python {

[[noreturn]] inline void no_such_key(nb::handle key) {
    PyErr_SetObject(PyExc_KeyError, key.ptr());
    throw nb::python_error();
}

/// What a look for a key found, and under which of its encodings.
struct looked_up : looked {
    hf_bytes under{};
};

template <class From, class Key> looked_up look_up(const From* from, const Key& key) {
    looked_up found;
    found.under = key.get();
    hf_status status = get(from, found.under, &found.bytes);
    if (status == HF_NOT_FOUND && key.old() != nullptr) {
        found.under = key.old()->get();
        status = get(from, found.under, &found.bytes);
    }
    if (status != HF_NOT_FOUND) check(status);
    found.there = status == HF_OK;
    return found;
}

template <class Calls, class Key> struct map_like {
    using map = structure<Calls>;
    using handle = typename Calls::handle;

    /// The value, or nothing.
    template <class Source> static nb::object found_in(const Source& of, const Key& wanted) {
        half_decoded::room room;
        const auto half = of.read([&](const auto* from) -> std::optional<half_decoded> {
            const looked_up found = look_up(from, wanted);
            if (!found.there) return {};
            return half_decoded(found.bytes, &room);
        });
        return half ? half->whole(form::frozen) : nb::object();
    }
    template <class Source> static nb::object at(const Source& of, nb::handle key) {
        nb::object found = found_in(of, Key(key));
        if (!found.is_valid()) no_such_key(key);
        return found;
    }
    template <class Source>
    static nb::object get_or(const Source& of, nb::handle key, const nb::object& otherwise) {
        nb::object found = found_in(of, Key(key));
        return found.is_valid() ? found : otherwise;
    }
    template <class Source> static bool contains(const Source& of, nb::handle key) {
        if (!Key::storable(key)) return false;
        const Key wanted(key);
        return of.read([&](const auto* from) { return look_up(from, wanted).there; });
    }

    /// The step that puts a value, which also takes the key's old encoding out. Requires: within
    /// change().
    static void put_here(map& to, handle* at, const Key& key, hf_bytes value) {
        check(to.commit(value.bytes, [&] {
            if (key.old() == nullptr) return hf_python::put(at, key.get(), value);
            const hf_mod_map_step steps[] = {{key.old()->get(), {}, 1}, {key.get(), value, 0}};
            return update(at, steps, 2);
        }));
    }
    static void put(map& to, nb::handle key, nb::handle value) {
        const Key at(key);
        const encoded what(value);
        check_size(at.get().bytes + what.get().bytes);
        to.change([&](handle* map) { put_here(to, map, at, what.get()); });
    }

    static nb::object take(map& from, nb::handle key) {
        const Key wanted(key);
        return taken(
            from, [&](handle* map) { return look_up(map, wanted); },
            [&](handle* map, looked_up& found) { return hf_python::take(map, found.under); });
    }
    static nb::object take_at(map& from, nb::handle key) {
        nb::object found = take(from, key);
        if (!found.is_valid()) no_such_key(key);
        return found;
    }
    static nb::object take_or(map& from, nb::handle key, const nb::object& otherwise) {
        nb::object found = take(from, key);
        return found.is_valid() ? found : otherwise;
    }

    /// Returns what is stored, as a read would.
    static nb::object set_default(map& to, nb::handle key, nb::handle value) {
        const Key wanted(key);
        nb::object found = found_in(to, wanted);
        if (found.is_valid()) return found;
        const encoded what(value); // as late as dict looks at it
        check_size(wanted.get().bytes + what.get().bytes);
        const auto meanwhile = to.change([&](handle* map) -> std::optional<half_decoded> {
            const looked_up there = look_up(map, wanted);
            if (there.there) return half_decoded(there.bytes);
            put_here(to, map, wanted, what.get());
            return {};
        });
        return meanwhile ? meanwhile->whole(form::frozen) : decoded(what.get());
    }

    /// The stored bytes of the value, or None.
    template <class Source> static nb::object stored(const Source& of, nb::handle key) {
        const Key wanted(key);
        return of.read([&](const auto* from) -> nb::object {
            const looked_up found = look_up(from, wanted);
            if (!found.there) return nb::none();
            return nb::bytes(found.bytes.data, found.bytes.bytes);
        });
    }
    /// Puts the value if the stored bytes are still these; None stands for a missing key. Returns
    /// whether they were.
    static bool exchange(map& to, nb::handle key, const nb::object& before, nb::handle value) {
        const Key wanted(key);
        const encoded what(value);
        check_size(wanted.get().bytes + what.get().bytes);
        return to.change([&](handle* map) {
            const looked_up now = look_up(map, wanted);
            if (now.there == before.is_none()) return false;
            if (now.there && !same(now.bytes, bytes_of(nb::borrow<nb::bytes>(before))))
                return false;
            if (!now.there || !same(now.bytes, what.get())) put_here(to, map, wanted, what.get());
            return true;
        });
    }
    /// value + amount, whatever other threads do meanwhile. Returns the new value.
    static nb::object add(map& to, nb::handle key, nb::handle amount, nb::handle otherwise) {
        for (;;) {
            const nb::object before = stored(to, key);
            const nb::object value =
                before.is_none() ? nb::borrow(otherwise)
                                 : decoded(bytes_of(nb::borrow<nb::bytes>(before)), form::plain);
            const nb::object sum =
                nb::steal(in_python([&] { return PyNumber_Add(value.ptr(), amount.ptr()); }));
            if (!sum.is_valid()) throw nb::python_error();
            if (exchange(to, key, before, sum)) return decoded(encoded(sum).get());
        }
    }

    /// Puts pairs of key and value, and erases keys, in one section.
    static void change_all(map& to, nb::iterable pairs, nb::iterable erased) {
        encoded_list all;
        std::vector<char> steps_erase;
        const auto add = [&](nb::handle key, nb::handle value) {
            const Key at(key);
            if (at.old() != nullptr) {
                all.add(at.old()->get());
                all.add(hf_bytes{});
                steps_erase.push_back(1);
            }
            all.add(at.get());
            if (value.is_valid()) all.add(value);
            else all.add(hf_bytes{});
            steps_erase.push_back(value.is_valid() ? 0 : 1);
        };
        for_each(pairs, [&](nb::handle each) {
            const nb::object pair = nb::steal(
                in_python([=] { return PySequence_Fast(each.ptr(), "expected (key, value)"); }));
            if (!pair.is_valid()) throw nb::python_error();
            if (PySequence_Fast_GET_SIZE(pair.ptr()) != 2)
                throw nb::value_error("expected pairs of key and value");
            const nb::object key = nb::borrow(PySequence_Fast_GET_ITEM(pair.ptr(), 0));
            const nb::object value = nb::borrow(PySequence_Fast_GET_ITEM(pair.ptr(), 1));
            add(key, value);
        });
        for_each(erased, [&](nb::handle key) { add(key, {}); });
        const std::vector<hf_bytes> parts = all.get();
        std::vector<hf_mod_map_step> steps;
        steps.reserve(steps_erase.size());
        for (std::size_t i = 0; i < steps_erase.size(); ++i) {
            check_size(parts[2 * i].bytes + parts[2 * i + 1].bytes);
            steps.push_back({parts[2 * i], parts[2 * i + 1], steps_erase[i]});
        }
        to.change_many(all, steps.size(),
                       [&](handle* map) { return update(map, steps.data(), steps.size()); });
    }

    /// A memoryview of the value.
    static nb::object view(snapshot<Calls>& of, nb::handle key) {
        const Key wanted(key);
        return viewed(of, [&](const auto* from) {
            const looked_up found = look_up(from, wanted);
            if (!found.there) no_such_key(key);
            return found.bytes;
        });
    }

    // m[key], 'key in m', m[key] = value; without a value: del m[key].
    template <class Source> static PyObject* get_item(PyObject* self, PyObject* key) noexcept {
        return guarded<PyObject*>(nullptr,
                                  [&] { return at(self_of<Source>(self), key).release().ptr(); });
    }
    template <class Source> static int has(PyObject* self, PyObject* key) noexcept {
        return guarded(-1, [&] { return int{contains(self_of<Source>(self), key)}; });
    }
    static int set_item(PyObject* self, PyObject* key, PyObject* value) noexcept {
        return guarded(-1, [&] {
            map& of = self_of<map>(self);
            if (value != nullptr) put(of, key, value);
            else (void)take_at(of, key);
            return 0;
        });
    }
    template <class Source> static const PyType_Slot* slots() {
        static PyType_Slot found[] = {slot(Py_mp_subscript, &get_item<Source>),
                                      slot(Py_sq_contains, &has<Source>),
                                      {0, nullptr},
                                      {0, nullptr}};
        if constexpr (std::is_same_v<Source, map>) found[2] = slot(Py_mp_ass_subscript, &set_item);
        return found;
    }

    template <class Source> static void bind_reading(nb::class_<Source>& to) {
        to.def("get", &get_or<Source>, nb::arg("key").none(),
               nb::arg("default").none() = nb::none());
        to.def("_stored", &stored<Source>, nb::arg("key").none());
    }
    static void bind_changing(nb::class_<map>& to) {
        to.def("pop", &take_at, nb::arg("key").none());
        to.def("pop", &take_or, nb::arg("key").none(), nb::arg("default").none());
        to.def("setdefault", &set_default, nb::arg("key").none(), nb::arg("default").none());
        to.def("add", &add, nb::arg("key").none(), nb::arg("amount"), nb::arg("default") = 0);
        to.def("_exchange", &exchange, nb::arg("key").none(), nb::arg("before").none(),
               nb::arg("value").none());
        to.def("_change", &change_all, nb::arg("pairs"), nb::arg("erased"));
    }
};

} // namespace hf_python
