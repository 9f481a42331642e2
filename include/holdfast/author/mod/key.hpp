// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The default functions by which maps hash, compare and order keys.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace hf::mod {

namespace detail {
/// XXH3 of these bytes: durable, the same everywhere.
std::uint64_t hash_bytes(const void* bytes, std::size_t count) noexcept;
} // namespace detail

/// The default hash of keys. Its results are part of the pool's format. So the hash must be a
/// function of the key's value only, the same in every program and build; this holds for your own
/// hashes, too.
///
/// Your own hash may have `static constexpr std::uint16_t identity` (2 or more): a pool made with
/// one identity is not opened with another. And `using is_avalanching = void`, if all its bits are
/// good; else they are mixed.
template <class T> struct hash {
    static_assert(std::has_unique_object_representations_v<T>,
                  "equal keys must have equal bytes: give mod::map a hash for this type");
    static constexpr std::uint16_t identity = 1;
    std::uint64_t operator()(const T& key) const noexcept {
        if constexpr (sizeof(T) <= sizeof(std::uint64_t)) {
            std::uint64_t bits = 0;
            std::memcpy(&bits, &key, sizeof key);
            return bits;
        } else {
            return detail::hash_bytes(&key, sizeof key);
        }
    }
};
template <> struct hash<std::string> {
    static constexpr std::uint16_t identity = 1;
    using is_transparent = void;
    using is_avalanching = void;
    std::uint64_t operator()(std::string_view key) const noexcept {
        return detail::hash_bytes(key.data(), key.size());
    }
};

/// The default comparison of keys: ==, or equality of the bytes if T has no ==.
template <class T> struct equal_to {
    bool operator()(const T& a, const T& b) const noexcept {
        if constexpr (std::equality_comparable<T>) return a == b;
        else return std::memcmp(&a, &b, sizeof a) == 0;
    }
};
template <> struct equal_to<std::string> {
    using is_transparent = void;
    bool operator()(std::string_view a, std::string_view b) const noexcept { return a == b; }
};

/// The default order of keys: <, and for strings the order of their bytes.
///
/// Your own order is a type without state that gives the same order in every program and build. It
/// may have `static constexpr std::uint16_t identity` (3 or more): a pool made with one identity is
/// not opened with another. And is_transparent, to look up what is not a key.
template <class T> struct less {
    static constexpr std::uint16_t identity = 1;
    bool operator()(const T& a, const T& b) const noexcept { return a < b; }
};
template <> struct less<std::string> {
    static constexpr std::uint16_t identity = 1;
    using is_transparent = void;
    bool operator()(std::string_view a, std::string_view b) const noexcept { return a < b; }
};
/// The reverse order.
template <class T> struct greater : less<T> {
    static constexpr std::uint16_t identity = 2;
    template <class A, class B> bool operator()(const A& a, const B& b) const noexcept {
        return less<T>::operator()(b, a);
    }
};

} // namespace hf::mod
