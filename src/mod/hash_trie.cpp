// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What reclamation and verification know of hash tries: the nodes of a word, and of a node. Bytes
// are not trusted: a count is compared with its node's bytes, a level with the levels that are.
#include <holdfast/mod/detail/hash_trie.hpp>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace hf::mod::detail {
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

} // namespace

const kind hash_trie_kind = {builtin_kind::hash_trie, "map", top, children, nullptr, true};

std::uint64_t hash_bytes(const void* bytes, std::size_t count) noexcept {
    return XXH3_64bits(bytes, count);
}

} // namespace hf::mod::detail
