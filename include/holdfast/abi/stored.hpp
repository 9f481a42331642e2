// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What every type of objects in a pool has to be. Internal: pool::root, hf::make and others ask for
// it. The checks here need no plugin; they see a type but not its members. The compiler's plugin
// looks through those as well (compiler/syntax), and finds them by this template.
#pragma once

#include <type_traits>

namespace hf::detail {

template <class T> struct stored {
    static_assert(!std::is_reference_v<T>,
                  "a reference cannot live in a pool: use a pointer into it");
    static_assert(!std::is_polymorphic_v<T>,
                  "an object with virtual functions holds the address of its table, which is "
                  "another in every process: keep alternatives in a std::variant");
    static_assert(!std::is_function_v<std::remove_pointer_t<T>> &&
                      !std::is_member_function_pointer_v<T>,
                  "functions have other addresses in every process: store an enum or a "
                  "std::variant that says what to call");
    static constexpr bool checked = true;
};

/// A program that asks pools for a T has a variable of this type, which is nothing but its name in
/// the debug information: `holdfast print` finds the root's type by it.
template <class T> struct root_of {};

} // namespace hf::detail
