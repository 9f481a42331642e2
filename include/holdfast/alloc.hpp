// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Persistent allocation. In a section it is failure-atomic with the section, and a re-executed
// section gets the same addresses again. Nothing here costs an ordering point of its own: the
// section's log carries the intent, and its commit the publication (docs/internals/allocator.md).
#pragma once

#include <holdfast/abi/stored.hpp>
#include <holdfast/result.hpp>

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>

extern "C" {
__attribute__((malloc, alloc_size(1))) void* hf_alloc(std::size_t bytes) noexcept;
void hf_free(void* block) noexcept;
}

namespace hf {

class pool;

/// Allocates and constructs a T in the section's pool. Outside a section: in the process's only
/// open pool, effective at once.
///
/// Requires: a T of any size, aligned to 16 bytes at most.
/// Ordering: 0 points in a section. Outside one 2, and the block is durable on return.
/// Crash:    in a section, allocated if and only if the section completes.
/// Errors:   null when the pool is full or cannot grow; pool::why_full() says why.
/// Threads:  any.
template <class T, class... Args> T* make(Args&&... args) noexcept {
    static_assert(detail::stored<T>::checked);
    static_assert(
        std::is_nothrow_constructible_v<T, Args...> || std::is_aggregate_v<T>,
        "the constructor may throw, and hf::make reports no exception: let it be noexcept, "
        "construct the object in a block of hf_alloc, or, where it never does throw, in "
        "an aggregate; hf::make_or_throw passes it on");
    static_assert(alignof(T) <= 16);
    void* block = hf_alloc(sizeof(T));
    if (block == nullptr) return nullptr;
    if constexpr (std::is_aggregate_v<T>) return ::new (block) T{std::forward<Args>(args)...};
    else return ::new (block) T(std::forward<Args>(args)...);
}

/// An uninitialised array of 'count' T. Otherwise as make.
template <class T> T* make_array(std::size_t count) noexcept {
    static_assert(detail::stored<T>::checked);
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 16);
    constexpr std::size_t count_max = ~std::size_t{0} / sizeof(T);
    return count > count_max ? nullptr : static_cast<T*>(hf_alloc(count * sizeof(T)));
}

/// Destroys and frees; null does nothing. In a section the block stays readable, and is not used
/// again before the commit. Outside one it is free at once.
///
/// Requires: an object of hf::make, once. Anything else ends the process with a message.
/// Ordering: 0 points in a section. Outside one 2, and those of hf::settle for marks that are due.
/// Crash:    in a section, freed if and only if the section completes.
/// Threads:  any.
template <class T> void destroy(T* object) noexcept {
    if (object == nullptr) return;
    object->~T();
    hf_free(object);
}

/// Makes all work that has returned, on any thread, durable and final: sections, updates of MOD
/// containers, deferred calls of persistent objects. In mode power it is on the disk, also within a
/// durable_together. In mode process a kill takes none of it.
///
/// When to call it: in pmem mode a section may leave its commit mark to the next section. A crash
/// would then re-execute or replay it, with the same result, unless plain stores outside sections
/// have changed what it reads; recovery may also take such stores back. So call settle before plain
/// stores to memory that sections read or store to, and hold that memory's lock until those stores
/// are durable.
///
/// Requires: no section open on this thread.
/// Ordering: 1 point for a section whose mark is due, 2 of engine redo; 1 for engine mod; 1 for
///           each persistent object with calls that are not committed.
/// Threads:  any; waits for other threads' calls of persistent objects that are in progress.
void settle(pool& in) noexcept;
/// Returns to the heap the free blocks that this thread keeps at hand. Chunks that are wholly free
/// can then serve other sizes and other threads. To give disk space back, call pool::trim().
///
/// Requires: no section open on this thread.
/// Crash:    such blocks are free in any case.
/// Threads:  any; each returns its own.
void return_spare_blocks(pool& in) noexcept;

} // namespace hf
