// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// two_lock_queue<T>: one lock for threads that enqueue, one for those that dequeue. Plain code: the
// including file chooses the engine that makes it failure-atomic.
//
//   (1) The nodes from 'head' on are linked in order. 'head' itself is a dummy, whose value has
//       been taken. 'tail' is the last node, or, while a node is being enqueued, the one before it.
//   (2) A null pointer means the dummy that is part of the queue: zero-filled is empty.
//   (3) A dequeue frees the dummy to which the next node was linked. The section that linked it has
//       ended by then: another node is linked behind, under the same lock, or that lock has been
//       held since. Otherwise recovery could resume that section, or roll it back, over the block's
//       next owner.
//
// Source: Michael and Scott, PODC 1996; JUSTDO §7, the queue. Differs: (3); theirs never frees to
//           others.
#pragma once

#include <structures/publish.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/lock.hpp>
#include <holdfast/txfunc.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <type_traits>

namespace hf::structures {
inline namespace HF_STRUCTURES_ENGINE {

/// Lives in a pool, as its root or as a member of it. Zero-filled is a valid empty queue.
template <class T> class two_lock_queue {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 8);

public:
    /// Puts a value in, last.
    ///
    /// Crash:   it is in, or not.
    /// Errors:  false when the pool is full; the queue is unchanged.
    /// Threads: any; one at a time, beside one that takes out.
    bool enqueue(const T& value) noexcept {
        const std::unique_lock held{tail_lock_};
        return put(this, value);
    }

    /// Removes the first value; false if the queue is empty.
    ///
    /// Crash:   it is in, or not.
    /// Threads: as enqueue().
    bool dequeue(T* value) noexcept {
        const std::unique_lock held{head_lock_};
        node* const first = published(dummy()->next);
        if (first == nullptr) return false;
        if (published(first->next) == nullptr) const std::scoped_lock ended{tail_lock_}; // (3)
        *value = first->value;
        take(this, first);
        return true;
    }

    /// Values in the queue, while nobody changes it.
    std::uint64_t size() const noexcept {
        std::uint64_t count = 0;
        for_each([&](const T&) { ++count; });
        return count;
    }
    /// Calls f(value) for each, the first one first, while nobody changes it.
    template <class F> void for_each(F f) const {
        for (const node* each = dummy()->next; each != nullptr; each = each->next) f(each->value);
    }
    /// Calls f(block) for every block of the pool that the queue has, while nobody changes it.
    template <class F> void for_each_block(F f) const {
        for (const node* each = dummy(); each != nullptr; each = each->next)
            if (each != &first_dummy_) f(each);
    }
    /// Whether (1) holds, while nobody changes it.
    bool check() const noexcept {
        const node* last = dummy();
        while (last->next != nullptr) last = last->next;
        return last == (tail_ != nullptr ? tail_ : &first_dummy_);
    }

private:
    struct node {
        node* next;
        T value;
    };

    node* dummy() noexcept { return head_ != nullptr ? head_ : &first_dummy_; }
    const node* dummy() const noexcept { return head_ != nullptr ? head_ : &first_dummy_; }

    HF_TXFUNC static bool put(two_lock_queue* q, T value) noexcept {
        node* const fresh = hf::make<node>(nullptr, value);
        if (fresh == nullptr) return false;
        node* const last = q->tail_ != nullptr ? q->tail_ : &q->first_dummy_;
        publish(last->next, fresh);
        q->tail_ = fresh;
        return true;
    }
    HF_TXFUNC static void take(two_lock_queue* q, node* first) noexcept {
        node* const old = q->head_;
        q->head_ = first;
        hf::destroy(old);
    }

    // Locks share no line with what sections store to, wherever the queue starts.
    std::byte before_[48];
    hf::mutex head_lock_;
    std::byte between_[56];
    hf::mutex tail_lock_;
    std::byte after_[56];
    node* head_; // null: first_dummy_
    std::byte apart_[56];
    node* tail_; // the same
    node first_dummy_;
};

} // namespace HF_STRUCTURES_ENGINE
} // namespace hf::structures
