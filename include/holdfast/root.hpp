// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A root object with a constructor. pool::root() gives zeros, which are no valid container.
#pragma once

#include <holdfast/abi/stored.hpp>
#include <holdfast/allocator.hpp>
#include <holdfast/holdfast.h>
#include <holdfast/tx.hpp>

#include <cstddef>
#include <cstdint>
#include <new>

namespace hf {
namespace detail {

/// The root object that lies in the pool.
template <class T> struct constructed {
    alignas(T) std::byte bytes[sizeof(T)];
    std::uint64_t is_made; // 0 until T's constructor has run to its end
};

template <class Object, class Pool> Object* find_root(Pool& in) noexcept {
    return in.template root<Object>();
}
template <class Object> Object* find_root(hf_pool* in) noexcept {
    [[maybe_unused]] root_of<Object> type;
    void* found = nullptr;
    return hf_pool_root(in, sizeof(Object), &found) == HF_OK ? static_cast<Object*>(found)
                                                             : nullptr;
}

} // namespace detail

/// The pool's root object; 'in' is a hf::pool, or a hf_pool* of the C interface. The first call
/// constructs it with T's default constructor, in a section of the caller's engine. Null where
/// pool::root() is null: the log says why.
///
/// Requires: no section open on this thread. All calls for a pool name the same T.
/// Ordering: those of one section.
/// Crash:    while it is constructed: the next call begins again, or finds it made.
/// Errors:   a constructor that finds the pool full: as in any section (allocator.hpp).
/// Threads:  one at a time.
template <class T, class Pool> T* root(Pool&& in) {
    static_assert(detail::stored<T>::checked);
    static_assert(alignof(T) <= 16,
                  "blocks are aligned to 16 bytes: expected a type that needs no more");
    auto* const found = detail::find_root<detail::constructed<T>>(in);
    if (found == nullptr) return nullptr;
    if (found->is_made == 0)
        tx(in, [found]() noexcept(HF_ALLOCATOR_THROWS == 0) {
            ::new (static_cast<void*>(found->bytes)) T();
            found->is_made = 1;
        });
    return std::launder(reinterpret_cast<T*>(found->bytes));
}

} // namespace hf
