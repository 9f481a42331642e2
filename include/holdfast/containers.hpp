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

using string = std::basic_string<char, std::char_traits<char>, allocator<char>>;

template <class T> using vector = std::vector<T, allocator<T>>;
template <class T> using deque = std::deque<T, allocator<T>>;
template <class T> using list = std::list<T, allocator<T>>;

template <class Key, class Compare = std::less<>>
using set = std::set<Key, Compare, allocator<Key>>;
template <class Key, class Value, class Compare = std::less<>>
using map = std::map<Key, Value, Compare, allocator<std::pair<const Key, Value>>>;

template <class Key, class Hash = std::hash<Key>, class Equal = std::equal_to<>>
using unordered_set = std::unordered_set<Key, Hash, Equal, allocator<Key>>;
template <class Key, class Value, class Hash = std::hash<Key>, class Equal = std::equal_to<>>
using unordered_map =
    std::unordered_map<Key, Value, Hash, Equal, allocator<std::pair<const Key, Value>>>;

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
