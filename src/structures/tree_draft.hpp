// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The links of a binary tree, and a draft of what an operation will do to them.
//
// Rebalancing reads the links that it overwrites: inside a section, engine clobber would log most
// of its stores. So a tree rebalances a draft, under its lock and before its section: tree_draft
// reads links through what has been drafted and collects the words that change. The section stores
// those words, without having read any of them.
//
// Measured against the same rebalancing inside the section (insertions of 100 000 random keys with
// 256-byte values, pmem mode, processor time, medians of five): engine clobber 1.19 for 1.71 us
// (red-black) and 1.16 for 1.75 us (AVL), with 2 fences for 6.5 and 7.4; engine undo, which logs
// either way, 1.72 for 1.63 us and 1.84 for 1.75 us.
//
//   (1) A word is in the draft at most once, and only when its value differs from the one in
//       memory: the order of the stores does not matter, and nothing is stored in vain.
//   (2) A section gets few changes as an argument by value, which the record of the call
//       holds; more of them it preserves, at the price of a log entry.
//   (3) The node about to be inserted is not written yet: its links are drafted into an image, from
//       which it will be.
#pragma once

#include <structures/namespace.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace hf::structures {
inline namespace HF_STRUCTURES_ENGINE {

/// First member (or base) of whatever the tree holds, in a block of its own: aligned to 16 bytes.
struct tree_node {
    tree_node* child[2]; // left, right
    tree_node* up; // the parent; in the lowest two bits what the balance wants to know: the tag
};
static_assert(sizeof(tree_node) == 24);

/// What a tree is entered by. Zero-filled is an empty tree.
struct tree_root {
    tree_node* top;
    std::uint64_t count; // of nodes
};

namespace detail {

constexpr std::uintptr_t tag_mask = 3;

// A tag is there without a node as well: the top has no parent. So no arithmetic on pointers.
// NOLINTBEGIN(performance-no-int-to-ptr)
inline tree_node* to_link(std::uintptr_t word) noexcept {
    return reinterpret_cast<tree_node*>(word);
}
inline tree_node* tagged(tree_node* node, unsigned tag) noexcept {
    return reinterpret_cast<tree_node*>(reinterpret_cast<std::uintptr_t>(node) | tag);
}
inline tree_node* untagged(tree_node* up) noexcept {
    return reinterpret_cast<tree_node*>(reinterpret_cast<std::uintptr_t>(up) & ~tag_mask);
}
// NOLINTEND(performance-no-int-to-ptr)
inline std::uintptr_t to_word(const tree_node* link) noexcept {
    return reinterpret_cast<std::uintptr_t>(link);
}
inline unsigned tag_in(tree_node* up) noexcept {
    return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(up) & tag_mask);
}

} // namespace detail

inline tree_node* parent_of(const tree_node* node) noexcept { return detail::untagged(node->up); }
inline unsigned tag_of(const tree_node* node) noexcept { return detail::tag_in(node->up); }

/// A word of the tree, and what it is to hold.
struct tree_change {
    tree_node** at;       // null: no change
    std::uintptr_t value; // no pointer: a tag without a node is none into the pool
};

namespace detail {

// A change's value is logged as a number. In relocatable code it is told from where it goes, so
// that it means the same wherever the pool is mapped; but for a tag without a node, which no
// distance looks like: no link leads to itself.
#if defined(HF_RELOCATABLE)
constexpr bool values_are_distances = true;
#else
constexpr bool values_are_distances = false;
#endif

inline tree_change change_to(tree_node** at, const tree_node* link) noexcept {
    const std::uintptr_t word = to_word(link);
    return {at, values_are_distances && word > tag_mask
                    ? word - reinterpret_cast<std::uintptr_t>(at)
                    : word};
}
inline tree_node* link_in(const tree_change& change) noexcept {
    return to_link(values_are_distances && change.value > tag_mask
                       ? change.value + reinterpret_cast<std::uintptr_t>(change.at)
                       : change.value);
}

} // namespace detail

/// Under the tree's lock, outside any section. Volatile.
class tree_draft {
public:
    /// 'fresh' will be inserted; its links are drafted into '*image'. Null when there is none.
    explicit tree_draft(tree_root* tree, tree_node* fresh = nullptr,
                        tree_node* image = nullptr) noexcept
        : tree_(tree), fresh_(fresh), image_(image) {}
    tree_draft(const tree_draft&) = delete;
    tree_draft& operator=(const tree_draft&) = delete;

    tree_node* top() const noexcept { return read(&tree_->top); }
    tree_node* child(tree_node* node, unsigned side) const noexcept {
        return read(&node->child[side]);
    }
    tree_node* parent(tree_node* node) const noexcept { return detail::untagged(read(&node->up)); }
    unsigned tag(tree_node* node) const noexcept { return detail::tag_in(read(&node->up)); }
    /// Which child of its parent the node is; 0 for the top.
    unsigned side(tree_node* node) const noexcept {
        tree_node* above = parent(node);
        return above != nullptr && child(above, 1) == node ? 1 : 0;
    }

    void set_tag(tree_node* node, unsigned tag) noexcept {
        write(&node->up, detail::tagged(parent(node), tag));
    }
    /// Makes 'node' (null: nothing) the child of 'parent' (null: the top) on that side, and
    /// 'parent' its parent.
    void hang(tree_node* parent, unsigned side, tree_node* node) noexcept {
        write(parent != nullptr ? &parent->child[side] : &tree_->top, node);
        if (node != nullptr) write(&node->up, detail::tagged(parent, tag(node)));
    }
    /// Lets 'node' sink to 'side' of its child on the other side, which takes its place.
    void rotate(tree_node* node, unsigned side) noexcept {
        tree_node* rising = child(node, 1 - side);
        tree_node* above = parent(node);
        const unsigned place = this->side(node);
        hang(node, 1 - side, child(rising, side));
        hang(above, place, rising);
        hang(rising, side, node);
    }

    /// Takes one of the words that are to hold 'node' out of the draft: whoever passes the node to
    /// the section need not pass it twice.
    tree_node** take_link(const tree_node* node) noexcept {
        std::size_t i = 0;
        while (i < count_ && detail::link_in(changes_[i]) != node) ++i;
        if (i == count_) std::abort(); // it is linked already: links are damaged
        tree_node** at = changes_[i].at;
        changes_[i] = changes_[--count_];
        return at;
    }

    /// The changes, for a section that ends in apply(): calls few(array) with as many as fit, the
    /// rest of the array empty, or many(changes, count) when there are too many (2).
    ///
    /// The lengths: an insertion whose link is taken is left with none (red-black, below a black
    /// node), one or two words (AVL), three (recoloured) or about six (rotated). One of 12 would
    /// save every eighth an entry, and no bytes.
    template <class Few, class Many> void hand_over(Few few, Many many) const noexcept {
        hand_over_in<0, 1, 3, 6>(few, many);
    }

    /// In a section: stores the changes, which are volatile and recorded.
    ///
    /// Ordering: 0 clobber writes.
    static void apply(const tree_change* changes, std::size_t count) noexcept {
        for (std::size_t i = 0; i < count; ++i)
            if (changes[i].at != nullptr) *changes[i].at = detail::link_in(changes[i]);
    }

private:
    // Most words that an operation changes: an AVL erasure of 2^36 nodes, 52 levels deep, that
    // rotates twice on each level. Red-black trees need less.
    static constexpr std::size_t changes_max = 52 * 9 + 16;

    template <std::size_t Room, std::size_t... More, class Few, class Many>
    void hand_over_in(Few few, Many many) const noexcept {
        if (count_ <= Room) {
            std::array<tree_change, Room> words{};
            std::copy_n(changes_, count_, words.begin());
            few(words);
        } else if constexpr (sizeof...(More) > 0) {
            hand_over_in<More...>(few, many);
        } else {
            many(changes_, count_);
        }
    }

    // The word of the image when 'at' is a link of the fresh node, or null (3).
    tree_node** in_image(tree_node* const* at) const noexcept {
        if (fresh_ == nullptr || at < &fresh_->child[0] || at > &fresh_->up) return nullptr;
        return &image_->child[0] + (at - &fresh_->child[0]);
    }
    tree_node* read(tree_node* const* at) const noexcept {
        if (tree_node** own = in_image(at)) return *own;
        for (std::size_t i = 0; i < count_; ++i)
            if (changes_[i].at == at) return detail::link_in(changes_[i]);
        return *at;
    }
    void write(tree_node** at, tree_node* value) noexcept {
        if (tree_node** own = in_image(at)) {
            *own = value;
            return;
        }
        std::size_t i = 0;
        while (i < count_ && changes_[i].at != at) ++i;
        if (*at != value) {
            if (i == changes_max) std::abort(); // no balanced tree: links are damaged
            changes_[i] = detail::change_to(at, value);
            if (i == count_) ++count_;
        } else if (i < count_) {
            changes_[i] = changes_[--count_];
        }
    }

    tree_root* tree_;
    tree_node* fresh_;
    tree_node* image_;
    std::size_t count_ = 0;
    tree_change changes_[changes_max]; // the first count_ are valid
};

} // namespace HF_STRUCTURES_ENGINE
} // namespace hf::structures
