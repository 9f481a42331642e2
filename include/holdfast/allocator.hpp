// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Containers of the standard library in a pool: std::map<K, V, std::less<K>,
// hf::allocator<std::pair<const K, V>>>. The compiler instruments their code as part of the section
// that changes them. So all of it must be in headers: libc++'s containers (-stdlib=libc++), or
// libstdc++'s with <holdfast/libstdcxx.hpp>.
//
// (1) The allocator has no state: a container takes memory from the pool of the section that runs.
//     Pointers are plain, so a container that lies in the pool is whole when the pool is opened
//     again.
// (2) When the pool is full, a container gets std::bad_alloc with engines auto and redo, which take
//     the section back if the exception leaves it. With other engines no exception may leave a
//     section, so the process ends: see allocate. Make sure of room before the section, with hf::staged or
//     reserve.
#pragma once

#include <holdfast/abi/holdfast_abi.h>

#include <cstddef>
#include <limits>
#include <new>
#include <type_traits>
#include <utility>
#if defined(_LIBCPP_VERSION)
#include <vector> // says whether it is annotated
#endif

// Whether an exception may leave sections of this engine.
#define HF_LEAVES_auto 1
#define HF_LEAVES_redo 1
#define HF_LEAVES_OF(engine) HF_LEAVES_NAMED(engine)
#define HF_LEAVES_NAMED(engine) HF_LEAVES_##engine
#if defined(HF_ENGINE) && defined(__cpp_exceptions)
#if HF_LEAVES_OF(HF_ENGINE)
#define HF_ALLOCATOR_THROWS 1
#endif
#endif
#if !defined(HF_ALLOCATOR_THROWS)
#define HF_ALLOCATOR_THROWS 0
#endif

namespace hf {

template <class T> class allocator {
public:
    using value_type = T;
    using size_type = std::size_t;
    using difference_type = std::ptrdiff_t;
    using is_always_equal = std::true_type;
    using propagate_on_container_move_assignment = std::true_type;

    constexpr allocator() noexcept = default;
    template <class U> constexpr allocator(const allocator<U>&) noexcept {}

    /// Room for 'count' objects.
    ///
    /// Ordering: 0 points; outside a section as hf::make.
    /// Crash:    as hf::make.
    /// Errors:   in a full pool, code that is built for engine auto or redo with exceptions throws
    ///           std::bad_alloc. Other code ends the process with a message (hf_pool_full). The next
    ///           open rolls the section back (engine undo), or discards it if it had stored nothing
    ///           in place (engine clobber). If it had, it cannot go on without room: open refuses
    ///           with pool_full.
    [[nodiscard]] T* allocate(std::size_t count) noexcept(HF_ALLOCATOR_THROWS == 0) {
        static_assert(alignof(T) <= 16,
                      "blocks are aligned to 16 bytes: expected a type that needs no more");
        const bool too_many = count > std::numeric_limits<std::size_t>::max() / sizeof(T);
        void* block = too_many ? nullptr : hf_alloc(count * sizeof(T));
#if HF_ALLOCATOR_THROWS
        if (block == nullptr) throw std::bad_alloc();
#endif
        if (block == nullptr) hf_pool_full(too_many ? count : count * sizeof(T));
        return static_cast<T*>(block);
    }
    void deallocate(T* block, std::size_t) noexcept { hf_free(block); }

    template <class U> constexpr bool operator==(const allocator<U>&) const noexcept {
        return true;
    }
};

/// hf::make for code that expects an exception. A constructor may throw; then the block is free
/// again. Ordering and crash: as hf::make.
///
/// Errors:   in a full pool, as allocator::allocate; what the constructor throws.
template <class T, class... Args> T* make_or_throw(Args&&... args) {
    struct reserved { // freed unless the constructor returns
        T* block;
        ~reserved() { hf_free(block); }
    } mine{allocator<T>().allocate(1)};
    T* const made = ::new (static_cast<void*>(mine.block)) T(std::forward<Args>(args)...);
    mine.block = nullptr;
    return made;
}

} // namespace hf

#if defined(_LIBCPP_HAS_ASAN_CONTAINER_ANNOTATIONS_FOR_ALL_ALLOCATORS)
// AddressSanitizer's notes on a vector's spare room would not survive with the vector.
template <class T>
struct std::__asan_annotate_container_with_allocator<hf::allocator<T>> : std::false_type {};
#endif
