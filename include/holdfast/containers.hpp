// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The standard library's containers, strings and owning pointers for objects in a pool: the same
// classes, with hf::allocator. What they do in a section, and in a full pool, says allocator.hpp.
// They are constructed in a section: zeros are no valid container (hf::root, root.hpp).
#pragma once

#include <holdfast/alloc.hpp>
#include <holdfast/allocator.hpp>
#include <holdfast/libstdcxx.hpp>

#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace hf {

namespace detail {
template <class Hash> inline constexpr bool hashes_addresses = false;
template <class T> inline constexpr bool hashes_addresses<std::hash<T*>> = true;
template <class T, class Deleter>
inline constexpr bool hashes_addresses<std::hash<std::unique_ptr<T, Deleter>>> = true;

/// What a table stores by this hash. Relocatable code stores nothing by its address.
template <class Hash, class Stored> struct hashed {
#if defined(HF_RELOCATABLE)
    static_assert(!hashes_addresses<Hash>,
                  "where a pool is mapped elsewhere, its addresses have other hashes: hash what "
                  "they lead to (docs/internals/relocation.md)");
#endif
    using type = Stored;
};
} // namespace detail

using string = std::basic_string<char, std::char_traits<char>, allocator<char>>;

template <class T> using vector = std::vector<T, allocator<T>>;
template <class T> using deque = std::deque<T, allocator<T>>;
template <class T> using list = std::list<T, allocator<T>>;

template <class Key, class Compare = std::less<>>
using set = std::set<Key, Compare, allocator<Key>>;
template <class Key, class Value, class Compare = std::less<>>
using map = std::map<Key, Value, Compare, allocator<std::pair<const Key, Value>>>;

template <class Key, class Hash = std::hash<Key>, class Equal = std::equal_to<>>
using unordered_set =
    std::unordered_set<Key, Hash, Equal, allocator<typename detail::hashed<Hash, Key>::type>>;
template <class Key, class Value, class Hash = std::hash<Key>, class Equal = std::equal_to<>>
using unordered_map =
    std::unordered_map<Key, Value, Hash, Equal,
                       allocator<typename detail::hashed<Hash, std::pair<const Key, Value>>::type>>;

/// Ends an object of hf::make.
struct destroyer {
    template <class T> void operator()(T* object) const noexcept { destroy(object); }
};
/// Owns an object of hf::make, or nothing. All zeros own nothing.
template <class T> using unique_ptr = std::unique_ptr<T, destroyer>;

} // namespace hf

template <> struct std::hash<hf::string> {
    std::size_t operator()(std::string_view bytes) const noexcept {
        return std::hash<std::string_view>()(bytes);
    }
};
