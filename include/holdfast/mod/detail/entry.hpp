// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The entries that iterators of maps give, and when a map may look up what is not a key.
#pragma once

#include <holdfast/mod/detail/element.hpp>

#include <memory>
#include <type_traits>
#include <utility>

namespace hf::mod {

/// An entry as iterators of a map give it: references into the pool, valid as long as the version
/// that they come from.
template <class Key, class Value> struct entry {
    typename detail::slot<Key>::view first;
    typename detail::slot<Value>::view second;

    entry(typename detail::slot<Key>::view key, typename detail::slot<Value>::view value) noexcept
        : first(key), second(value) {}
    /// Refers to an entry that was copied out.
    entry(const std::pair<Key, Value>& copied) noexcept
        : first(copied.first), second(copied.second) {}
    operator std::pair<Key, Value>() const { return {Key(first), Value(second)}; }
    operator std::pair<const Key, Value>() const {
        return {Key(first), Value(second)};
    } // std::map's
};

namespace detail {

template <class Function>
concept transparent = requires { typename Function::is_transparent; };

/// The type names of a structure of keys and values.
template <class Key, class Value> struct entry_types {
    using key_type = Key;
    using mapped_type = Value;
    using key_view = typename slot<Key>::view;
    using value_view = typename slot<Value>::view;
};

/// The result of operator-> of an iterator that makes its entries on the way.
template <class Reference> struct arrow {
    Reference held;
    const std::remove_reference_t<Reference>* operator->() const noexcept {
        return std::addressof(held);
    }
};

} // namespace detail
} // namespace hf::mod

template <class Key, class Value, template <class> class EntryQualifiers,
          template <class> class PairQualifiers>
struct std::basic_common_reference<hf::mod::entry<Key, Value>, std::pair<Key, Value>,
                                   EntryQualifiers, PairQualifiers> {
    using type = hf::mod::entry<Key, Value>;
};
template <class Key, class Value, template <class> class PairQualifiers,
          template <class> class EntryQualifiers>
struct std::basic_common_reference<std::pair<Key, Value>, hf::mod::entry<Key, Value>,
                                   PairQualifiers, EntryQualifiers> {
    using type = hf::mod::entry<Key, Value>;
};
