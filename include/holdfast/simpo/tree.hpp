// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A binary search tree in an array, balanced when it is asked to, as a persistent class.  SIMPO Table 3
//
// (1) A link is a place in the array, 0 for none: an object has another address in every process.
// (2) Every place except 0 is in the tree, or in the list of free places, or was never used. The
//     list is linked by 'right'.
#pragma once

#include <holdfast/author/simpo/class_text.hpp>

#include <array>
#include <bit>
#include <cstdint>

namespace hf::simpo {

/// Up to `N` values, each once; a NaN is never added. The order of insertions decides the height,
/// until `balance`.
///
/// Call the members by a handle, hf::simpo::object. A function that returns nothing is deferred
/// (defer<&tree::insert>, 0 ordering points) or called; the others are called (1 point; const ones
/// without pending calls 0).
/// Errors: none. Crash and durability: see object::defer and object::call.
template <class T, std::size_t N>
    requires stored<T, N>
class tree {
    static constexpr class_text text = class_text("tree").type<T>().number(N).end();

public:
    static constexpr class_name simpo_class{text.text(), 1};

    /// Adds a value. If it is there already, or the tree is full, nothing changes. Cost: O(height).
    void insert(T value) noexcept {
        if (detail::is_nan(value)) return;
        place* at = &root_;
        while (*at != 0) {
            node& here = nodes_[*at];
            if (value < here.value) at = &here.left;
            else if (here.value < value) at = &here.right;
            else return;
        }
        if (const place fresh = take_free(); fresh != 0) {
            nodes_[fresh] = {value, 0, 0};
            *at = fresh;
            ++count_;
        }
    }
    /// Removes the value, if it is there. Cost: O(height).
    void remove(T value) noexcept {
        if (detail::is_nan(value)) return;
        place* at = &root_;
        while (*at != 0) {
            node& here = nodes_[*at];
            if (value < here.value) at = &here.left;
            else if (here.value < value) at = &here.right;
            else break;
        }
        if (*at == 0) return;
        if (nodes_[*at].left != 0 && nodes_[*at].right != 0) {
            place* least = &nodes_[*at].right; // the next value takes this one's place
            while (nodes_[*least].left != 0) least = &nodes_[*least].left;
            nodes_[*at].value = nodes_[*least].value;
            at = least;
        }
        const place gone = *at;
        *at = nodes_[gone].left != 0 ? nodes_[gone].left : nodes_[gone].right;
        nodes_[gone].right = free_; // upholds (2)
        free_ = gone;
        --count_;
    }
    /// Gives the tree the least height for its number of values, in O(count) and without memory.
    /// Source: Stout and Warren 1986.
    void balance() noexcept {
        nodes_[0].right = root_; // place 0 stands for the link to the root
        make_vine();
        const place whole = std::bit_floor(count_ + 1) - 1; // of the levels that are full
        compress(count_ - whole);
        for (place inner = whole / 2; inner != 0; inner /= 2) compress(inner);
        root_ = nodes_[0].right;
    }
    /// Whether the value is there: O(height). How many values there are: O(1).
    bool contains(T value) const noexcept { return depth_of(value) != 0; }
    std::uint32_t count() const noexcept { return count_; }
    /// Nodes from the root to this value, both included; 0 if it is not there. Cost: O(height).
    std::uint32_t depth_of(T value) const noexcept {
        if (detail::is_nan(value)) return 0;
        place at = root_;
        for (std::uint32_t depth = 1; at != 0; ++depth) {
            const node& here = nodes_[at];
            if (value < here.value) at = here.left;
            else if (here.value < value) at = here.right;
            else return depth;
        }
        return 0;
    }

private:
    using place = std::uint32_t;
    struct node {
        T value{};
        place left = 0, right = 0;
    };
    /// A free place; 0 if the tree is full.
    place take_free() noexcept {
        if (free_ != 0) {
            const place out = free_;
            free_ = nodes_[out].right;
            return out;
        }
        return used_ == N ? 0 : ++used_;
    }
    /// Turns every left link into a right one: the tree becomes a sorted list.
    void make_vine() noexcept {
        for (place tail = 0, rest = nodes_[0].right; rest != 0;) {
            const place left = nodes_[rest].left;
            if (left == 0) {
                tail = rest;
                rest = nodes_[rest].right;
            } else {
                nodes_[rest].left = nodes_[left].right;
                nodes_[left].right = rest;
                rest = left;
                nodes_[tail].right = left;
            }
        }
    }
    /// Rotates every other one of the list's first 2 `times` nodes to the left.
    void compress(place times) noexcept {
        for (place at = 0; times != 0; --times) {
            const place child = nodes_[at].right;
            nodes_[at].right = nodes_[child].right;
            at = nodes_[at].right;
            nodes_[child].right = nodes_[at].left;
            nodes_[at].left = child;
        }
    }

    std::array<node, N + 1> nodes_{};
    place root_ = 0, count_ = 0, used_ = 0, free_ = 0;
};

} // namespace hf::simpo
