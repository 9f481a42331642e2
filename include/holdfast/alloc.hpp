// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Persistent allocation. In a section it is atomic with it; a re-executed section gets the same
// addresses again; nothing here costs an ordering point of its own: intent travels in the section's
// log, publication in its commit (docs/internals/allocator.md).
#pragma once

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

/// Allocates and constructs a T in the section's pool (outside a section: in the process's only
/// open pool, effective at once). Returns null when the pool is full, or cannot grow:
/// pool::why_full() says why.
///
/// Ordering: 0 points. Failure-atomic with the section; outside one 2, and allocated when it
///           returns.
/// Crash:    in a section, allocated if and only if the section completes.
template <class T, class... Args> T* make(Args&&... args) noexcept {
    static_assert(
        !std::is_polymorphic_v<T>,
        "an object with virtual functions holds the address of its table, which is another in "
        "every process: keep alternatives in a std::variant");
    static_assert(std::is_nothrow_constructible_v<T, Args...> || std::is_aggregate_v<T>,
                  "the constructor may throw, which no caller could be told: let it be noexcept, "
                  "construct the object in a block of hf_alloc, or, where it never does throw, in "
                  "an aggregate");
    static_assert(alignof(T) <= 16);
    void* block = hf_alloc(sizeof(T));
    if (block == nullptr) return nullptr;
    if constexpr (std::is_aggregate_v<T>) return ::new (block) T{std::forward<Args>(args)...};
    else return ::new (block) T(std::forward<Args>(args)...);
}

/// An uninitialised array of 'count' T. Null when the pool has no room for so many.
template <class T> T* make_array(std::size_t count) noexcept {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 16);
    constexpr std::size_t count_max = ~std::size_t{0} / sizeof(T);
    return count > count_max ? nullptr : static_cast<T*>(hf_alloc(count * sizeof(T)));
}

/// Destroys and frees; in a section the block stays readable and unused until the commit.
template <class T> void destroy(T* object) noexcept {
    if (object == nullptr) return;
    object->~T();
    hf_free(object);
}

/// Makes all that has returned durable, and final, on any thread: sections, updates of MOD
/// containers, deferred calls of persistent objects. In mode power it is on the disk, also within a
/// durable_together; in mode process a kill takes none of it.
///
/// In pmem mode a section may leave its commit mark to the next one (it would merely be
/// re-executed, or replayed, with the same result); plain stores outside sections would change what
/// it reads, or be taken back. Call it before such stores to memory that sections read or store to,
/// and hold that memory's lock until they are durable.
///
/// Ordering: 1 point for a section whose mark is due, 2 of engine redo; 1 for engine mod; 1 for
///           each persistent object with calls that are not committed.
/// Requires: no section open on this thread.
/// Threads:  any; waits for other threads' calls of persistent objects that are in progress.
void settle(pool& in) noexcept;
/// Returns to the heap the free blocks that this thread keeps at hand, so that chunks which are
/// wholly free can serve other sizes and other threads. To give disk space back is pool::trim().
///
/// Requires: no section open on this thread.
void return_spare_blocks(pool& in) noexcept;

} // namespace hf
