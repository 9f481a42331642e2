// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// search_tree<Key, Value, Balance>: the common part of red-black and AVL trees, which is everything
// except the rebalancing. Plain code: the including file chooses the engine that makes it
// failure-atomic.
//
//   (1) Keys ascend from left to right, each there once.
//   (2) A node's children name it as their parent; the top's parent is null.
//   (3) An operation takes the lock and calls one failure-atomic function, which searches and
//       changes. It holds the lock until that function has returned (strong strict two-phase
//       locking).
//   (4) Parents, marks and the count follow from the children. rebuild() computes them again, so
//       engine selective need not log them. tree_recovery declares parents and the count once; each
//       balance has its own marks, and declares them where it stores them
//       (holdfast/author/selective.hpp).
//   (5) The lock shares no cache line with what a section stores to: it is never flushed.
//
// Source: Cormen, Leiserson, Rivest and Stein, chapters 12 and 13. Differs: children are numbered,
// so that a case and its mirror image are one; no sentinel stands for a missing child.
#pragma once

#include <structures/namespace.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/author/derived.hpp>
#include <holdfast/author/selective.hpp>
#include <holdfast/lock.hpp>
#include <holdfast/txfunc.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <type_traits>

namespace hf::structures {
inline namespace HF_STRUCTURES_ENGINE {

/// First member (or base) of whatever the tree holds.
struct tree_node {
    tree_node* child[2]; // left, right
    tree_node* parent;
    std::int64_t mark; // what the balancing keeps of a node

    /// Which child of its parent the node is; 0 for the top.
    unsigned side() const noexcept { return parent != nullptr && parent->child[1] == this ? 1 : 0; }
};

/// The entry of a tree. Zero-filled is an empty tree.
struct tree_root {
    tree_node* top;
    std::uint64_t count; // of nodes

    /// The link that leads to the child of 'parent' on that side; of null: to the top.
    tree_node** link(tree_node* parent, unsigned side) noexcept {
        return parent != nullptr ? &parent->child[side] : &top;
    }

    /// Puts 'node' (null: nothing), with everything below it, in the place of 'old'.
    void transplant(tree_node* old, tree_node* node) noexcept {
        *link(old->parent, old->side()) = node;
        if (node != nullptr) node->parent = old->parent;
    }

    /// Lets 'node' sink to 'side' of its child on the other side, which takes its place.
    void rotate(tree_node* node, unsigned side) noexcept {
        tree_node* rising = node->child[1 - side];
        tree_node* between = rising->child[side];
        transplant(node, rising);
        node->child[1 - side] = between;
        if (between != nullptr) between->parent = node;
        rising->child[side] = node;
        node->parent = rising;
    }
};

/// (4)
template <class Balance>
using tree_recovery = hf::derived::recovery<
    hf::derived::links<&tree_root::top, &tree_node::child>, hf::derived::parent<&tree_node::parent>,
    hf::derived::count<&tree_root::count>, hf::derived::also<Balance::restore>>;

/// Lives in a pool, as its root or as a member of it. Zero-filled is a valid empty tree.
///
/// Balance defines the meaning of marks. inserted(tree, node) rebalances above a new leaf of mark
/// 0. restore(tree) sets marks that fit the children. erased(tree, parent, side, mark) rebalances
/// after the removal of a node of that mark, whose place at most one node below it has taken.
/// height(node, left, right) is the height of a node whose children have these, or -1 if its mark
/// is wrong; an empty tree's is 0.
///
/// Requires: Key and Value are trivially copyable; keys are ordered by <.
template <class Key, class Value, class Balance> class search_tree {
    static_assert(std::is_trivially_copyable_v<Key> && std::is_trivially_copyable_v<Value>);
    static_assert(alignof(Key) <= 16 && alignof(Value) <= 16);

public:
    // Larger values have a block of their own, so that a search meets nodes only, which lie close
    // together. Measured with 256-byte values, insertions, engine redo, AVL: 1.32 times as many a
    // second with 1 M keys, 1.06 with 200 000, in spite of the second block.
    static constexpr bool value_apart = sizeof(Value) > 32;

    /// Inserts 'key', or gives it another value.
    ///
    /// Cost:     O(log n); flushes the lines of the new node and those of the links that change.
    /// Ordering: redo 1 point, or 3 over what another thread has just left; clobber and undo 2, and
    ///           one more for each link and mark that is overwritten.
    /// Crash:    the old value, or none, or the new one.
    /// Errors:   false when the pool is full; the tree is unchanged.
    bool insert(const Key& key, const Value& value) noexcept {
        const std::unique_lock held{lock_};
        return put(this, key, &value);
    }

    /// Copies the value of 'key' to '*value' (null: only looks). False without such a key.
    ///
    /// Ordering: 0 points.
    bool find(const Key& key, Value* value) const noexcept {
        const std::shared_lock held{lock_};
        const node* found = find_place(key).found;
        if (found != nullptr && value != nullptr) *value = *value_of(found);
        return found != nullptr;
    }

    /// Removes 'key'; false when it is not there.
    ///
    /// Cost:     O(log n); flushes the lines of the links that change.
    /// Ordering: as insert().
    /// Crash:    the key is there as before, or gone.
    bool erase(const Key& key) noexcept {
        const std::unique_lock held{lock_};
        return take(this, key);
    }

    // For sections that change several structures: as insert(), find() and erase(), without a
    // section and a lock of their own.
    //
    // Requires: called in a section, whose locks keep everybody else from this tree.

    bool put_in_section(const Key& key, const Value& value) noexcept {
        return put_here(key, value);
    }
    /// The value, for the section to read and change, or null.
    Value* find_in_section(const Key& key) noexcept {
        node* found = find_place(key).found;
        return found != nullptr ? value_of(found) : nullptr;
    }
    bool take_in_section(const Key& key) noexcept { return take_here(key); }

    /// Calls f(key, value) for the keys from 'from' upwards until it returns false; returns how
    /// many it was called for. Under the shared lock: f changes nothing here.
    ///
    /// Ordering: 0 points.
    template <class F> std::uint64_t range(const Key& from, F f) const {
        const std::shared_lock held{lock_};
        std::uint64_t visited = 0;
        for (const tree_node* each = first_from(from); each != nullptr; each = next(each)) {
            ++visited;
            if (!f(node_of(each)->key, *value_of(node_of(each)))) break;
        }
        return visited;
    }

    /// Keys in the tree.
    std::uint64_t size() const noexcept {
        const std::shared_lock held{lock_};
        return tree_.count;
    }

    /// Calls f(key, value) for every key, upwards, under the shared lock.
    template <class F> void for_each(F f) const {
        const std::shared_lock held{lock_};
        for (const tree_node* each = first(); each != nullptr; each = next(each))
            f(node_of(each)->key, *value_of(node_of(each)));
    }

    /// Calls f(block) for every block of the pool that the tree has. For checks: while nobody
    /// writes; takes no lock.
    template <class F> void for_each_block(F f) const {
        for (const tree_node* each = first(); each != nullptr; each = next(each)) {
            f(node_of(each));
            if constexpr (value_apart) f(node_of(each)->value);
        }
    }

    /// Whether the invariants hold, the balance's included. Takes the lock shared.
    bool check() const noexcept {
        const std::shared_lock held{lock_};
        std::uint64_t nodes = 0;
        return height_of(tree_.top, nullptr, {}, 0, nodes) >= 0 && nodes == tree_.count;
    }

    /// Computes again what engine selective stores lazily (4), and other engines do not: for
    /// selective::options::rebuild, while nobody else uses the tree, which is in the pool 'in'.
    /// Trusts children as every operation does.
    ///
    /// Cost:     O(n).
    /// Ordering: 2 points.
    void rebuild(pool& in)
        requires hf::selective::chosen
    {
        tree_recovery<Balance>::rebuild_of(in, tree_);
    }

private:
    struct node : tree_node {
        Key key;
        std::conditional_t<value_apart, Value*, Value> value;
    };
    static Value* value_of(node* in) noexcept {
        if constexpr (value_apart) return in->value;
        else return &in->value;
    }
    static const Value* value_of(const node* in) noexcept {
        if constexpr (value_apart) return in->value;
        else return &in->value;
    }
    static node* node_of(tree_node* any) noexcept { return static_cast<node*>(any); }
    static const node* node_of(const tree_node* any) noexcept {
        return static_cast<const node*>(any);
    }

    // The node that has the key, or the link where one would hang.
    struct place {
        node* found;
        tree_node* parent;
        unsigned side;
    };
    place find_place(const Key& key) const noexcept {
        place at{};
        for (tree_node* each = tree_.top; each != nullptr; each = each->child[at.side]) {
            const Key& its = node_of(each)->key;
            if (key < its) at.side = 0;
            else if (its < key) at.side = 1;
            else return {node_of(each), nullptr, 0};
            at.parent = each;
        }
        return at;
    }

    template <class Node> static Node* leftmost(Node* below) noexcept {
        while (below != nullptr && below->child[0] != nullptr) below = below->child[0];
        return below;
    }
    const tree_node* first() const noexcept { return leftmost(tree_.top); }
    const tree_node* first_from(const Key& from) const noexcept {
        const tree_node* best = nullptr;
        for (const tree_node* each = tree_.top; each != nullptr;) {
            const bool below = node_of(each)->key < from;
            if (!below) best = each;
            each = each->child[below ? 1 : 0];
        }
        return best;
    }
    static const tree_node* next(const tree_node* each) noexcept {
        if (each->child[1] != nullptr) return leftmost(each->child[1]);
        const tree_node* above = each->parent;
        while (above != nullptr && above->child[1] == each) {
            each = above;
            above = each->parent;
        }
        return above;
    }

    /// In a section: a node that nothing leads to yet. Null: the pool is full.
    static node* made(const Key& key, const Value& value, tree_node* parent) noexcept {
        const tree_node leaf{{nullptr, nullptr}, parent, 0};
        if constexpr (value_apart) {
            Value* apart = hf::make<Value>(value);
            node* fresh = hf::make<node>(leaf, key, apart);
            if (fresh == nullptr || apart == nullptr) {
                hf::destroy(fresh);
                hf::destroy(apart);
                return nullptr;
            }
            return fresh;
        } else {
            return hf::make<node>(leaf, key, value);
        }
    }

    // In line: as a function of its own each costs engine justdo 36 bytes of frame a call.
    [[gnu::always_inline]] bool put_here(const Key& key, const Value& value) noexcept {
        const place at = find_place(key);
        if (at.found != nullptr) {
            *value_of(at.found) = value;
            return true;
        }
        node* fresh = made(key, value, at.parent);
        if (fresh == nullptr) return false;
        *tree_.link(at.parent, at.side) = fresh;
        Balance::inserted(tree_, fresh);
        ++tree_.count;
        return true;
    }

    [[gnu::always_inline]] bool take_here(const Key& key) noexcept {
        node* old = find_place(key).found;
        if (old == nullptr) return false;
        const auto value = old->value;
        if (old->child[0] != nullptr && old->child[1] != nullptr) {
            node* next = node_of(leftmost(old->child[1])); // moves here, and its own place is left
            old->key = next->key;
            old->value = next->value;
            old = next;
        }
        const unsigned side = old->side();
        tree_.transplant(old, old->child[old->child[0] == nullptr ? 1 : 0]);
        Balance::erased(tree_, old->parent, side, old->mark);
        --tree_.count;
        if constexpr (value_apart) hf::destroy(value);
        hf::destroy(old);
        return true;
    }

    HF_TXFUNC static bool put(search_tree* in, HF_BY_VALUE Key key, const Value* value) noexcept {
        const Value* kept = hf::vlog_preserve(value);
        return in->put_here(key, *kept);
    }

    HF_TXFUNC static bool take(search_tree* in, HF_BY_VALUE Key key) noexcept {
        return in->take_here(key);
    }

    // The keys that a subtree may hold, without the bounds; null: no bound.
    struct bounds {
        const Key* above;
        const Key* below;
    };
    // -1 when something is wrong. A circle is: one of its nodes is reached from two parents.
    static int height_of(const tree_node* top, const tree_node* parent, bounds keys, unsigned depth,
                         std::uint64_t& nodes) noexcept {
        constexpr unsigned depth_max = 128; // of a balanced tree in any memory
        if (top == nullptr) return 0;
        if (top->parent != parent || depth > depth_max) return -1;
        ++nodes;
        const Key& key = node_of(top)->key;
        if (keys.above != nullptr && !(*keys.above < key)) return -1;
        if (keys.below != nullptr && !(key < *keys.below)) return -1;
        const int left = height_of(top->child[0], top, {keys.above, &key}, depth + 1, nodes);
        if (left < 0) return -1;
        const int right = height_of(top->child[1], top, {&key, keys.below}, depth + 1, nodes);
        return right < 0 ? -1 : Balance::height(top, left, right);
    }

    // (5), wherever the tree starts: pools align to 16 bytes only.
    std::byte before_[48];
    mutable hf::shared_mutex lock_;
    std::byte after_[56];
    tree_root tree_;
};

} // namespace HF_STRUCTURES_ENGINE
} // namespace hf::structures
