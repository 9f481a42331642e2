// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "structure.hpp"

namespace hf_python {

namespace {

using set = structure<set_calls>;

/// Under either of its encodings.
template <class From> bool there(const From* from, const encoded_key& wanted) {
    return find(from, wanted.get()) == HF_OK ||
           (wanted.old() != nullptr && find(from, wanted.old()->get()) == HF_OK);
}

template <class Source> bool contains(const Source& of, nb::handle element) {
    if (!storable(element, as::key)) return false;
    const encoded_key wanted(element);
    return of.read([&](const auto* from) { return there(from, wanted); });
}

void add(set& to, nb::handle element) {
    const encoded_key what(element);
    to.change([&](hf_mod_set* set) {
        if (what.old() != nullptr && there(set, what)) return;
        check(to.commit(what.get().bytes,
                        [&] { return hf_mod_set_insert(set, what.get(), nullptr); }));
    });
}

/// Whether it was there.
bool erase(set& from, nb::handle element) {
    const encoded_key what(element);
    return from.change([&](hf_mod_set* set) {
        const bool old = what.old() != nullptr && find(set, what.get()) != HF_OK;
        const hf_bytes stored = old ? what.old()->get() : what.get();
        const hf_status found = from.commit(0, [&] { return hf_mod_set_erase(set, stored); });
        if (found != HF_NOT_FOUND) check(found);
        return found == HF_OK;
    });
}

void remove(set& from, nb::handle element) {
    if (erase(from, element)) return;
    PyErr_SetObject(PyExc_KeyError, element.ptr());
    throw nb::python_error();
}

/// Adds some and then discards others, in one section.
void change_all(set& to, nb::iterable added, nb::iterable discarded) {
    encoded_list all;
    std::vector<char> steps_erase;
    const auto step = [&](hf_bytes stored, bool erase) {
        all.add(stored);
        steps_erase.push_back(erase);
    };
    const auto add = [&](nb::handle each, bool erase) {
        const encoded_key stored(each);
        if (stored.old() != nullptr) step(stored.old()->get(), true);
        step(stored.get(), erase);
    };
    for_each(added, [&](nb::handle each) { add(each, false); });
    for_each(discarded, [&](nb::handle each) {
        if (storable(each, as::key)) add(each, true); // others cannot be there
    });
    const std::vector<hf_bytes> elements = all.get();
    std::vector<hf_mod_set_step> steps;
    steps.reserve(elements.size());
    for (std::size_t i = 0; i < elements.size(); ++i)
        steps.push_back({elements[i], steps_erase[i]});
    to.change_many(all, steps.size(), [&](hf_mod_set* set) {
        return hf_mod_set_update(set, steps.data(), steps.size());
    });
}

/// The first element of a version, which is kept for it.
struct first_element : looked {
    explicit first_element(hf_mod_set* of) {
        check(hf_mod_set_iterate(of, &all));
        const hf_status found = hf_mod_cursor_next(all, &bytes, nullptr);
        there = found == HF_OK;
        if (!there && found != HF_NOT_FOUND) {
            hf_mod_cursor_close(all);
            check(found);
        }
    }
    first_element(const first_element&) = delete;
    ~first_element() { hf_mod_cursor_close(all); }
    hf_mod_cursor* all = nullptr;
};

nb::object take_any(set& from) {
    nb::object found = taken(
        from, [](hf_mod_set* set) { return first_element(set); },
        [](hf_mod_set* set, first_element& first) { return hf_mod_set_erase(set, first.bytes); });
    if (!found.is_valid()) throw nb::key_error("pop from an empty set");
    return found;
}

} // namespace

void bind_set(nb::module_& to) {
    nb::class_<snapshot<set_calls>> version(to, "SetSnapshot");
    bind_snapshot(version);
    version.def("__contains__", &contains<snapshot<set_calls>>, nb::arg("element").none());

    nb::class_<set> bound(to, "Set");
    bind_structure(bound);
    bound.def("__contains__", &contains<set>, nb::arg("element").none());
    bound.def("add", &add, nb::arg("element").none());
    bound.def(
        "discard", [](set& from, nb::handle element) { erase(from, element); },
        nb::arg("element").none());
    bound.def("remove", &remove, nb::arg("element").none());
    bound.def("pop", &take_any);
    bound.def("_change", &change_all, nb::arg("added"), nb::arg("discarded"));
}

} // namespace hf_python
