// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// bptree<Key, Value>: a B+tree with a reader-writer lock per node. Plain code: the engine it is
// failure-atomic with is the including file's.
//
//   (1) Leaves hold keys with their values, 'height' levels of inner nodes stand above them. All
//       leaves are on one level; none is empty. Without keys there is no node at all.
//   (2) The i-th child of an inner node holds the keys from the i-th separator to the next one. The
//       first separator means nothing: that child has whatever is left of the second.
//   (3) A node's keys are ordered by its slot_order; they never move. An operation reads, makes
//       the orders that shall be, and passes them to one failure-atomic function, which overwrites
//       what it has not read: engine clobber logs no old bytes. Slots out of use hold garbage.
//       A value goes to a slot out of use before its section (stage_words), with one exception: a
//       section that splits a leaf reads the slots that then go out of use, and would read them
//       again if it is re-executed. Until another section of the same thread has fenced, they stay
//       as they are, and both halves locked.
//   (4) Locks are taken from the root down, a node's before its parent's is given back (lock
//       coupling). Who changes a node holds it exclusively until the function has returned.
//       A node that is freed is one whose parent is held exclusively and in which nobody is.
//   (5) To insert, only the leaf is held exclusively. If it is full, the next attempt holds its
//       parent, too, and splits the leaf; if that parent is full, one level more. Likewise for the
//       erasure of a leaf's last key. Nothing is rebalanced otherwise: nodes of few keys stay.
//   (6) No lock shares a cache line with what a section stores to: it is never flushed.
//   (7) Zero-filled is empty.
//
// Source: Clobber §5.1, the B+tree with a reader-writer lock per node; Bayer and Schkolnick 1977
// (lock coupling, optimistic first). Differs: orders instead of sorted slots.
#pragma once

#include <structures/namespace.hpp>
#include <structures/slot_order.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/lock.hpp>
#include <holdfast/txfunc.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <optional>
#include <shared_mutex>
#include <type_traits>
#include <utility>

namespace hf::structures {
inline namespace HF_STRUCTURES_ENGINE {

/// Lives in a pool, as its root or as a member of it. Zero-filled is a valid empty tree.
///
/// Requires: Key is ordered by <; Key and Value are trivially copyable.
template <class Key, class Value, unsigned LeafSlots = 15, unsigned InnerSlots = 31> class bptree {
    static_assert(std::is_trivially_copyable_v<Key> && std::is_trivially_copyable_v<Value>);
    static_assert(alignof(Key) <= 16 && alignof(Value) <= 16);
    static_assert(sizeof(Value) % 8 == 0, "values are staged as whole words");

public:
    /// Inserts 'key', or gives it another value.
    ///
    /// Cost:     O(log n) nodes read.
    /// Ordering: clobber 2 points, with several threads 3; as many again for each node split, of
    ///           which there is one in LeafSlots / 2 insertions. No clobber writes.
    /// Crash:    the old value, or none, or the new one.
    /// Errors:   false when the pool is full; the keys and values are unchanged.
    bool insert(const Key& key, const Value& value) noexcept {
        for (std::uint64_t level = 0;; ++level) {
            const outcome done = insert_below(level, key, value);
            if (done != outcome::again) return done == outcome::changed;
        }
    }

    /// Copies the value of 'key' to '*value' (null: only looks). False when there is none.
    ///
    /// Ordering: 0 points.
    bool find(const Key& key, Value* value) const noexcept {
        const shared_grip at = descend_shared(key, 0, nullptr);
        if (at.held == nullptr) return false;
        const leaf* in = as_leaf(at.held);
        const unsigned position = first_from(*in, key);
        if (!is_at(*in, position, key)) return false;
        if (value != nullptr) *value = in->values()[in->order.slot[position]];
        return true;
    }

    /// Removes 'key'; false when it is not there.
    ///
    /// Ordering: clobber 2 points, with several threads 3; no clobber writes.
    bool erase(const Key& key) noexcept {
        for (std::uint64_t level = 0;; ++level) {
            const outcome done = erase_below(level, key);
            if (done != outcome::again) return done == outcome::changed;
        }
    }

    /// Calls f(key, value) for the first key that is not below 'from' and those after it, in order,
    /// until f returns false; f does not use the tree. Returns the number of calls. Sees what
    /// others change meanwhile or does not, but no key twice.
    template <class F> std::uint64_t range(const Key& from, F f) const {
        std::uint64_t visited = 0;
        std::optional<Key> next = from;
        while (next) {
            const Key start = *next;
            next.reset();
            const shared_grip at = descend_shared(start, 1, &next);
            if (at.held == nullptr) break;
            if (!visit_leaves(at, start, f, visited)) break;
        }
        return visited;
    }

    /// Keys in the tree; exact while nobody writes.
    std::uint64_t size() const noexcept {
        std::uint64_t keys = 0;
        for_each_leaf([&](const leaf& each) { keys += each.order.count; });
        return keys;
    }

    /// Calls f(key, value) for every key, in order, with a path of nodes locked shared.
    template <class F> void for_each(F f) const {
        for_each_leaf([&](const leaf& each) {
            for (unsigned i = 0; i < each.order.count; ++i) {
                const unsigned slot = each.order.slot[i];
                f(std::as_const(each.keys[slot]), std::as_const(each.values()[slot]));
            }
        });
    }

    /// Calls f(block) for every block of the pool that the tree has. For checks: while nobody
    /// writes; takes no lock.
    template <class F> void for_each_block(F f) const {
        if (root_ != nullptr) blocks_below(root_, height_, f);
    }

    /// Whether (1)-(3) hold. Takes each lock shared.
    bool check() const noexcept {
        const std::shared_lock held{lock_};
        if (root_ == nullptr) return height_ == 0;
        return check_below(root_, height_, nullptr, nullptr);
    }

private:
    static constexpr std::size_t line_bytes = 64;

    // (6), wherever the block starts: blocks are aligned to 16 bytes only.
    struct node {
        std::byte before[48];
        mutable hf::shared_mutex lock;
        std::byte after[48];
    };
    template <unsigned Slots> struct keyed_node : node {
        static constexpr unsigned slots = Slots;
        slot_order<Slots> order;
        Key keys[Slots];
        const Key& key_at(unsigned position) const noexcept { return keys[order.slot[position]]; }
    };
    // Values begin with a cache line, wherever the block starts: one that fills lines is written
    // past the caches in whole lines.
    struct leaf : keyed_node<LeafSlots> {
        std::byte room[LeafSlots * sizeof(Value) + line_bytes - 16];
        Value* values() noexcept {
            return reinterpret_cast<Value*>(__builtin_align_up(&room[0], line_bytes));
        }
        const Value* values() const noexcept {
            return reinterpret_cast<const Value*>(__builtin_align_up(&room[0], line_bytes));
        }
    };
    struct inner : keyed_node<InnerSlots> {
        node* children[InnerSlots];
        node* child_at(unsigned position) const noexcept {
            return children[this->order.slot[position]];
        }
    };
    using leaf_order = slot_order<LeafSlots>;
    using inner_order = slot_order<InnerSlots>;

    static leaf* as_leaf(node* of) noexcept { return static_cast<leaf*>(of); }
    static inner* as_inner(node* of) noexcept { return static_cast<inner*>(of); }

    enum class outcome : std::uint8_t { changed, unchanged, again };

    // ---- within a node

    /// The first position at or after 'low' whose key is not below 'key'.
    template <class Node>
    static unsigned first_from(const Node& in, const Key& key, unsigned low = 0) noexcept {
        unsigned high = in.order.count;
        while (low < high) {
            const unsigned middle = (low + high) / 2;
            if (in.key_at(middle) < key) low = middle + 1;
            else high = middle;
        }
        return low;
    }
    static bool is_at(const leaf& in, unsigned position, const Key& key) noexcept {
        return position < in.order.count && !(key < in.key_at(position));
    }
    /// For the way down: lock, order and keys of a node that is about to be looked at.
    static void prefetch(const node* next) noexcept {
        for (std::size_t line = 0; line < 8; ++line)
            __builtin_prefetch(reinterpret_cast<const std::byte*>(next) + 48 + line * line_bytes);
    }
    /// Position of the child that has 'key' if any has (2).
    static unsigned child_for(const inner& in, const Key& key) noexcept {
        unsigned low = 1;
        unsigned high = in.order.count;
        while (low < high) {
            const unsigned middle = (low + high) / 2;
            if (key < in.key_at(middle)) high = middle;
            else low = middle + 1;
        }
        return low - 1;
    }
    static bool full(node* one, std::uint64_t level) noexcept {
        return level == 0 ? as_leaf(one)->order.full() : as_inner(one)->order.full();
    }

    // ---- the way down (4)

    template <class Lock> struct grip {
        Lock lock;
        node* held = nullptr; // null: the tree itself
        std::uint64_t level = 0;
    };
    using shared_grip = grip<std::shared_lock<hf::shared_mutex>>;
    using exclusive_grip = grip<std::unique_lock<hf::shared_mutex>>;

    /// Goes down to the node for 'key' on 'level', or the root if that is lower; '*upper', unless
    /// null, gets the first key beyond what is below that node, if there is one.
    shared_grip descend_shared(const Key& key, std::uint64_t level,
                               std::optional<Key>* upper) const {
        shared_grip at{std::shared_lock{lock_}, nullptr, 0};
        if (root_ == nullptr) return at;
        at.level = height_;
        at.held = root_;
        at.lock = std::shared_lock{root_->lock};
        while (at.level > level) {
            const inner& in = *as_inner(at.held);
            const unsigned position = child_for(in, key);
            if (upper != nullptr && position + 1 < in.order.count) *upper = in.key_at(position + 1);
            at.held = in.child_at(position);
            prefetch(at.held);
            at.lock = std::shared_lock{at.held->lock};
            --at.level;
        }
        return at;
    }

    /// Goes down to the node for 'key' on 'level' and locks that one exclusively; if the tree is
    /// not that high, the tree itself.
    exclusive_grip descend_exclusive(const Key& key, std::uint64_t level) {
        {
            std::shared_lock above{lock_};
            if (root_ != nullptr && level <= height_) {
                node* at = root_;
                for (std::uint64_t here = height_; here > level; --here) {
                    above = std::shared_lock{at->lock};
                    at = as_inner(at)->child_at(child_for(*as_inner(at), key));
                    prefetch(at);
                }
                return {std::unique_lock{at->lock}, at, level};
            }
        }
        std::unique_lock whole{lock_};
        return {std::move(whole), nullptr, height_ + 1};
    }

    // ---- insertion (5)

    /// One attempt that holds what is on 'level' exclusively.
    outcome insert_below(std::uint64_t level, const Key& key, const Value& value) noexcept {
        exclusive_grip at = descend_exclusive(key, level);
        if (at.held == nullptr && root_ == nullptr)
            return add_root(this, key, &value) ? outcome::changed : outcome::unchanged;
        if (at.held != nullptr && at.level > 0 && full(at.held, at.level)) return outcome::again;
        halves split;
        while (at.level > 0) // the node held has room for one more child
            if (!step_down(at, key, split)) return outcome::unchanged;
        leaf* in = as_leaf(at.held);
        const bool stageable = in != split.left; // (3)
        const unsigned position = first_from(*in, key);
        if (is_at(*in, position, key)) {
            assign(in, position, key, value, stageable);
            return outcome::changed;
        }
        if (in->order.full()) return outcome::again;
        const unsigned slot = in->order.free_slot();
        const leaf_order with = in->order.with(position, slot);
        if (stageable) insert_staged(in, slot, with, key, value);
        else insert_entry(in, slot, with, key, &value);
        return outcome::changed;
    }

    /// The left half of a leaf just split, and its lock if that is not the one gone on with.
    struct halves {
        node* left = nullptr;
        std::unique_lock<hf::shared_mutex> lock;
    };

    /// Puts the value into another slot, so that it is written once; in a full leaf, where it is.
    static void assign(leaf* in, unsigned position, const Key& key, const Value& value,
                       bool stageable) noexcept {
        if (!stageable || in->order.full())
            return overwrite(&in->values()[in->order.slot[position]], &value);
        const unsigned slot = in->order.free_slot();
        insert_staged(in, slot, in->order.replaced(position, slot), key, value);
    }

    static void insert_staged(leaf* in, unsigned slot, const leaf_order& order, const Key& key,
                              const Value& value) noexcept {
        hf::stage_words(&in->values()[slot], &value, sizeof value);
        link_entry(in, slot, order, key);
    }

    /// From a node with room to its child for 'key', which is split before if it has none. False:
    /// the pool is full.
    bool step_down(exclusive_grip& at, const Key& key, halves& split) noexcept {
        const std::uint64_t level = at.level - 1;
        inner* parent = as_inner(at.held);
        const unsigned position = parent == nullptr ? 0 : child_for(*parent, key);
        node* child = parent == nullptr ? root_ : parent->child_at(position);
        std::unique_lock held{child->lock};
        if (full(child, level)) {
            const bool last = parent == nullptr || position + 1 == parent->order.count;
            node* right = level == 0
                              ? split_node(parent, position, as_leaf(child), 0, key, last)
                              : split_node(parent, position, as_inner(child), level, key, last);
            if (right == nullptr) return false;
            const Key& first_of_right =
                level == 0 ? as_leaf(right)->key_at(0) : as_inner(right)->key_at(0);
            if (level == 0) split.left = child;
            if (!(key < first_of_right)) {
                if (level == 0) split.lock = std::move(held);
                held = std::unique_lock{right->lock};
                child = right;
            }
        }
        at = {std::move(held), child, level};
        return true;
    }

    /// Splits a full child of 'parent' (null: the root) in two halves; if it is the last one and
    /// 'key' goes behind its last key, only that one moves, so that ascending keys fill their
    /// nodes. Returns the right one; null: the pool is full.
    template <class Node>
    node* split_node(inner* parent, unsigned position, Node* left, std::uint64_t level,
                     const Key& key, bool last) noexcept {
        const unsigned count = left->order.count;
        const bool ascending = last && left->key_at(count - 1) < key;
        const unsigned middle = ascending ? count - 1 : count / 2;
        const Key separator = left->key_at(middle);
        if (parent == nullptr)
            return split_root<Node>(this, left, left->order.first(middle), left->order.from(middle),
                                    separator, level + 1);
        const unsigned slot = parent->order.free_slot();
        return split_child<Node>(parent, slot, parent->order.with(position + 1, slot), left,
                                 left->order.first(middle), left->order.from(middle), separator);
    }

    // ---- erasure (5)

    /// One attempt that holds what is on 'level' exclusively. The last key of a leaf goes with all
    /// nodes that have nothing else below them; the one above them has to be held.
    outcome erase_below(std::uint64_t level, const Key& key) noexcept {
        exclusive_grip at = descend_exclusive(key, level);
        if (at.held == nullptr && root_ == nullptr) return outcome::unchanged;
        std::unique_lock<hf::shared_mutex> stem_lock; // of the lowest node with another child
        node* stem = nullptr;                         // null, with the lock: the tree itself
        std::uint64_t stem_level = 0;
        while (at.level > 0) {
            inner* in = at.held == nullptr ? nullptr : as_inner(at.held);
            node* child = in == nullptr ? root_ : in->child_at(child_for(*in, key));
            std::unique_lock child_lock{child->lock};
            if (in == nullptr || in->order.count > 1) {
                stem_lock = std::move(at.lock);
                stem = in;
                stem_level = at.level;
            }
            at = {std::move(child_lock), child, at.level - 1};
        }
        leaf* in = as_leaf(at.held);
        const unsigned position = first_from(*in, key);
        if (!is_at(*in, position, key)) return outcome::unchanged;
        if (in->order.count > 1) {
            remove_entry(in, in->order.without(position));
            return outcome::changed;
        }
        if (!stem_lock.owns_lock()) return outcome::again;
        at.lock.unlock(); // nobody can come to it (4), and it will be another block's memory
        if (stem == nullptr) {
            remove_root(this, root_, stem_level - 1);
        } else {
            inner* from = as_inner(stem);
            const unsigned gone = child_for(*from, key);
            remove_child(from, from->order.without(gone), from->child_at(gone), stem_level - 1);
        }
        return outcome::changed;
    }

    // ---- sections

    /// In a section: a node with all but its order and its entries. Null: the pool is full.
    template <class Node> static Node* make_node() noexcept {
        Node* fresh = static_cast<Node*>(hf_alloc(sizeof(Node)));
        if (fresh != nullptr) ::new (static_cast<void*>(&fresh->lock)) hf::shared_mutex{};
        return fresh;
    }

    /// In a section: fills a slot that is out of use.
    static void fill(leaf* in, unsigned slot, const Key& key, const Value* value) noexcept {
        in->keys[slot] = key;
        in->values()[slot] = *value;
    }

    static void copy_slot(leaf* to, const leaf* from, unsigned slot) noexcept {
        to->keys[slot] = from->keys[slot];
        to->values()[slot] = from->values()[slot];
    }
    static void copy_slot(inner* to, const inner* from, unsigned slot) noexcept {
        to->keys[slot] = from->keys[slot];
        to->children[slot] = from->children[slot];
    }

    HF_TXFUNC static bool add_root(bptree* tree, Key key, const Value* value) noexcept {
        const Value* kept = hf::vlog_preserve(value);
        leaf* fresh = make_node<leaf>();
        if (fresh == nullptr) return false;
        fresh->order = leaf_order{}.with(0, 0);
        fill(fresh, 0, key, kept);
        tree->root_ = fresh;
        return true;
    }

    HF_TXFUNC static void insert_entry(leaf* in, unsigned slot, leaf_order order, Key key,
                                       const Value* value) noexcept {
        fill(in, slot, key, hf::vlog_preserve(value));
        in->order = order;
    }

    HF_TXFUNC static void link_entry(leaf* in, unsigned slot, leaf_order order, Key key) noexcept {
        in->keys[slot] = key;
        in->order = order;
    }

    HF_TXFUNC static void overwrite(Value* to, const Value* value) noexcept {
        *to = *hf::vlog_preserve(value);
    }

    HF_TXFUNC static void remove_entry(leaf* in, leaf_order order) noexcept { in->order = order; }

    // What is stored in place is stored before the left node is read: nothing can be a clobber.
    template <class Node>
    HF_TXFUNC static node* split_child(inner* parent, unsigned slot, inner_order parents,
                                       Node* left, slot_order<Node::slots> lefts,
                                       slot_order<Node::slots> rights, Key separator) noexcept {
        Node* right = make_node<Node>();
        if (right == nullptr) return nullptr;
        parent->keys[slot] = separator;
        parent->children[slot] = right;
        parent->order = parents;
        left->order = lefts;
        right->order = rights;
        for (unsigned i = 0; i < rights.count; ++i) copy_slot(right, left, rights.slot[i]);
        return right;
    }

    template <class Node>
    HF_TXFUNC static node* split_root(bptree* tree, Node* left, slot_order<Node::slots> lefts,
                                      slot_order<Node::slots> rights, Key separator,
                                      std::uint64_t height) noexcept {
        Node* right = make_node<Node>();
        if (right == nullptr) return nullptr;
        inner* root = make_node<inner>();
        if (root == nullptr) {
            hf_free(right);
            return nullptr;
        }
        tree->root_ = root;
        tree->height_ = height;
        left->order = lefts;
        root->order = inner_order{}.with(0, 0).with(1, 1);
        root->keys[0] = separator; // (2): any key would do
        root->keys[1] = separator;
        root->children[0] = left;
        root->children[1] = right;
        right->order = rights;
        for (unsigned i = 0; i < rights.count; ++i) copy_slot(right, left, rights.slot[i]);
        return right;
    }

    HF_TXFUNC static void remove_child(inner* from, inner_order order, node* gone,
                                       std::uint64_t level) noexcept {
        hf_free(gone); // before the first store in place: its log record shares that one's fence
        from->order = order;
        free_stalk(gone, level);
    }

    HF_TXFUNC static void remove_root(bptree* tree, node* gone, std::uint64_t level) noexcept {
        hf_free(gone);
        tree->root_ = nullptr;
        tree->height_ = 0;
        free_stalk(gone, level);
    }

    /// In a section: frees what is below a node on 'level', freed itself: its only child, the only
    /// child of that …
    static void free_stalk(node* gone, std::uint64_t level) noexcept {
        for (; level > 0; --level) {
            gone = as_inner(gone)->child_at(0);
            hf_free(gone);
        }
    }

    // ---- walks

    /// For range(): calls f for the keys from 'start' on below a node of level 1 or a root that is
    /// a leaf. False: f said so.
    template <class F>
    static bool visit_leaves(const shared_grip& at, const Key& start, F& f,
                             std::uint64_t& visited) {
        if (at.level == 0) return visit_leaf(*as_leaf(at.held), start, f, visited);
        const inner& in = *as_inner(at.held);
        for (unsigned i = child_for(in, start); i < in.order.count; ++i) {
            if (i + 1 < in.order.count) __builtin_prefetch(in.child_at(i + 1)->after + 48);
            const leaf& each = *as_leaf(in.child_at(i));
            const std::shared_lock held{each.lock};
            if (!visit_leaf(each, start, f, visited)) return false;
        }
        return true;
    }
    template <class F>
    static bool visit_leaf(const leaf& in, const Key& start, F& f, std::uint64_t& visited) {
        for (unsigned i = first_from(in, start); i < in.order.count; ++i) {
            ++visited;
            const unsigned slot = in.order.slot[i];
            if (!f(std::as_const(in.keys[slot]), std::as_const(in.values()[slot]))) return false;
        }
        return true;
    }

    template <class F> void for_each_leaf(F f) const {
        const std::shared_lock held{lock_};
        if (root_ != nullptr) leaves_below(root_, height_, f);
    }
    template <class F> static void leaves_below(node* at, std::uint64_t level, F& f) {
        const std::shared_lock held{at->lock};
        if (level == 0) return f(std::as_const(*as_leaf(at)));
        const inner& in = *as_inner(at);
        for (unsigned i = 0; i < in.order.count; ++i) leaves_below(in.child_at(i), level - 1, f);
    }
    template <class F> static void blocks_below(node* at, std::uint64_t level, F& f) {
        if (level > 0)
            for (unsigned i = 0; i < as_inner(at)->order.count; ++i)
                blocks_below(as_inner(at)->child_at(i), level - 1, f);
        f(static_cast<const void*>(at));
    }

    /// Whether all below 'at' is in order and in [low, high), null being no bound.
    static bool check_below(node* at, std::uint64_t level, const Key* low,
                            const Key* high) noexcept {
        const std::shared_lock held{at->lock};
        if (level == 0) return check_keys(*as_leaf(at), 0, low, high);
        const inner& in = *as_inner(at);
        if (!check_keys(in, 1, low, high)) return false;
        for (unsigned i = 0; i < in.order.count; ++i) {
            const Key* from = i == 0 ? low : &in.key_at(i);
            const Key* to = i + 1 == in.order.count ? high : &in.key_at(i + 1);
            if (!check_below(in.child_at(i), level - 1, from, to)) return false;
        }
        return true;
    }
    template <class Node>
    static bool check_keys(const Node& in, unsigned first, const Key* low,
                           const Key* high) noexcept {
        if (in.order.count == 0 || !in.order.check()) return false;
        for (unsigned i = first; i < in.order.count; ++i) {
            const Key& key = in.key_at(i);
            if (i == first && low != nullptr && key < *low) return false;
            if (i > first && !(in.key_at(i - 1) < key)) return false;
            if (high != nullptr && !(key < *high)) return false;
        }
        return true;
    }

    std::byte before_[48];          // (6)
    mutable hf::shared_mutex lock_; // of the two below
    std::byte after_[48];
    node* root_;
    std::uint64_t height_; // levels of inner nodes; 0 without a root
};

} // namespace HF_STRUCTURES_ENGINE
} // namespace hf::structures
