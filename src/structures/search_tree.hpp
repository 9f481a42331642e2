// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// search_tree<Key, Value, Balance>: what red-black and AVL trees have in common, which is all but
// the rebalancing. Plain code: the engine it is failure-atomic with is the including file's.
//
//   (1) Keys ascend from left to right, each there once.
//   (2) A node's children name it as their parent; the top's parent is null.
//   (3) An operation takes the lock, drafts what changes (tree_draft.hpp), and then runs one
//       failure-atomic function which stores it. The function overwrites inputs of the program, but
//       none of its own, so engine clobber logs nothing but the call.
//   (4) The lock is held until the function has returned (strong strict two-phase locking), and
//       shares no cache line with what a section stores to: it is never flushed.
#pragma once

#include <structures/staged.hpp>
#include <structures/tree_draft.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/lock.hpp>
#include <holdfast/txfunc.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <type_traits>

namespace hf::structures {
inline namespace HF_STRUCTURES_ENGINE {

/// Where a node was taken out of the draft of a tree.
struct tree_gap {
    tree_node* parent; // null: at the top
    unsigned side;     // of the parent: the subtree there is what is left
    unsigned tag;      // of the node that was there
};

/// Lives in a pool, as its root or as a member of it. Zero-filled is a valid empty tree.
///
/// Balance says what the tags mean: inserted(draft, node) rebalances above a node hung in with tag
/// 0, erased(draft, gap) above a gap; height(node, left, right) is the height of a node whose
/// children have these, or -1 when its tag is wrong; an empty tree's is 0.
///
/// Requires: Key and Value are trivially copyable; keys are ordered by <.
template <class Key, class Value, class Balance> class search_tree {
    static_assert(std::is_trivially_copyable_v<Key> && std::is_trivially_copyable_v<Value>);
    static_assert(alignof(Key) <= 16 && alignof(Value) <= 16);

public:
    // Larger values have a block of their own, so that a search meets nodes only, which lie close
    // together. Measured with 256-byte values, engine clobber: insertions take a quarter less
    // processor time with 100 000 and with 1 M keys, in spite of the second block. Nodes padded to
    // whole cache lines were no faster.
    static constexpr bool value_apart = sizeof(Value) > 32;

    /// Inserts 'key', or gives it another value.
    ///
    /// Cost:     O(log n); flushes the lines of the new node and those of the links that change.
    /// Ordering: clobber 2 points, with several threads 3; no clobber writes.
    /// Crash:    the old value, or none, or the new one.
    /// Errors:   false when the pool is full; the tree is unchanged.
    bool insert(const Key& key, const Value& value) noexcept {
        const std::unique_lock held{lock_};
        const place at = find_place(key);
        if (at.found != nullptr) {
            assign(value_of(at.found), &value);
            return true;
        }
        const blocks fresh = reserve(value);
        if (fresh.own == nullptr) return false;
        tree_node links{};
        tree_draft draft(&tree_, fresh.own, &links);
        draft.hang(at.parent, at.side, fresh.own);
        Balance::inserted(draft, fresh.own);
        fill(fresh, links, key, value);
        tree_node** link = draft.take_link(fresh.own);
        draft.hand_over(
            [&](const auto& words) { insert_few(&tree_, tree_.count + 1, fresh, link, words); },
            [&](const tree_change* words, std::uint64_t count) {
                insert_many(&tree_, tree_.count + 1, fresh, link, words, count);
            });
        return true;
    }

    /// Copies the value of 'key' to '*value' (null: only looks). False when there is none.
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
    /// Ordering: clobber 2 points, with several threads 3; no clobber writes.
    /// Crash:    the key is there as before, or gone.
    bool erase(const Key& key) noexcept {
        const std::unique_lock held{lock_};
        node* old = find_place(key).found;
        if (old == nullptr) return false;
        tree_draft draft(&tree_);
        Balance::erased(draft, take_out(draft, old));
        blocks gone{old, {}};
        if constexpr (value_apart) gone.value = old->value;
        draft.hand_over(
            [&](const auto& words) { remove_few(&tree_, tree_.count - 1, gone, words); },
            [&](const tree_change* words, std::uint64_t count) {
                remove_many(&tree_, tree_.count - 1, gone, words, count);
            });
        return true;
    }

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

private:
    struct alignas(8) value_block {
        Value value;
    };
    struct node : tree_node {
        Key key;
        std::conditional_t<value_apart, value_block*, Value> value;
    };
    static Value* value_of(node* in) noexcept {
        if constexpr (value_apart) return &in->value->value;
        else return &in->value;
    }
    static const Value* value_of(const node* in) noexcept {
        if constexpr (value_apart) return &in->value->value;
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

    const tree_node* first() const noexcept {
        const tree_node* each = tree_.top;
        while (each != nullptr && each->child[0] != nullptr) each = each->child[0];
        return each;
    }
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
        if (each->child[1] != nullptr) {
            each = each->child[1];
            while (each->child[0] != nullptr) each = each->child[0];
            return each;
        }
        const tree_node* above = parent_of(each);
        while (above != nullptr && above->child[1] == each) {
            each = above;
            above = parent_of(each);
        }
        return above;
    }

    // Drafts the tree without 'old'; what takes its place is as balanced as it was.
    static tree_gap take_out(tree_draft& draft, tree_node* old) noexcept {
        tree_node* above = draft.parent(old);
        const unsigned side = draft.side(old);
        tree_node* left = draft.child(old, 0);
        tree_node* right = draft.child(old, 1);
        if (left == nullptr || right == nullptr) {
            draft.hang(above, side, left != nullptr ? left : right);
            return {above, side, draft.tag(old)};
        }
        tree_node* heir = right; // has no left child, and takes the place of 'old'
        while (tree_node* less = draft.child(heir, 0)) heir = less;
        tree_gap gap{draft.parent(heir), 0, draft.tag(heir)};
        if (heir == right) {
            gap = {heir, 1, gap.tag};
        } else {
            draft.hang(gap.parent, 0, draft.child(heir, 1));
            draft.hang(heir, 1, right);
        }
        draft.hang(heir, 0, left);
        draft.hang(above, side, heir);
        draft.set_tag(heir, draft.tag(old));
        return gap;
    }

    // What a node consists of. An argument of sections: without a word to spare.
    struct no_block {};
    struct blocks {
        node* own;
        [[no_unique_address]] std::conditional_t<value_apart, value_block*, no_block> value;
    };
    // Staged, the value filled; nothing when the pool is full.
    blocks reserve(const Value& value) const noexcept {
        blocks fresh{static_cast<node*>(hf::stage_near(this, sizeof(node))), {}};
        if constexpr (value_apart) {
            if (fresh.own != nullptr) fresh.value = staged_value(value);
            if (fresh.value == nullptr && fresh.own != nullptr) {
                hf::unstage(fresh.own);
                fresh.own = nullptr;
            }
        }
        return fresh;
    }
    value_block* staged_value(const Value& value) const noexcept {
        return stage_node<value_block>(this, [&](value_block& made) { made.value = value; });
    }
    // In one pass: partial lines are dear.
    static void fill(blocks fresh, const tree_node& links, const Key& key,
                     const Value& value) noexcept {
        fill_staged(fresh.own, [&](node& made) {
            // One by one: of a struct with an array, no metadata says that it holds pointers
            // (docs/internals/relocation.md).
            made.child[0] = links.child[0];
            made.child[1] = links.child[1];
            made.up = links.up;
            made.key = key;
            if constexpr (value_apart) made.value = fresh.value;
            else made.value = value;
        });
    }

    // What both sections of an insertion do; take_away: of an erasure.
    static void put_in(tree_root* tree, std::uint64_t count, blocks fresh, tree_node** link,
                       const tree_change* words, std::uint64_t word_count) noexcept {
        hf::adopt(fresh.own);
        if constexpr (value_apart) hf::adopt(fresh.value);
        *link = fresh.own;
        tree_draft::apply(words, word_count);
        tree->count = count;
    }
    static void take_away(tree_root* tree, std::uint64_t count, blocks old,
                          const tree_change* words, std::uint64_t word_count) noexcept {
        // First, so that the records of what is freed share the section's first fence.
        if constexpr (value_apart) hf_free(old.value);
        hf_free(old.own);
        tree_draft::apply(words, word_count);
        tree->count = count;
    }

    template <std::size_t Room>
    HF_TXFUNC static void insert_few(tree_root* tree, std::uint64_t count, blocks fresh,
                                     tree_node** link,
                                     std::array<tree_change, Room> words) noexcept {
        put_in(tree, count, fresh, link, words.data(), Room);
    }
    HF_TXFUNC static void insert_many(tree_root* tree, std::uint64_t count, blocks fresh,
                                      tree_node** link, const tree_change* words,
                                      std::uint64_t word_count) noexcept {
        put_in(tree, count, fresh, link, hf::vlog_preserve(words, word_count), word_count);
    }

    template <std::size_t Room>
    HF_TXFUNC static void remove_few(tree_root* tree, std::uint64_t count, blocks old,
                                     std::array<tree_change, Room> words) noexcept {
        take_away(tree, count, old, words.data(), Room);
    }
    HF_TXFUNC static void remove_many(tree_root* tree, std::uint64_t count, blocks old,
                                      const tree_change* words, std::uint64_t word_count) noexcept {
        take_away(tree, count, old, hf::vlog_preserve(words, word_count), word_count);
    }

    HF_TXFUNC static void assign(Value* to, const Value* value) noexcept {
        *to = *hf::vlog_preserve(value);
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
        if (parent_of(top) != parent || depth > depth_max) return -1;
        ++nodes;
        const Key& key = node_of(top)->key;
        if (keys.above != nullptr && !(*keys.above < key)) return -1;
        if (keys.below != nullptr && !(key < *keys.below)) return -1;
        const int left = height_of(top->child[0], top, {keys.above, &key}, depth + 1, nodes);
        if (left < 0) return -1;
        const int right = height_of(top->child[1], top, {&key, keys.below}, depth + 1, nodes);
        return right < 0 ? -1 : Balance::height(top, left, right);
    }

    // (4), wherever the tree starts: pools align to 16 bytes only.
    std::byte before_[48];
    mutable hf::shared_mutex lock_;
    std::byte after_[56];
    tree_root tree_;
};

} // namespace HF_STRUCTURES_ENGINE
} // namespace hf::structures
