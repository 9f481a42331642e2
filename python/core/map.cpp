// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "map_like.hpp"

namespace hf_python {

namespace {

using map = structure<map_calls>;
using like = map_like<map_calls, encoded_key>;
using sorted_map = structure<ordered_map_calls>;
using sorted_like = map_like<ordered_map_calls, sorted_key>;

template <class Source> void bind_map_reading(nb::class_<Source>& to) {
    like::bind_reading(to);
    to.def("_values", [](const Source& of) { return iterate(of, cursor::gives::values); });
    to.def("_items", [](const Source& of) { return iterate(of, cursor::gives::pairs); });
}

/// Where a range begins or ends: before the keys that are equal to the bound, or behind them.
class bound {
public:
    /// 'given' is a tuple of a key and whether the bound is behind it, or None: no bound.
    explicit bound(const nb::object& given) {
        if (given.is_none()) return;
        const nb::object key = given[0];
        const sorted_key at(key);
        made_.append(at.ordered().data, at.ordered().bytes);
        if (nb::cast<bool>(given[1]))
            made_.append('\xff'); // above what may follow the ordered part
        bytes_ = {made_.data(), made_.size()};
        there_ = true;
    }
    const hf_bytes* get() const noexcept { return there_ ? &bytes_ : nullptr; }

private:
    buffer made_;
    hf_bytes bytes_{};
    bool there_ = false;
};

template <class Source>
cursor* through(const Source& of, const hf_bytes* from, const hf_bytes* upto, bool backwards,
                cursor::gives what) {
    hf_mod_cursor* made = nullptr;
    of.read([&](const auto* map) { check(range(map, from, upto, backwards, &made)); });
    return new cursor(of.owner(), made, what, &decoded_key);
}

/// Keys, values or pairs between two bounds.
template <class Source>
cursor* between(const Source& of, const nb::object& from, const nb::object& upto, bool backwards,
                int what) {
    const bound first(from), last(upto);
    return through(of, first.get(), last.get(), backwards, static_cast<cursor::gives>(what));
}

/// The str or bytes keys that begin so.
template <class Source>
cursor* beginning(const Source& of, const nb::object& prefix, bool backwards, int what) {
    if (!PyUnicode_Check(prefix.ptr()) && !PyBytes_Check(prefix.ptr()))
        throw nb::type_error("prefix: expected a str or bytes");
    const sorted_key key(prefix);
    const hf_bytes all = key.ordered();
    buffer from, upto; // without the end mark; UTF-8 has no byte 0xff, and bytes may have many
    from.append(all.data, all.bytes - 1);
    upto.append(all.data, all.bytes - 1);
    std::size_t bytes = upto.size();
    while (static_cast<unsigned char>(upto.data()[bytes - 1]) == 0xff) --bytes; // ends at the kind
    ++upto.data()[bytes - 1];
    const hf_bytes first{from.data(), from.size()}, last{upto.data(), bytes};
    return through(of, &first, &last, backwards, static_cast<cursor::gives>(what));
}

template <class Source> void bind_sorted_reading(nb::class_<Source>& to) {
    sorted_like::bind_reading(to);
    to.def("_between", &between<Source>, nb::arg("from").none(), nb::arg("upto").none(),
           nb::arg("backwards"), nb::arg("what"));
    to.def("_beginning", &beginning<Source>, nb::arg("prefix"), nb::arg("backwards"),
           nb::arg("what"));
}

} // namespace

void bind_map(nb::module_& to) {
    using version = snapshot<map_calls>;
    nb::class_<version> bound_version(to, "MapSnapshot", nb::type_slots(like::slots<version>()));
    bind_snapshot(bound_version);
    bind_map_reading(bound_version);
    bound_version.def("view", &like::view, nb::arg("key").none());

    nb::class_<map> bound(to, "Map", nb::type_slots(like::slots<map>()));
    bind_structure(bound);
    bind_map_reading(bound);
    like::bind_changing(bound);
}

void bind_sorted_map(nb::module_& to) {
    using version = snapshot<ordered_map_calls>;
    nb::class_<version> bound_version(to, "SortedMapSnapshot",
                                      nb::type_slots(sorted_like::slots<version>()));
    bind_snapshot(bound_version);
    bind_sorted_reading(bound_version);
    bound_version.def("view", &sorted_like::view, nb::arg("key").none());

    nb::class_<sorted_map> bound_map(to, "SortedMap",
                                     nb::type_slots(sorted_like::slots<sorted_map>()));
    bind_structure(bound_map);
    bind_sorted_reading(bound_map);
    sorted_like::bind_changing(bound_map);
}

} // namespace hf_python
