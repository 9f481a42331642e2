// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "map_like.hpp"

namespace hf_python {

namespace {

using map = structure<map_calls>;
using like = map_like<map_calls, encoded_key>;

template <class Source> void bind_map_reading(nb::class_<Source>& to) {
    like::bind_reading(to);
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
    like::bind_changing(bound);
}

} // namespace hf_python
