// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Updates of B+trees, on the bytes of entries: a leaf's entries change, and what that makes of the
// nodes above. The numbers in brackets are bplus_tree.hpp's.
#include <base/assert.hpp>

#include <holdfast/mod/detail/bplus_node.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace hf::mod::detail::ordered {
namespace {

/// One or two future nodes: entries of other nodes, in rows, and single ones. What they point to
/// stays until the node is made.
class draft {
public:
    explicit draft(const form& of) noexcept : of_(of) {}
    unsigned count() const noexcept { return count_; }

    void add(const std::byte* key, const std::byte* value, unsigned count = 1) noexcept {
        HF_ASSERT(rows_ < row_.size());
        row_[rows_++] = {key, value, count};
        count_ += count;
    }
    void add(const std::byte* key, const ref& child) noexcept {
        add(key, reinterpret_cast<const std::byte*>(&child));
    }
    /// Entries of a node.
    void add_from(const std::byte* node, unsigned from, unsigned upto) noexcept {
        if (from < upto) add(key_place(of_, node, from), value_place(of_, node, from), upto - from);
    }
    const std::byte* key(unsigned at) const noexcept {
        HF_ASSERT(at < count_);
        const row* in = row_.data();
        for (; at >= in->count; ++in) at -= in->count;
        return in->key + std::size_t{at} * of_.key.bytes;
    }
    // [make]
    ref make(shadow& to, unsigned from, unsigned upto) const {
        HF_ASSERT(from < upto && upto <= count_ && upto - from <= of_.capacity); // (1)
        const std::uint32_t entries = upto - from;
        const ref made = to.make(form::aligned(of_.bytes(entries), 64)); // starts a line
        if (made == 0) return 0;
        auto* node = to.at<std::byte>(made);
        std::memcpy(node, &entries, sizeof entries);
        std::byte* key = node + of_.keys();
        std::byte* value = node + of_.values(entries);
        for (const row* in = row_.data(); upto > 0; ++in) {
            const std::size_t skipped = std::min(from, in->count);
            const std::size_t taken = std::min(upto, in->count) - skipped;
            // In a damaged pool the new node may lie over an old one.
            std::memmove(key, in->key + skipped * of_.key.bytes, taken * of_.key.bytes);
            std::memmove(value, in->value + skipped * of_.value.bytes, taken * of_.value.bytes);
            key += taken * of_.key.bytes;
            value += taken * of_.value.bytes;
            from -= static_cast<unsigned>(skipped);
            upto -= std::min(upto, in->count);
        }
        return of_.is_leaf ? made | leaf_bit : made;
    }
    // [/make]

private:
    struct row {
        const std::byte* key;
        const std::byte* value;
        unsigned count;
    };
    const form& of_;
    std::array<row, 4> row_;
    unsigned rows_ = 0;
    unsigned count_ = 0;
};

// [given_up]
/// What an update gives up: gathered from the leaf up, reported from the top down, since the core
/// wants parents before children.
class given_up {
public:
    void node(ref node, unsigned level) noexcept { add(node, context_of(node, level)); }
    /// What an element's slot names, if it names anything.
    void slot(const slot_form& form, const std::byte* at) noexcept {
        if (form.holds_ref) add(detail::slot<std::string>::blob_of(at), blob_context);
    }
    void report(shadow& to) {
        while (count_ > 0) {
            --count_;
            to.replaced(what_[count_].node, what_[count_].context);
        }
    }

private:
    struct one {
        ref node;
        std::uint32_t context;
    };
    void add(ref node, std::uint32_t context) noexcept {
        HF_ASSERT(count_ < what_.size());
        what_[count_++] = {node, context};
    }

    // A leaf's entries and itself; for a level above two children, two keys' blobs at most, itself.
    std::array<one, 2 * capacity_max + 1 + 5 * levels_max> what_;
    unsigned count_ = 0;
};
// [/given_up]

/// The replacement for a node: none, one, or two and the key that separates them.
struct parts {
    ref first = 0;
    ref second = 0;
    const std::byte* key = nullptr;
};

class edit {
public:
    edit(shadow& to, const forms& of) noexcept : to_(to), of_(of) {}

    // [leaf]
    /// The new top of a tree in whose leaf 'added' has come in the place of so many entries.
    ref leaf(const way& from, unsigned erased, const item* added) {
        const std::byte* old = node_of(of_.leaf, to_.base(), from.leaf);
        const unsigned count = from.leaf == 0 ? 0 : count_of(old);
        const unsigned rest = from.entry + erased;
        if (rest > count) { // a new blob lies over the leaf
            to_.fail_damaged();
            return 0;
        }
        draft next(of_.leaf);
        next.add_from(old, 0, from.entry);
        if (added != nullptr) next.add(added->key, added->value);
        next.add_from(old, rest, count);
        for (unsigned i = from.entry; i < rest; ++i) {
            if (added == nullptr) gone_.slot(of_.leaf.key, key_place(of_.leaf, old, i));
            gone_.slot(of_.leaf.value, value_place(of_.leaf, old, i));
        }
        if (from.leaf != 0) gone_.node(from.leaf, from.depth);
        return rise(from, write(of_.leaf, next, from.entry == count), added == nullptr);
    }
    // [/leaf]

private:
    parts write(const form& of, const draft& what, bool at_end);
    ref copied(const std::byte* inner, unsigned count) {
        const ref made = to_.make(form::aligned(of_.inner.bytes(count), 64));
        if (made != 0) std::memmove(to_.at<std::byte>(made), inner, of_.inner.bytes(count));
        return made;
    }
    ref rise(const way& from, parts now, bool shrunk);
    bool merge(const form& of, const std::byte* parent, unsigned& child, unsigned level,
               parts& now);

    shadow& to_;
    const forms& of_;
    given_up gone_;
    ref parting_ = 0; // the blob of the key that parts two leaves
};

/// 'at_end': the node grew behind its last entry. Then a split leaves it full: keys often come in
/// order.
parts edit::write(const form& of, const draft& what, bool at_end) {
    parts made;
    const unsigned count = what.count();
    HF_ASSERT(count <= of.capacity + 1);
    const unsigned first = count <= of.capacity ? count : at_end ? count - 1 : count / 2;
    if (count > 0) made.first = what.make(to_, 0, first);
    if (first == count) return made;
    made.second = what.make(to_, first, count);
    made.key = what.key(first);
    if (of.is_leaf && of.key.holds_ref) { // else it moves up: (2)
        HF_ASSERT(parting_ == 0);
        parting_ = make_blob(to_, slot<std::string>::read(to_.base(), made.key));
        made.key = reinterpret_cast<const std::byte*>(&parting_);
    }
    return made;
}

// [rise]
/// Puts 'now' in the place of the way's leaf, and what that makes of its parent in the parent's
/// place, up to the top, which is returned. A parent that this shadow made is changed as it is.
ref edit::rise(const way& from, parts now, bool shrunk) {
    const form& inner = of_.inner;
    for (unsigned level = from.depth; level-- > 0 && !to_.failed();) {
        const ref old = from.node[level];
        const std::byte* node = node_of(inner, to_.base(), old);
        const unsigned count = count_of(node);
        unsigned child = from.child[level];
        if (child >= count) { // a new node lies over this one
            to_.fail_damaged();
            break;
        }
        bool merged = false; // the child after 'child' is in it too
        if (shrunk && now.first != 0)
            merged = merge(is_leaf(now.first) ? of_.leaf : inner, node, child, level + 1, now);
        if (to_.failed()) break;
        if (!merged && now.first != 0 && now.second == 0) { // one ref is another
            const std::size_t at = inner.values(count) + child * sizeof(ref);
            const bool fresh = to_.fresh(old);
            const ref own = fresh ? old : copied(node, count);
            if (own == 0) break;
            std::memcpy(to_.at<std::byte>(own) + at, &now.first, sizeof(ref));
            if (fresh) {
                gone_.report(to_);
                return from.node[0]; // all that leads to a fresh node is fresh too
            }
            gone_.node(old, level);
            now = {own};
            continue;
        }
        draft next(inner);
        next.add_from(node, 0, child);
        if (now.first != 0) next.add(key_place(inner, node, child), now.first);
        else if (count > 1) gone_.slot(inner.key, key_place(inner, node, std::max(child, 1U)));
        if (now.second != 0) next.add(now.key, now.second);
        next.add_from(node, child + 1 + merged, count);
        gone_.node(old, level);
        now = write(inner, next, child + 1 == count);
    }
    if (now.second != 0) {
        if (from.depth == levels_max) to_.fail();
        draft top(inner);
        top.add(now.key, now.first); // whatever key: (2)
        top.add(now.key, now.second);
        now.first = top.make(to_, 0, 2);
    }
    if (to_.failed()) return 0;
    gone_.report(to_);
    ref top = now.first;
    while (shrunk && top != 0 && !is_leaf(top) && to_.fresh(top) &&
           count_of(node_of(inner, to_.base(), top)) == 1) {
        const ref only = child_at(inner, node_of(inner, to_.base(), top), 0);
        to_.replaced(top);
        top = only;
    }
    return top;
}
// [/rise]

/// (3): 'now' becomes child 'child' of this parent, at this level. Returns whether it took in a
/// neighbour: then it replaces both, and 'child' is the left one.
bool edit::merge(const form& of, const std::byte* parent, unsigned& child, unsigned level,
                 parts& now) {
    HF_ASSERT(now.first != 0 && now.second == 0 && is_leaf(now.first) == of.is_leaf);
    const unsigned count = count_of(node_of(of, to_.base(), now.first));
    if (count > of.capacity / 4) return false;
    for (const bool is_left : {false, true}) {
        const unsigned right = is_left ? child + 1 : child;
        if (right == 0 || right == count_of(parent)) continue;
        const ref beside = child_at(of_.inner, parent, is_left ? right : right - 1);
        const std::byte* a = node_of(of, to_.base(), is_left ? now.first : beside);
        const std::byte* b = node_of(of, to_.base(), is_left ? beside : now.first);
        const unsigned in_a = count_of(a), in_b = count_of(b);
        const bool alike = is_leaf(beside) == of.is_leaf && in_a != 0 && in_b != 0;
        if (!alike) to_.fail_damaged();
        if (!alike || in_a + in_b > of.capacity * 3 / 4) continue;
        draft both(of);
        both.add_from(a, 0, in_a);
        const std::byte* parting = key_place(of_.inner, parent, right);
        if (of.is_leaf) gone_.slot(of.key, parting);
        else both.add(parting, value_place(of, b, 0)); // moves down: (2)
        both.add_from(b, of.is_leaf ? 0 : 1, in_b);
        gone_.node(now.first, level);
        gone_.node(beside, level);
        now = write(of, both, false);
        child = right - 1;
        return true;
    }
    return false;
}

} // namespace

bool change(shadow& to, std::uint64_t& word, const forms& of, const way& at, unsigned erased,
            const item* added) {
    HF_ASSERT(!at.damaged && (added == nullptr || erased <= 1));
    const std::uint64_t before = size_of(word);
    if (before < erased) to.fail_damaged();
    else if (added != nullptr && before - erased == 0xffff'ffff) to.fail();
    if (to.failed()) return false;
    const ref top = edit(to, of).leaf(at, erased, added);
    if (to.failed()) return false;
    word = word_of(top, before - erased + (added != nullptr));
    return true;
}

} // namespace hf::mod::detail::ordered
