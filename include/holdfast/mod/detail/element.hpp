// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The layout of an element (a key, a value, a stack's or a vector's element) in a MOD node.
//
// (1) A trivially copyable T lies as it is, in a slot of its size and alignment; an empty T takes
//     no bytes. Reading gives a const T&.
// (2) A std::string lies as its bytes in a node of their own, a blob, and its slot holds the blob's
//     ref. Reading gives a std::string_view. A blob has room for two strings, so that an entry of
//     a map of strings is one ref.
// (3) What reclamation must know of a slot fits into 20 bits of a root's shape: slot_shape.
#pragma once

#include <holdfast/abi/stored.hpp>
#include <holdfast/author/mod/store.hpp>

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace hf::mod {

namespace detail {
inline constexpr std::size_t slot_bytes_max = 0xffff;
}

/// Kept as it is. Requires: no pointers to objects outside the pool, or with a shorter life.
template <class T>
concept plain_element = std::is_object_v<T> && std::same_as<T, std::remove_cv_t<T>> &&
                        std::is_trivially_copyable_v<T> && alignof(T) <= granule_bytes &&
                        sizeof(T) <= detail::slot_bytes_max && hf::detail::stored<T>::checked;

/// Kept as bytes of any length.
template <class T>
concept byte_string = std::same_as<T, std::string>;

/// The types that structures hold.
template <class T>
concept element = plain_element<T> || byte_string<T>;

namespace detail {

/// A node; zeros if a damaged structure leads out of its pool.
template <class T>
const T* node_at(const std::byte* base, ref node,
                 std::size_t bytes = std::max<std::size_t>(sizeof(T), granule_bytes)) noexcept {
    return reinterpret_cast<const T*>(bytes_at(base, node, bytes));
}

/// The last ref at which so many bytes may lie. For ways through many nodes: one comparison bounds
/// a ref and detects bit 31.
inline ref last_ref(const std::byte* base, std::size_t bytes) noexcept {
    return static_cast<ref>(
        std::min<std::uint64_t>((reach_of(base) - bytes) / granule_bytes, ref_max));
}
/// A node whose ref is bounded, and has no bit 31.
template <class T> const T* bounded_node(const std::byte* base, ref node) noexcept {
    return reinterpret_cast<const T*>(base + std::uint64_t{node} * granule_bytes);
}
/// Prefetches a node that is needed soon. Any ref will do.
inline void fetch(const std::byte* base, ref node, std::size_t line = 0) noexcept {
    __builtin_prefetch(base + std::uint64_t{node & ref_max} * granule_bytes + 64 * line);
}

/// A blob node's head. The key's bytes follow, then the value's.
struct blob {
    std::uint32_t key_bytes;
    std::uint32_t value_bytes;
};
static_assert(sizeof(blob) == 8 && std::is_trivially_copyable_v<blob>);

/// Most bytes of a blob's strings together.
inline constexpr std::size_t blob_bytes_max = node_bytes_max - sizeof(blob);
/// Context of blobs. Other nodes' contexts of a kind that has blobs are smaller.
inline constexpr std::uint32_t blob_context = 0x8000'0000;

/// A blob of these bytes. If there is no room or they are too long: 0, and the shadow has failed.
inline ref make_blob(shadow& to, std::string_view key, std::string_view value = {}) {
    if (key.size() > blob_bytes_max || value.size() > blob_bytes_max - key.size()) {
        to.fail();
        return 0;
    }
    const ref made = to.make(sizeof(blob) + key.size() + value.size());
    if (made == 0) return 0;
    auto* head = to.at<blob>(made);
    *head = {static_cast<std::uint32_t>(key.size()), static_cast<std::uint32_t>(value.size())};
    auto* bytes = reinterpret_cast<char*>(head + 1);
    if (!key.empty()) std::memcpy(bytes, key.data(), key.size());
    if (!value.empty()) std::memcpy(bytes + key.size(), value.data(), value.size());
    return made;
}

/// Whether a blob's strings lie in the pool; a damaged blob's do not.
inline bool blob_is_sound(const std::byte* base, const blob& head) noexcept {
    return within(base, reinterpret_cast<const std::byte*>(&head),
                  sizeof head + std::uint64_t{head.key_bytes} + head.value_bytes);
}
inline std::string_view blob_key(const std::byte* base, ref at) noexcept {
    const auto* head = node_at<blob>(base, at);
    if (!blob_is_sound(base, *head)) [[unlikely]]
        return {};
    return {reinterpret_cast<const char*>(head + 1), head->key_bytes};
}
inline std::string_view blob_value(const std::byte* base, ref at) noexcept {
    const auto* head = node_at<blob>(base, at);
    if (!blob_is_sound(base, *head)) [[unlikely]]
        return {};
    return {reinterpret_cast<const char*>(head + 1) + head->key_bytes, head->value_bytes};
}

/// For kinds: names an impossible node, so that verification finds the fault.
inline void visit_corrupt(visitor& to, std::uint32_t context) {
    to.node(ref_max, node_bytes_max, context);
}
inline void visit_blob(visitor& to, ref at) { to.node(at, sizeof(blob), blob_context); }
/// A blob has no children; its lengths must lie in its node.
inline void visit_blob_children(visitor& to, const std::byte* node, std::size_t bytes) {
    blob head;
    if (bytes < sizeof head) return visit_corrupt(to, blob_context);
    std::memcpy(&head, node, sizeof head);
    if (std::uint64_t{head.key_bytes} + head.value_bytes > bytes - sizeof head)
        visit_corrupt(to, blob_context);
}

/// A slot as reclamation sees it.
struct slot_form {
    std::uint32_t bytes;
    std::uint32_t align;
    bool holds_ref;
};
inline constexpr unsigned slot_shape_bits = 20;
/// bits 0-15: bytes; 16-18: log2 of the alignment; 19: the slot holds a blob's ref.
constexpr std::uint64_t slot_shape(slot_form of) noexcept {
    return of.bytes | std::uint64_t(std::countr_zero(of.align)) << 16 |
           std::uint64_t{of.holds_ref} << 19;
}
constexpr slot_form slot_of_shape(std::uint64_t bits) noexcept {
    return {static_cast<std::uint32_t>(bits & 0xffff), std::uint32_t{1} << (bits >> 16 & 7),
            (bits >> 19 & 1) != 0};
}

/// The layout of a node of entries: a head, then all keys, then all values.
template <std::size_t HeadBytes> struct entry_layout {
    slot_form key;
    slot_form value;

    static constexpr std::size_t aligned(std::size_t bytes, std::size_t to) noexcept {
        return (bytes + to - 1) & ~(to - 1);
    }
    constexpr std::size_t keys() const noexcept { return aligned(HeadBytes, key.align); }
    constexpr std::size_t values(std::size_t count) const noexcept {
        return aligned(keys() + count * key.bytes, value.align);
    }
    constexpr std::size_t bytes(std::size_t count) const noexcept {
        return values(count) + count * value.bytes;
    }
};

/// An element's slot: how it is written, read and given up.
template <element T> struct slot;

template <plain_element T> struct slot<T> {
    using view = const T&;
    static constexpr slot_form form = {std::is_empty_v<T> ? 0 : sizeof(T), alignof(T), false};
    /// Returns whether the slot was written.
    static bool write(shadow&, std::byte* at, view value) noexcept {
        if constexpr (form.bytes != 0) std::memcpy(at, &value, sizeof(T));
        return true;
    }
    static view read(const std::byte*, const std::byte* at) noexcept {
        return *reinterpret_cast<const T*>(at);
    }
    static void give_up(shadow&, const std::byte*) noexcept {}
};

template <byte_string T> struct slot<T> {
    using view = std::string_view;
    static constexpr slot_form form = {sizeof(ref), alignof(ref), true};
    static bool write(shadow& to, std::byte* at, view value) {
        const ref made = make_blob(to, value);
        std::memcpy(at, &made, sizeof made);
        return made != 0;
    }
    static ref blob_of(const std::byte* at) noexcept {
        ref blob;
        std::memcpy(&blob, at, sizeof blob);
        return blob;
    }
    static view read(const std::byte* base, const std::byte* at) noexcept {
        return blob_key(base, blob_of(at));
    }
    /// Gives up what the slot names: it is no part of the new version.
    static void give_up(shadow& to, const std::byte* at) {
        to.replaced(blob_of(at), blob_context); // reused at once if this shadow made it
    }
};

/// For kinds: the blobs that 'count' slots in a row name.
inline void visit_slots(visitor& to, slot_form form, const std::byte* slots, std::size_t count) {
    if (!form.holds_ref) return;
    if (form.bytes != sizeof(ref)) return visit_corrupt(to, blob_context);
    for (std::size_t i = 0; i < count; ++i) {
        ref named;
        std::memcpy(&named, slots + i * form.bytes, sizeof named);
        visit_blob(to, named);
    }
}

} // namespace detail
} // namespace hf::mod
