// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// libstdc++'s std::map, set, multimap, multiset and list in sections. They link and balance their
// nodes by functions inside the shared library, where no engine sees the stores. This header
// defines bodies for those functions, and a source that includes it compiles them into its
// sections. They lay nodes out as the library does: code that was compiled without them works on
// the same containers.
//
// Include it in every source whose sections change such containers. With another standard library
// it is empty, because libc++'s containers are all in headers.
//
// (1) The tree is libstdc++'s. A red header node's parent is the root; its left and right are the
//     first and the last node. An empty tree's header is its own left and right.
// (2) Red nodes have black children, and every way down passes as many black nodes (Cormen,
//     Leiserson, Rivest, Stein, Introduction to Algorithms, 13).
// (3) An operation stores only to what it changes: each store is a line to make durable.
#pragma once

#include <list>
#include <map>
#include <set>

#if defined(__GLIBCXX__)

namespace hf::detail {

using tree_node = std::_Rb_tree_node_base;

inline bool is_red(const tree_node* n) noexcept {
    return n != nullptr && n->_M_color == std::_S_red;
}
inline void paint(tree_node* n, std::_Rb_tree_color color) noexcept {
    if (n->_M_color != color) n->_M_color = color; // upholds (3)
}
/// The child on one side; below, the one on the other side.
template <bool Left> tree_node*& near_child(tree_node* n) noexcept {
    return Left ? n->_M_left : n->_M_right;
}
template <bool Left> tree_node*& far_child(tree_node* n) noexcept { return near_child<!Left>(n); }

/// The deepest descendant on that side.
template <bool Left> tree_node* last_on(tree_node* n) noexcept {
    while (near_child<Left>(n) != nullptr) n = near_child<Left>(n);
    return n;
}

/// Puts 'now' in the place of 'was'.
inline void replace_child(tree_node* was, tree_node* now, tree_node& header) noexcept {
    tree_node* parent = was->_M_parent;
    if (header._M_parent == was) header._M_parent = now;
    else if (parent->_M_left == was) parent->_M_left = now;
    else parent->_M_right = now;
    if (now != nullptr) now->_M_parent = parent;
}

/// Rotates: the far child moves up, and 'n' moves down to the near side.
template <bool Left> void rotate_to(tree_node* n, tree_node& header) noexcept {
    tree_node* up = far_child<Left>(n);
    tree_node* between = near_child<Left>(up);
    far_child<Left>(n) = between;
    if (between != nullptr) between->_M_parent = n;
    replace_child(n, up, header);
    near_child<Left>(up) = n;
    n->_M_parent = up;
}

/// Requires: 'n' and its parent are red, and the parent is the grandparent's child on that side.
///           Returns the node that may now be red under a red parent, or the root if no node is.
template <bool Left> tree_node* mend_red(tree_node* n, tree_node& header) noexcept {
    tree_node* parent = n->_M_parent;
    tree_node* grandparent = parent->_M_parent;
    if (tree_node* uncle = far_child<Left>(grandparent); is_red(uncle)) {
        paint(parent, std::_S_black);
        paint(uncle, std::_S_black);
        paint(grandparent, std::_S_red);
        return grandparent;
    }
    if (n == far_child<Left>(parent)) {
        rotate_to<Left>(parent, header);
        parent = n;
    }
    paint(parent, std::_S_black);
    paint(grandparent, std::_S_red);
    rotate_to<!Left>(grandparent, header);
    return header._M_parent;
}

/// Requires: ways through 'n', the parent's child on that side or null there, pass one black node
///           too few. Returns the node for which this holds now, or the root if it holds for no
///           node.
template <bool Left>
tree_node* mend_black(tree_node* parent, tree_node& header) noexcept {
    tree_node* sibling = far_child<Left>(parent);
    if (is_red(sibling)) {
        paint(sibling, std::_S_black);
        paint(parent, std::_S_red);
        rotate_to<Left>(parent, header);
        sibling = far_child<Left>(parent);
    }
    if (!is_red(sibling->_M_left) && !is_red(sibling->_M_right)) {
        paint(sibling, std::_S_red);
        return parent;
    }
    if (!is_red(far_child<Left>(sibling))) {
        paint(near_child<Left>(sibling), std::_S_black);
        paint(sibling, std::_S_red);
        rotate_to<!Left>(sibling, header);
        sibling = far_child<Left>(parent);
    }
    paint(sibling, parent->_M_color);
    paint(parent, std::_S_black);
    paint(far_child<Left>(sibling), std::_S_black);
    rotate_to<Left>(parent, header);
    return header._M_parent;
}

/// Takes 'node', which has two children, out of its place. The next node in order gets the place
/// and the colour, and 'node' the next node's colour. Returns the parent of what moved up in the
/// next node's old place.
inline tree_node* put_next_in_place(tree_node* node, tree_node*& moved_up,
                                    tree_node& header) noexcept {
    tree_node* next = last_on<true>(node->_M_right);
    moved_up = next->_M_right;
    tree_node* parent = next;
    if (next != node->_M_right) {
        parent = next->_M_parent;
        parent->_M_left = moved_up;
        if (moved_up != nullptr) moved_up->_M_parent = parent;
        next->_M_right = node->_M_right;
        next->_M_right->_M_parent = next;
    }
    next->_M_left = node->_M_left;
    next->_M_left->_M_parent = next;
    replace_child(node, next, header);
    const std::_Rb_tree_color color = node->_M_color;
    paint(node, next->_M_color);
    paint(next, color);
    return parent;
}

/// The next node in order to that side of 'n'; behind the last node, the header.
template <bool Left> tree_node* neighbour(tree_node* n) noexcept {
    if (near_child<Left>(n) != nullptr) return last_on<!Left>(near_child<Left>(n));
    tree_node* up = n->_M_parent;
    while (n == near_child<Left>(up)) {
        n = up;
        up = up->_M_parent;
    }
    // If the root has no such child, the loop has climbed to the header, and past it: they are each
    // other's parents.
    return near_child<Left>(n) != up ? up : n;
}

} // namespace hf::detail

namespace std {

inline void _Rb_tree_insert_and_rebalance(const bool left, _Rb_tree_node_base* n,
                                          _Rb_tree_node_base* parent,
                                          _Rb_tree_node_base& header) noexcept {
    n->_M_parent = parent;
    n->_M_left = nullptr;
    n->_M_right = nullptr;
    n->_M_color = _S_red;
    if (parent == &header) { // the first: (1)
        header._M_parent = header._M_left = header._M_right = n;
    } else if (left) {
        parent->_M_left = n;
        if (header._M_left == parent) header._M_left = n;
    } else {
        parent->_M_right = n;
        if (header._M_right == parent) header._M_right = n;
    }
    while (n != header._M_parent && hf::detail::is_red(n->_M_parent))
        n = n->_M_parent == n->_M_parent->_M_parent->_M_left
                ? hf::detail::mend_red<true>(n, header)
                : hf::detail::mend_red<false>(n, header);
    hf::detail::paint(header._M_parent, _S_black);
}

inline _Rb_tree_node_base* _Rb_tree_rebalance_for_erase(_Rb_tree_node_base* const node,
                                                        _Rb_tree_node_base& header) noexcept {
    using namespace hf::detail;
    tree_node* moved_up = node->_M_left != nullptr ? node->_M_left : node->_M_right;
    tree_node* parent = node->_M_parent;
    if (node->_M_left != nullptr && node->_M_right != nullptr) {
        parent = put_next_in_place(node, moved_up, header);
    } else {
        // The first node has no left child, the last one no right child.
        if (header._M_left == node)
            header._M_left = moved_up == nullptr ? parent : last_on<true>(moved_up);
        if (header._M_right == node)
            header._M_right = moved_up == nullptr ? parent : last_on<false>(moved_up);
        replace_child(node, moved_up, header);
    }
    if (is_red(node)) return node;
    tree_node* n = moved_up;
    while (n != header._M_parent && !is_red(n)) {
        n = n == parent->_M_left ? mend_black<true>(parent, header)
                                 : mend_black<false>(parent, header);
        parent = n->_M_parent;
    }
    if (n != nullptr) paint(n, _S_black);
    return node;
}

inline _Rb_tree_node_base* _Rb_tree_increment(_Rb_tree_node_base* n) noexcept {
    return hf::detail::neighbour<false>(n);
}
inline const _Rb_tree_node_base* _Rb_tree_increment(const _Rb_tree_node_base* n) noexcept {
    return hf::detail::neighbour<false>(const_cast<_Rb_tree_node_base*>(n));
}
inline _Rb_tree_node_base* _Rb_tree_decrement(_Rb_tree_node_base* n) noexcept {
    // The header is red and its own grandparent: (1). The node before it is the last.
    if (n->_M_color == _S_red && n->_M_parent->_M_parent == n) return n->_M_right;
    return hf::detail::neighbour<true>(n);
}
inline const _Rb_tree_node_base* _Rb_tree_decrement(const _Rb_tree_node_base* n) noexcept {
    return _Rb_tree_decrement(const_cast<_Rb_tree_node_base*>(n));
}

namespace __detail {

inline void _List_node_base::_M_hook(_List_node_base* const before) noexcept {
    _M_next = before;
    _M_prev = before->_M_prev;
    before->_M_prev->_M_next = this;
    before->_M_prev = this;
}
inline void _List_node_base::_M_unhook() noexcept {
    _M_next->_M_prev = _M_prev;
    _M_prev->_M_next = _M_next;
}
/// [first, last) comes before this node.
inline void _List_node_base::_M_transfer(_List_node_base* const first,
                                         _List_node_base* const last) noexcept {
    if (this == last) return;
    _List_node_base* const newest = last->_M_prev;
    first->_M_prev->_M_next = last;
    last->_M_prev = first->_M_prev;
    first->_M_prev = _M_prev;
    newest->_M_next = this;
    _M_prev->_M_next = first;
    _M_prev = newest;
}
inline void _List_node_base::_M_reverse() noexcept {
    _List_node_base* n = this;
    do {
        _List_node_base* const next = n->_M_next;
        n->_M_next = n->_M_prev;
        n->_M_prev = next;
        n = next;
    } while (n != this);
}
/// Swaps two headers; each gets the other's nodes.
inline void _List_node_base::swap(_List_node_base& a, _List_node_base& b) noexcept {
    const _List_node_base of_a = a, of_b = b;
    const auto take = [](_List_node_base& header, const _List_node_base& nodes,
                         const _List_node_base& its) {
        if (nodes._M_next == &its) { // of an empty list
            header._M_next = header._M_prev = &header;
            return;
        }
        header = nodes;
        header._M_next->_M_prev = header._M_prev->_M_next = &header;
    };
    take(a, of_b, b);
    take(b, of_a, a);
}

} // namespace __detail
} // namespace std

#endif
