// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The persistent objects of a pool, whatever their classes.  SIMPO §3.4, Table 6  docs/guide/simpo.md
//
//     for (const auto& each : *hf::simpo::list(pool)) std::puts(each.name.c_str());
//     hf::simpo::drop(pool, "old");                                       // its class is in no program any more
//     auto r = hf::simpo::remake<row, row_1>(pool, "r", {}, [](const row_1& was) { return row{was}; });
//
// (1) The list has every object, also one that no program finds any more because the name is
//     forgotten or the class is gone.
// (2) No failure leaves a block that is missing from the list: the next open takes back the blocks
//     of an object that was being made, dropped or remade.
#pragma once

#include <holdfast/simpo.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace hf::simpo {

/// What the table records of an object.
struct object_info {
    std::string name, class_text;
    std::uint32_t class_version;
    std::uint64_t object_bytes, log_bytes,
        block_bytes;                              // the last: what all of it takes of the pool
    std::uint32_t callers, results, result_bytes; // object_options; the last two 0 without callers
    bool swapped_out;                             // to a file (holdfast/simpo/swap.hpp)
};

/// All objects, in the order of their places.
///
/// Cost:     O(objects that the pool may have).
/// Errors:   missing_engine, in_use.
result<std::vector<object_info>> list(const pool& in);

/// Ends the object of this name, whatever its class.
///
/// Requires: nobody uses a handle on it any more.
/// Ordering: 2 points.
/// Crash:    the object as it was, or none.
/// Errors:   not_found, permission, missing_engine, in_use.
status drop(pool& in, std::string_view name);

namespace detail {
using make_from = void (*)(void* made, const void* was, void* context);
result<core*> remake(pool& in, std::string_view name, const class_shape& was,
                     const class_shape& what, const object_options& how, make_from convert,
                     void* context);
} // namespace detail

/// Replaces the object of this name by another one: of another class or version, another size, or
/// with another log. The new object is convert(what it was), a `From`; it knows no callers yet.
/// Pending calls are committed before.
///
/// Requires: nobody uses a handle on it any more. `From` is the class that the object has, with
///           that class's name and version. If its program did not end with a clean close, `From`
///           also has the functions that the object's log calls.
/// Ordering: 4 points, and those of a checkpoint where calls are pending; durable on return.
/// Crash:    the object as it was, or the new one; the memory of neither is lost.
/// Errors:   as find; pool_full as create (there must be room for both at once), bad_argument,
///           permission.
/// Source:   SIMPO §3.4.1, porealloc. Differs: src/simpo/README.md.
template <class To, class From, class Convert>
    requires std::is_invocable_r_v<To, Convert, const From&>
result<object<To>> remake(pool& in, std::string_view name, const object_options& how,
                          Convert&& convert) {
    static_assert(persistent_class<To> && persistent_class<From>);
    const auto make = [](void* made, const void* was, void* context) {
        auto& with = *static_cast<std::remove_reference_t<Convert>*>(context);
        ::new (made) To(with(*std::launder(static_cast<const From*>(was))));
    };
    const detail::class_shape old{From::simpo_class.text, From::simpo_class.version, sizeof(From)};
    const detail::class_shape now{To::simpo_class.text, To::simpo_class.version, sizeof(To)};
    const auto made = detail::remake(in, name, old, now, how, make,
                                     const_cast<void*>(static_cast<const void*>(&convert)));
    if (!made) return made.error();
    return object<To>::find(in, name);
}

} // namespace hf::simpo
