// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Updates of relaxed radix balanced trees. Their nodes, and how they are read: rrb.hpp.
#include <mod/rrb.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace hf::mod::detail::rrb {

/// An edit on its way: the editor's parts, and the tree as it is read.
class editor::edit {
public:
    explicit edit(editor& of) noexcept
        : to_(*of.to_), leaf_(of.leaf_), tree_{of.leaf_, to_.base()}, given_up_(of.given_up_),
          roomy_(of.roomy_) {}

    word put(word in, std::uint32_t index, const std::byte* element, bool releases) {
        if (to_.failed()) return in;
        HF_ASSERT_SLOW(index < top_of(in).count);
        way down(tree_, in, index);
        ref top = 0;
        bool own = true;
        const ref* leaf = own_way(down, 0, top, own);
        if (leaf == nullptr) return in;
        if (!fits(*leaf, leaf_.bytes_of(down.index + 1))) return in;
        std::byte* place = elements(*leaf) + leaf_.bytes_of(down.index);
        if (releases) release_elements(place, 1);
        std::memmove(place, element, leaf_.element_bytes);
        return word_of({top, top_of(in).count});
    }
    word append(word in, word other) {
        if (other == 0 || to_.failed()) return in;
        const branch top = top_of(other);
        to_.shared(top.at & ref_max, context(top, tree_.height_of(top))); // (4)
        return joined(in, other);
    }
    struct pair_of_words {
        word left, right;
    };
    word extended(word in, const std::byte* from, std::uint32_t count) {
        if (count > count_max - top_of(in).count) to_.fail();
        while (count > 0 && !to_.failed()) {
            const std::uint32_t before = top_of(in).count;
            in = grow(in, from, count);
            const std::uint32_t added = top_of(in).count - before;
            from += leaf_.bytes_of(added);
            count -= added;
        }
        return in;
    }
    word cleared(word in) {
        const branch top = top_of(in);
        if (in != 0 && !to_.failed()) release(top, tree_.height_of(top));
        return 0;
    }
    word taken(word in, std::uint32_t count) {
        const branch top = top_of(in);
        if (count >= top.count || to_.failed()) return in;
        if (count == 0) return cleared(in);
        const bool in_last_leaf = leaf_at(leaf_, tree_.base, in, count - 1).last == top.count;
        if (in_last_leaf && !leaf_.holds_refs) return word_of({top.at, count}); // (3)
        return parted(in, count, left_half).left;
    }
    word dropped(word in, std::uint32_t count) {
        if (count == 0 || to_.failed()) return in;
        return count >= top_of(in).count ? cleared(in) : parted(in, count, right_half).right;
    }
    pair_of_words apart(word in, std::uint32_t index) {
        if (index == 0 || to_.failed()) return {0, in};
        if (index == top_of(in).count) return {in, 0};
        return parted(in, index, both_halves);
    }
    word joined(word left, word right) {
        if (left == 0 || right == 0 || to_.failed()) return left | right;
        const branch l = top_of(left);
        const branch r = top_of(right);
        if (r.count > count_max - l.count) {
            to_.fail();
            return left;
        }
        const unsigned lh = tree_.height_of(l);
        const unsigned rh = tree_.height_of(r);
        unsigned height = std::max(lh, rh);
        const halves both = join(l, lh, r, rh);
        if (to_.failed()) return left;
        if (both.right.at == 0) return packed({both.left, height});
        if (++height > height_max) {
            to_.fail();
            return left;
        }
        const branch pair[] = {both.left, both.right};
        return packed({node_of(pair, 2, height), height});
    }
    /// Ends every edit.
    word done(word before, word after) {
        if (to_.failed()) return before; // (5)
        for (const given& one : given_up_) to_.replaced(one.node, one.context);
        given_up_.clear();
        return after;
    }

private:
    struct rooted {
        branch top;
        unsigned height;
    };
    struct halves {
        branch left, right;
    };
    /// The nodes from the top to an element, by height. They are all read before any is copied:
    /// loads pass the stores that wait behind the last commit's fence, copies would not.
    struct way {
        way(const tree& in_tree, word in, std::uint32_t to) noexcept : index(to) {
            branch at = top_of(in);
            height = in_tree.height_of(at);
            for (unsigned h = height; h > 0; --h) {
                node[h] = at;
                child[h] = in_tree.step(at, h, index);
            }
            node[0] = at;
            index &= in_tree.leaf.capacity() - 1; // so it is, unless the tree is damaged
            fetch(in_tree.base, at.at);
            fetch(in_tree.base, at.at, 1);
        }
        branch node[height_max + 1];
        unsigned child[height_max + 1];
        unsigned height;
        std::uint32_t index; // within the leaf
    };
    enum half : unsigned { left_half = 1, right_half = 2, both_halves = 3 };

    static std::uint32_t context(branch node, unsigned height) noexcept {
        return node_context::of(node, height);
    }
    std::byte* elements(ref leaf) const noexcept { return to_.at<std::byte>(leaf); }
    std::byte* elements(branch leaf) const noexcept {
        return to_.at<std::byte>(leaf.at, leaf_.bytes_of(leaf.count));
    }
    /// Whether so many bytes may be stored to this node. In a damaged tree counts may contradict
    /// each other: then the update fails.
    bool fits(ref leaf, std::size_t bytes) noexcept {
        const bool enough = bytes <= to_.room(leaf & ref_max);
        if (!enough) to_.fail_damaged();
        return enough;
    }

    /// The new version has other nodes in place of this one; parents before children.
    void give_up(branch node, unsigned height) {
        const given one{node.at & ref_max, context(node, height)};
        if (one.node == roomy_) roomy_ = 0;
        if (to_.fresh(one.node)) {
            given_up_.push_back(one);
        } else {
            to_.replaced(one.node, one.context);
        }
    }
    void release(branch node, unsigned height) {
        to_.released(node.at & ref_max, context(node, height));
    }
    void release_elements(const std::byte* from, std::uint32_t count) {
        if (leaf_.holds_refs) {
            for (std::uint32_t i = 0; i < count; ++i)
                slot<std::string>::give_up(to_, from + leaf_.bytes_of(i));
        }
    }

    // Nodes.
    /// The node itself if it is this shadow's, else a copy in its place; 0 if there is no room.
    /// 'own': whether its parent is this shadow's; an older version's node names none of this
    /// shadow's nodes.
    ref owned(branch node, unsigned height, bool& own) {
        own = own && to_.fresh(node.at & ref_max);
        if (own) return node.at;
        const std::size_t bytes = node_bytes(leaf_, node, height);
        const ref copy = to_.make(bytes);
        if (copy == 0) return 0;
        std::byte* to = to_.at<std::byte>(copy);
        const std::byte* from = node_at<std::byte>(tree_.base, node.at, bytes);
        // A damaged node may reach into its copy.
        if (bytes == sizeof(inner_node)) std::memmove(to, from, sizeof(inner_node));
        else if (bytes == sizeof(relaxed_node)) std::memmove(to, from, sizeof(relaxed_node));
        else std::memmove(to, from, bytes);
        to_.replaced(node.at & ref_max, context(node, height));
        return copy | (node.at & relaxed_bit);
    }
    /// Owns the way from the top down to height 'low'. Returns the ref there that names the node;
    /// null if there is no room.
    ref* own_way(way& down, unsigned low, ref& top, bool& own) {
        ref* named = &top;
        for (unsigned height = down.height;; --height) {
            const ref mine = owned(down.node[height], height, own);
            if (mine == 0) return nullptr;
            *named = down.node[height].at = mine;
            if (height == low) return named;
            named = to_.at<inner_node>(mine)->child + down.child[height];
        }
    }
    /// A node of these children, relaxed only when it must be.
    branch node_of(const branch* kids, unsigned n, unsigned height) {
        HF_ASSERT(n - 1 < fan && height - 1 < height_max);
        const std::uint64_t full = leaf_.capacity(height - 1);
        bool regular = true;
        std::uint32_t count = 0;
        for (unsigned k = 0; k < n; ++k) {
            regular = regular && (k + 1 == n || kids[k].count == full);
            count += kids[k].count;
        }
        const ref made = to_.make(regular ? sizeof(inner_node) : sizeof(relaxed_node));
        if (made == 0) return {};
        auto* refs = to_.at<inner_node>(made)->child;
        for (unsigned k = 0; k < fan; ++k) refs[k] = k < n ? kids[k].at : 0;
        if (regular) return {made, count};
        auto& node = *to_.at<relaxed_node>(made);
        std::uint32_t end = 0;
        for (unsigned k = 0; k < fan - 1; ++k) node.ends[k] = k < n ? end += kids[k].count : 0;
        node.height = static_cast<std::uint8_t>(height);
        node.children = static_cast<std::uint8_t>(n);
        node.zero = 0;
        return {made | relaxed_bit, count};
    }
    branch leaf_of(const std::byte* from, std::uint32_t count, std::uint32_t room = 0) {
        HF_ASSERT(std::max(count, room) <= leaf_.capacity());
        const ref made = to_.make(leaf_.bytes(std::max(count, room)));
        if (made == 0) return {};
        std::memmove(elements(made), from, leaf_.bytes_of(count));
        return {made, count};
    }

    // Growing at the right edge.
    word grow(word in, const std::byte* from, std::uint32_t count) {
        const branch top = top_of(in);
        if (in == 0) return word_of(leaf_of(from, std::min(count, leaf_.capacity())));
        way edge(tree_, in, top.count - 1);
        unsigned room = 0; // the lowest node of the edge that has any
        while (room <= edge.height &&
               tree_.slots(edge.node[room], room) == (room == 0 ? leaf_.capacity() : fan))
            ++room;
        if (room == 0)
            return grow_leaf(in, edge, from,
                             std::min(count, leaf_.capacity() - edge.node[0].count));
        // In a batch more elements are likely to follow.
        const bool more = edge.height > 0 && to_.fresh(edge.node[1].at & ref_max);
        branch added =
            leaf_of(from, std::min(count, leaf_.capacity()), more ? leaf_.capacity() : 0);
        if (more) roomy_ = added.at;
        for (unsigned h = 1; h < room && added.at != 0; ++h) added = node_of(&added, 1, h);
        if (added.at == 0) return in;
        if (room <= edge.height) return append_child(in, edge, room, added);
        if (room > height_max) {
            to_.fail();
            return in;
        }
        const branch pair[] = {top, added};
        const branch above = node_of(pair, 2, room);
        return above.at == 0 ? in : word_of(above);
    }
    word grow_leaf(word in, way& edge, const std::byte* from, std::uint32_t added) {
        const branch leaf = edge.node[0];
        ref top = leaf.at;
        ref* named = &top;
        bool own = true;
        if (edge.height > 0) {
            if (own_way(edge, 1, top, own) == nullptr) return in;
            named = to_.at<inner_node>(edge.node[1].at)->child + edge.child[1];
        }
        own = own && to_.fresh(leaf.at);
        const std::size_t old_bytes = leaf_.bytes_of(leaf.count);
        const std::uint32_t count = leaf.count + added;
        if (!own || (leaf.at != roomy_ && leaf_.bytes(leaf.count) != leaf_.bytes(count))) {
            const branch made = leaf_of(elements(leaf), leaf.count, own ? leaf_.capacity() : count);
            if (made.at == 0) return in;
            give_up(leaf, 0);
            *named = made.at;
            if (own) roomy_ = made.at;
        }
        if (!fits(*named, leaf_.bytes_of(count))) return in;
        std::memmove(elements(*named) + old_bytes, from, leaf_.bytes_of(added));
        return word_of({top, top_of(in).count + added});
    }
    word append_child(word in, way& edge, unsigned height, branch added) {
        ref top = 0;
        bool own = true;
        ref* named = own_way(edge, height, top, own);
        if (named == nullptr) return in;
        const branch at = edge.node[height];
        const unsigned n = edge.child[height] + 1;
        if (n != tree_.child_count(at, height) || n == fan) { // the way led past the last element
            to_.fail_damaged();
            return in;
        }
        if (at.relaxed()) {
            auto& node = *to_.at<relaxed_node>(at.at);
            node.ends[n - 1] = at.count;
            node.child[n] = added.at;
            ++node.children;
        } else if (at.count == n * leaf_.capacity(height - 1)) {
            to_.at<inner_node>(at.at)->child[n] = added.at;
        } else { // (1)
            branch kids[fan];
            tree_.children(at, height, kids);
            kids[n] = added;
            const branch made = node_of(kids, n + 1, height);
            if (made.at == 0) return in;
            give_up(at, height);
            *named = made.at;
        }
        return word_of({top, top_of(in).count + added.count});
    }

    // Cutting.
    pair_of_words parted(word in, std::uint32_t index, half wanted) {
        const branch top = top_of(in);
        const unsigned height = tree_.height_of(top);
        const halves both = split(top, height, index, wanted);
        return {packed({both.left, height}), packed({both.right, height})};
    }
    /// Two halves: the first 'index' elements, and the rest. Requires: 0 < index < node.count.
    halves split(branch node, unsigned height, std::uint32_t index, half wanted) {
        HF_ASSERT(height <= height_max && index > 0);
        if (height == 0) return split_leaf(node, index, wanted);
        branch kids[fan + 1];
        const unsigned n = tree_.children(node, height, kids);
        give_up(node, height);
        unsigned k = 0;
        while (k + 1 < n && index >= kids[k].count) index -= kids[k++].count;
        halves out;
        halves inside{{}, kids[k]};
        if (index > 0) inside = split(kids[k], height - 1, index, wanted);
        if (to_.failed()) return out;
        if ((wanted & left_half) != 0) {
            branch left[fan];
            std::copy_n(kids, k, left);
            left[k] = inside.left;
            out.left = node_of(left, index > 0 ? k + 1 : k, height);
        } else {
            for (unsigned i = 0; i < k; ++i) release(kids[i], height - 1);
        }
        if ((wanted & right_half) != 0) {
            kids[k] = inside.right;
            out.right = node_of(kids + k, n - k, height);
        } else {
            for (unsigned i = index > 0 ? k + 1 : k; i < n; ++i) release(kids[i], height - 1);
        }
        return out;
    }
    halves split_leaf(branch leaf, std::uint32_t index, half wanted) {
        if (wanted == left_half && !leaf_.holds_refs) return {{leaf.at, index}, {}}; // (3)
        index = std::min(index, leaf.count);
        const std::byte* first = elements(leaf);
        const std::byte* second = first + leaf_.bytes_of(index);
        halves out;
        give_up(leaf, 0);
        if ((wanted & left_half) != 0) {
            out.left = leaf_of(first, index);
        } else {
            release_elements(first, index);
        }
        if ((wanted & right_half) != 0) {
            out.right = leaf_of(second, leaf.count - index);
        } else {
            release_elements(second, leaf.count - index);
        }
        return out;
    }
    /// The word of a tree: as low as it can be by merging the top's children.
    word packed(rooted given) {
        auto [top, height] = given;
        if (top.at == 0 || to_.failed()) return 0;
        while (height > 0 && top.count <= leaf_.capacity(height - 1) && !to_.failed()) {
            branch kids[fan];
            const unsigned n = tree_.children(top, height, kids);
            std::uint32_t all = 0;
            for (unsigned k = 0; k < n; ++k) all += tree_.slots(kids[k], height - 1);
            const std::uint32_t width = height == 1 ? leaf_.capacity() : fan;
            if (n > 1 && all > width) break;
            give_up(top, height);
            --height;
            top = kids[0];
            if (n > 1) regroup(kids, height, &all, 1, &top);
        }
        return to_.failed() ? 0 : word_of(top);
    }

    // Joining.
    /// One node of the greater height, or two, that have what both have.
    halves join(branch l, unsigned lh, branch r, unsigned rh) {
        if (lh == 0 && rh == 0) return join_leaves(l, r);
        const unsigned height = std::max(lh, rh);
        branch all[2 * fan];
        branch after[fan];
        unsigned n = 0;
        unsigned n_after = 1;
        if (lh == height) {
            n = tree_.children(l, lh, all) - 1;
            give_up(l, lh);
            l = all[n];
            --lh;
        }
        if (rh == height) {
            n_after = tree_.children(r, rh, after);
            give_up(r, rh);
            r = after[0];
            --rh;
        }
        const halves seam = join(l, lh, r, rh);
        if (to_.failed()) return {};
        all[n++] = seam.left;
        if (seam.right.at != 0) all[n++] = seam.right;
        std::copy(after + 1, after + n_after, all + n);
        n = balance(all, n + n_after - 1, height - 1);
        if (to_.failed()) return {};
        halves out;
        out.left = node_of(all, std::min(n, fan), height);
        if (n > fan) out.right = node_of(all + fan, n - fan, height);
        return out;
    }
    halves join_leaves(branch l, branch r) {
        if (l.count + r.count > leaf_.capacity()) return {l, r};
        const branch pair[] = {l, r};
        const std::uint32_t all = l.count + r.count;
        halves out;
        regroup(pair, 0, &all, 1, &out.left);
        return out;
    }
    /// Fewer nodes in place of these neighbours of one height, when they are too thin.
    unsigned balance(branch* nodes, unsigned n, unsigned height) {
        const std::uint32_t width = height == 0 ? leaf_.capacity() : fan;
        std::array<std::uint32_t, 2 * fan> wanted;
        std::uint32_t all = 0;
        for (unsigned i = 0; i < n; ++i) all += wanted[i] = tree_.slots(nodes[i], height);
        const unsigned most = (all + width - 1) / width + seam_slack;
        const unsigned before = n;
        unsigned from = 0;
        for (; n > most; --n) {
            // The slots of the first node that is not full move into those behind it, which have
            // room: more than 'most' nodes leave more than two nodes' slots free.
            while (wanted[from] == width) ++from;
            std::uint32_t moving = wanted[from];
            unsigned i = from;
            for (; moving > 0; ++i) {
                const std::uint32_t here = std::min(moving + wanted[i + 1], width);
                moving = moving + wanted[i + 1] - here;
                wanted[i] = here;
            }
            std::copy(wanted.begin() + i + 1, wanted.begin() + n, wanted.begin() + i);
        }
        if (n == before) return n;
        branch made[2 * fan];
        regroup(nodes, height, wanted.data(), n, made);
        std::copy_n(made, n, nodes);
        return n;
    }
    /// New nodes with so many slots each from the slots of 'nodes', which are given up; one that
    /// is as wanted stays.
    void regroup(const branch* nodes, unsigned height, const std::uint32_t* wanted, unsigned n,
                 branch* made) {
        std::uint32_t skip = 0; // slots of *nodes that were used
        for (unsigned i = 0; i < n && !to_.failed(); ++i) {
            if (skip == 0 && tree_.slots(*nodes, height) == wanted[i]) {
                made[i] = *nodes++;
            } else if (height == 0) {
                made[i] = gather_elements(nodes, skip, wanted[i]);
            } else {
                made[i] = gather_children(nodes, skip, wanted[i], height);
            }
        }
    }
    branch gather_elements(const branch*& nodes, std::uint32_t& skip, std::uint32_t wanted) {
        const ref made = to_.make(leaf_.bytes(wanted));
        if (made == 0) return {};
        for (std::uint32_t has = 0; has < wanted;) {
            const std::uint32_t moved = std::min(wanted - has, nodes->count - skip);
            std::memmove(elements(made) + leaf_.bytes_of(has),
                         elements(*nodes) + leaf_.bytes_of(skip), leaf_.bytes_of(moved));
            has += moved;
            used(nodes, skip, moved, nodes->count, 0);
        }
        return {made, wanted};
    }
    branch gather_children(const branch*& nodes, std::uint32_t& skip, std::uint32_t wanted,
                           unsigned height) {
        branch gathered[fan];
        for (std::uint32_t has = 0; has < wanted;) {
            branch kids[fan];
            const std::uint32_t n = tree_.children(*nodes, height, kids);
            const std::uint32_t moved = std::min(wanted - has, n - skip);
            std::copy_n(kids + skip, moved, gathered + has);
            has += moved;
            used(nodes, skip, moved, n, height);
        }
        return node_of(gathered, wanted, height);
    }
    /// Slots of *nodes went to a new node; from the first on it is given up.
    void used(const branch*& nodes, std::uint32_t& skip, std::uint32_t moved, std::uint32_t of,
              unsigned height) {
        if (skip == 0) give_up(*nodes, height);
        skip += moved;
        if (skip < of) return;
        skip = 0;
        ++nodes;
    }

    shadow& to_;
    const leaf_form leaf_;
    const tree tree_;
    std::vector<given>& given_up_;
    ref& roomy_;
};

editor::word editor::set(word in, std::uint32_t index, const std::byte* element) {
    return edit(*this).put(in, index, element, true);
}
editor::word editor::put(word in, std::uint32_t index, const std::byte* element) {
    return edit(*this).put(in, index, element, false);
}
editor::word editor::extend(word in, const std::byte* from, std::uint32_t count) {
    edit e(*this);
    return e.done(in, e.extended(in, from, count));
}
editor::word editor::take(word in, std::uint32_t count) {
    edit e(*this);
    return e.done(in, e.taken(in, count));
}
editor::word editor::slice(word in, std::uint32_t first, std::uint32_t last) {
    edit e(*this);
    return e.done(in, e.dropped(e.taken(in, last), first));
}
editor::word editor::insert(word in, std::uint32_t index, const std::byte* from,
                            std::uint32_t count) {
    edit e(*this);
    const auto both = e.apart(in, index);
    return e.done(in, e.joined(e.extended(both.left, from, count), both.right));
}
editor::word editor::erase(word in, std::uint32_t first, std::uint32_t last) {
    edit e(*this);
    const auto both = e.apart(in, first);
    return e.done(in, e.joined(both.left, e.dropped(both.right, last - first)));
}
editor::word editor::append(word in, word other) {
    edit e(*this);
    return e.done(in, e.append(in, other));
}
editor::word editor::clear(word in) {
    edit e(*this);
    return e.done(in, e.cleared(in));
}

} // namespace hf::mod::detail::rrb
