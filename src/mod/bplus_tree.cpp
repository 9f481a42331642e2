// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The part of B+trees that reclamation and verification need: the nodes of a word, and of a node.
// They do not trust bytes: they compare a count with its node's bytes, and a level with the
// possible levels.
#include <holdfast/mod/detail/bplus_node.hpp>

namespace hf::mod::detail {
namespace {

using namespace ordered;

// [top]
void visit(visitor& to, ref child, std::uint32_t level) {
    if ((child & leaf_bit) != 0) to.node(child & ref_max, sizeof(std::uint32_t), leaf_context);
    else if (level < levels_max) to.node(child, sizeof(std::uint32_t), level);
    else visit_corrupt(to, level);
}

void top(visitor& to, const std::byte*, std::uint64_t word, std::uint64_t) {
    if ((top_of(word) == 0) != (size_of(word) == 0)) return visit_corrupt(to, 0);
    if (top_of(word) != 0) visit(to, top_of(word), 0);
}
// [/top]

// [children]
void children(visitor& to, const std::byte* node, std::size_t bytes, std::uint32_t context,
              std::uint64_t shape) {
    if (context == blob_context) return visit_blob_children(to, node, bytes);
    const slot_form key = slot_of_shape(shape);
    const slot_form value = slot_of_shape(shape >> slot_shape_bits);
    const form of = context == leaf_context ? leaf_form(key, value) : inner_form(key);
    const std::uint32_t count = count_of(node);
    if (count == 0 || count > of.capacity || of.bytes(count) > bytes)
        return visit_corrupt(to, context);
    const std::byte* const keys = node + of.keys();
    const std::byte* const values = node + of.values(count);
    if (of.is_leaf) {
        to.elements(count);
        visit_slots(to, key, keys, count);
        visit_slots(to, value, values, count);
        return;
    }
    visit_slots(to, key, keys + key.bytes, count - 1); // key 0 is not read
    for (std::uint32_t i = 0; i < count; ++i) {
        ref child;
        std::memcpy(&child, values + i * sizeof child, sizeof child);
        visit(to, child, context + 1);
    }
}
// [/children]

} // namespace

// [kind]
const kind bplus_tree_kind = {
    builtin_kind::ordered_map, "ordered_map", top, children, nullptr, true};
// [/kind]

} // namespace hf::mod::detail
