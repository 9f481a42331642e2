// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The part of hash tries that reclamation and verification need: the nodes of a word, and of a
// node. They do not trust bytes: they compare a count with its node's bytes, and a level with the
// possible levels.
#include <base/assert.hpp>

#include <holdfast/author/mod/key.hpp>
#include <holdfast/mod/detail/trie_node.hpp>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace hf::mod::detail {

void trie_way::open(shadow& to) {
    HF_ASSERT_SLOW(!damaged_ && depth_ <= trie_levels);
    opened_ = 0;
    while (opened_ < depth_ && to.fresh(inner_[opened_])) ++opened_; // their parents are fresh, too
    for (unsigned level = opened_; level < depth_; ++level) {
        const ref old = inner_[level];
        const ref copy = to.make(sizeof(inner));
        if (copy == 0) return;
        std::memmove(to.at<inner>(copy), to.at<inner>(old), sizeof(inner));
        to.replaced(old, level);
        if (level > opened_) to.at<inner>(inner_[level - 1])->child[digit(level - 1)] = copy;
        inner_[level] = copy;
    }
}

ref trie_way::link(shadow& to, ref below) noexcept {
    if (depth_ == 0) return below;
    HF_ASSERT_SLOW(opened_ <= depth_);
    HF_ASSERT_SLOW(to.fresh(inner_[depth_ - 1]));
    to.at<inner>(inner_[depth_ - 1])->child[digit(depth_ - 1)] = below;
    if (opened_ > 0 && opened_ < depth_)
        to.at<inner>(inner_[opened_ - 1])->child[digit(opened_ - 1)] = inner_[opened_];
    return inner_[0];
}

namespace {

void visit(visitor& to, ref child, std::uint32_t level) {
    if (child == 0) return;
    if ((child & leaf_bit) != 0)
        to.node(child & ref_max, sizeof(std::uint64_t), leaf_context | level);
    else if (level < trie_levels) to.node(child, sizeof(inner), level);
    else visit_corrupt(to, level);
}

void top(visitor& to, const std::byte*, std::uint64_t word, std::uint64_t) {
    if ((top_of(word) == 0) != (count_of(word) == 0)) return visit_corrupt(to, 0);
    visit(to, top_of(word), 0);
}

void visit_leaf(visitor& to, const std::byte* node, std::size_t bytes, std::uint32_t context,
                std::uint64_t shape) {
    const auto layout = trie_shape::layout_of(shape);
    const auto head = leaf_head::of(node);
    const std::uint32_t count = head.count();
    const bool sound = head.is_wide()
                           ? (context & ~leaf_context) == trie_levels && count > layout.capacity()
                           : count >= 1 && count <= layout.capacity();
    if (!sound || layout.bytes(count) > bytes) return visit_corrupt(to, context);
    to.elements(count);
    visit_slots(to, layout.key, node + layout.keys(), count);
    visit_slots(to, layout.value, node + layout.values(count), count);
}

void children(visitor& to, const std::byte* node, std::size_t bytes, std::uint32_t context,
              std::uint64_t shape) {
    if (context == blob_context) return visit_blob_children(to, node, bytes);
    if ((context & leaf_context) != 0) return visit_leaf(to, node, bytes, context, shape);
    inner at;
    if (bytes < sizeof at) return visit_corrupt(to, context);
    std::memcpy(&at, node, sizeof at);
    if (std::ranges::all_of(at.child, [](ref child) { return child == 0; }))
        return visit_corrupt(to, context);
    for (const ref child : at.child) visit(to, child, context + 1);
}

/// A trie whose hash is the library's own: entries against the way that leads to them. Ends at the
/// first that is elsewhere, and so visits no leaf by two ways.
class placing {
public:
    placing(const std::byte* base, std::uint64_t shape)
        : base_(base), layout_(trie_shape::layout_of(shape)) {}

    /// 'way': the digits on the way to the node, at 'level'.
    bool below(ref at, unsigned level, std::uint64_t way) const {
        if (at == 0) return true;
        const auto* node = node_at<std::byte>(base_, at & ref_max);
        if ((at & leaf_bit) != 0) return leaf(node, level, way);
        inner children;
        std::memcpy(&children, node, sizeof children);
        for (std::uint64_t digit = 0; digit < 16; ++digit)
            if (!below(children.child[digit], level + 1, way | digit << (4 * level))) return false;
        return true;
    }

private:
    bool leaf(const std::byte* node, unsigned level, std::uint64_t way) const {
        const auto head = leaf_head::of(node);
        const std::uint64_t known =
            level < trie_levels ? (std::uint64_t{1} << 4 * level) - 1 : ~std::uint64_t{0};
        for (std::uint32_t i = 0; i < head.count(); ++i) {
            const std::uint64_t hash =
                hash_at(node + layout_.keys() + std::size_t{i} * layout_.key.bytes);
            if ((hash & known) != way) return false;
            if (!head.is_wide() && head.tag(i) != tag_of(hash)) return false;
        }
        return true;
    }
    std::uint64_t hash_at(const std::byte* slot) const {
        if (layout_.key.holds_ref) {
            ref blob;
            std::memcpy(&blob, slot, sizeof blob);
            return hash<std::string>{}(blob_key(base_, blob));
        }
        std::uint64_t bits = 0;
        if (layout_.key.bytes > sizeof bits) bits = hash_bytes(slot, layout_.key.bytes);
        else std::memcpy(&bits, slot, layout_.key.bytes);
        return mixed(bits);
    }
    const std::byte* base_;
    leaf_layout layout_;
};

bool well_placed(const std::byte* base, std::uint64_t word, std::uint64_t shape) {
    const bool own_hash = shape >> 48 != hash<std::string>::identity;
    if (own_hash || trie_shape::layout_of(shape).key.bytes == 0) return true;
    return placing(base, shape).below(top_of(word), 0, 0);
}

} // namespace

const kind hash_trie_kind = {
    builtin_kind::hash_trie, "map", top, children, nullptr, true, well_placed};
const kind cache_kind = {builtin_kind::cache, "cache", top, children, nullptr, true, well_placed};

std::uint64_t hash_bytes(const void* bytes, std::size_t count) noexcept {
    return XXH3_64bits(bytes, count);
}

} // namespace hf::mod::detail
