// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// sorted_list<Key, Value>: keys in order, a lock a node, walked hand over hand; a priority queue,
// and a bucket of list_map. Plain code: the including file chooses the engine that makes it
// failure-atomic.
//
//   (1) A lock guards the pointer behind it: the list's own lock that to the first node, a node's
//       lock that to its successor. A node's lock also guards the node's value.
//   (2) An operation takes the next lock before it releases the last one. So no operation overtakes
//       another, and only the holder of the lock before a node can come to it.
//   (3) A node is removed when its lock was free under (2): nobody is there. The remover does not
//       hold that lock: the block has another owner soon.
//   (4) Each key is there once. Zero-filled is empty.
//
// Source: JUSTDO §7, the priority queue ("a sorted list traversed using hand-over-hand locking").
#pragma once

#include <structures/namespace.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/lock.hpp>
#include <holdfast/txfunc.hpp>

#include <cstdint>
#include <mutex>
#include <type_traits>

namespace hf::structures {
inline namespace HF_STRUCTURES_ENGINE {

/// Lives in a pool, as its root or as a member of it. Zero-filled is a valid empty list.
template <class Key, class Value> class sorted_list {
    static_assert(std::is_trivially_copyable_v<Key> && std::is_trivially_copyable_v<Value>);
    static_assert(alignof(Key) <= 8 && alignof(Value) <= 8);

public:
    /// Inserts 'key', or gives it another value.
    ///
    /// Crash:   the old value, or none, or the new one.
    /// Errors:  false when the pool is full; the list is unchanged.
    /// Threads: any, behind each other.
    bool insert(const Key& key, const Value& value) noexcept {
        position at = walk_to(key);
        bool done = true;
        if (at.found) assign(*at.link, value);
        else done = put(at.link, key, value);
        at.let_go();
        return done;
    }

    /// Gives 'key' another value; false when it is not there.
    ///
    /// Crash: the old value or the new one.
    bool replace(const Key& key, const Value& value) noexcept {
        position at = walk_to(key);
        if (at.found) assign(*at.link, value);
        at.let_go();
        return at.found;
    }

    /// Copies the value of 'key' to '*value' (null: only looks). False without such a key.
    bool find(const Key& key, Value* value) const noexcept {
        position at = const_cast<sorted_list*>(this)->walk_to(key);
        if (at.found && value != nullptr) *value = (*at.link)->value;
        at.let_go();
        return at.found;
    }

    /// Removes 'key'; false when it is not there.
    ///
    /// Crash: it is there, or not.
    bool erase(const Key& key) noexcept {
        position at = walk_to(key);
        if (at.found) {
            at.let_go_of_node(); // (3)
            take(at.link);
        }
        at.let_go();
        return at.found;
    }

    /// Removes the least key; false if the list is empty.
    ///
    /// Crash: it is there, or not.
    bool remove_min(Key* key, Value* value) noexcept {
        const std::unique_lock held{lock_};
        if (first_ == nullptr) return false;
        { const std::scoped_lock nobody_is_there{first_->lock}; } // (3)
        *key = first_->key;
        *value = first_->value;
        take(&first_);
        return true;
    }

    /// Keys in the list, while nobody changes it.
    std::uint64_t size() const noexcept {
        std::uint64_t count = 0;
        for_each([&](const Key&, const Value&) { ++count; });
        return count;
    }
    /// Calls f(key, value) for each, in order, while nobody changes it.
    template <class F> void for_each(F f) const {
        for (const node* each = first_; each != nullptr; each = each->next)
            f(each->key, each->value);
    }
    /// Calls f(block) for every block of the pool that the list has, while nobody changes it.
    template <class F> void for_each_block(F f) const {
        for (const node* each = first_; each != nullptr; each = each->next) f(each);
    }
    /// Whether keys ascend, while nobody changes it.
    bool check() const noexcept {
        for (const node* each = first_; each != nullptr && each->next != nullptr; each = each->next)
            if (!(each->key < each->next->key)) return false;
        return true;
    }

private:
    struct node {
        hf::mutex lock;
        node* next;
        Key key;
        Value value;
    };

    /// The place of a key, present or not. Holds the lock of 'link', and of the node there if it
    /// has the key.
    struct position {
        hf::mutex* lock;
        node** link;
        bool found;
        bool node_held;

        void let_go_of_node() noexcept {
            if (node_held) (*link)->lock.unlock();
            node_held = false;
        }
        void let_go() noexcept {
            let_go_of_node();
            lock->unlock();
        }
    };

    position walk_to(const Key& key) noexcept {
        lock_.lock();
        position at{&lock_, &first_, false, false};
        for (node* each; (each = *at.link) != nullptr;
             at = {&each->lock, &each->next, false, false}) {
            if (key < each->key) break;
            each->lock.lock();
            if (!(each->key < key)) {
                at.found = at.node_held = true;
                break;
            }
            at.lock->unlock();
        }
        return at;
    }

    HF_TXFUNC static bool put(node** link, HF_BY_VALUE Key key, HF_BY_VALUE Value value) noexcept {
        auto* const fresh = static_cast<node*>(hf_alloc(sizeof(node)));
        if (fresh == nullptr) return false;
        ::new (&fresh->lock) hf::mutex{};
        fresh->next = *link;
        fresh->key = key;
        fresh->value = value;
        *link = fresh;
        return true;
    }
    HF_TXFUNC static void assign(node* in, HF_BY_VALUE Value value) noexcept { in->value = value; }
    HF_TXFUNC static void take(node** link) noexcept {
        node* const old = *link;
        *link = old->next;
        hf_free(old);
    }

    hf::mutex lock_;
    node* first_;
};

} // namespace HF_STRUCTURES_ENGINE
} // namespace hf::structures
