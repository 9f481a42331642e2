// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// locked_stack<T>: a linked stack under a lock. Plain code: the engine it is failure-atomic with is
// the including file's.
//
//   (1) An operation takes the lock and calls one failure-atomic function.
//   (2) Zero-filled is empty.
//
// Source: JUSTDO §7, the stack ("a locking variation on the Treiber Stack").
#pragma once

#include <structures/namespace.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/lock.hpp>
#include <holdfast/txfunc.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <type_traits>

namespace hf::structures {
inline namespace HF_STRUCTURES_ENGINE {

/// Lives in a pool, as its root or as a member of it. Zero-filled is a valid empty stack.
template <class T> class locked_stack {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 8);

public:
    /// Crash:  it is there, or not.
    /// Errors: false when the pool is full; the stack is unchanged.
    bool push(const T& value) noexcept {
        const std::unique_lock held{lock_};
        return put(this, value);
    }
    /// Removes the newest value; false if the stack is empty.
    ///
    /// Crash: it is there, or not.
    bool pop(T* value) noexcept {
        const std::unique_lock held{lock_};
        if (top_ == nullptr) return false;
        *value = top_->value;
        take(this);
        return true;
    }

    /// Values in the stack, while nobody changes it.
    std::uint64_t size() const noexcept {
        std::uint64_t count = 0;
        for_each([&](const T&) { ++count; });
        return count;
    }
    /// Calls f(value) for each, the newest one first, while nobody changes it.
    template <class F> void for_each(F f) const {
        for (const node* each = top_; each != nullptr; each = each->next) f(each->value);
    }
    /// Calls f(block) for every block of the pool that the stack has, while nobody changes it.
    template <class F> void for_each_block(F f) const {
        for (const node* each = top_; each != nullptr; each = each->next) f(each);
    }
    bool check() const noexcept { return true; }

private:
    struct node {
        node* next;
        T value;
    };

    HF_TXFUNC static bool put(locked_stack* s, T value) noexcept {
        node* const fresh = hf::make<node>(s->top_, value);
        if (fresh == nullptr) return false;
        s->top_ = fresh;
        return true;
    }
    HF_TXFUNC static void take(locked_stack* s) noexcept {
        node* const old = s->top_;
        s->top_ = old->next;
        hf::destroy(old);
    }

    std::byte before_[48]; // the lock shares no line with what sections store to
    hf::mutex lock_;
    std::byte after_[56];
    node* top_;
};

} // namespace HF_STRUCTURES_ENGINE
} // namespace hf::structures
