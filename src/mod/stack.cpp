// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stacks as reclamation sees them. A chunk's context: the number of elements in it and below it.
#include <holdfast/mod/stack.hpp>

namespace hf::mod::detail {
namespace {

void top(visitor& to, const std::byte*, std::uint64_t word, std::uint64_t shape) {
    const counted now = counted::of(word);
    const chunk_form form = chunk_form_of(slot_of_shape(shape), sizeof(ref));
    if (now.count > stack_count_max || (now.count == 0) != (now.node == 0))
        return visit_corrupt(to, 0);
    if (now.count != 0) to.node(now.node, form.bytes, now.count);
}

void children(visitor& to, const std::byte* node, std::size_t bytes, std::uint32_t context,
              std::uint64_t shape) {
    if (context == blob_context) return visit_blob_children(to, node, bytes);
    const slot_form each = slot_of_shape(shape);
    const chunk_form form = chunk_form_of(each, sizeof(ref));
    const std::uint32_t here = (context - 1) % form.capacity + 1;
    if (context == 0 || bytes < form.bytes) return visit_corrupt(to, 0);
    visit_slots(to, each, node + form.first, here);
    ref below;
    std::memcpy(&below, node, sizeof below);
    if ((below != 0) != (context > here)) return visit_corrupt(to, 0);
    if (below != 0) to.node(below, form.bytes, context - here);
}

} // namespace

const kind stack_kind{builtin_kind::stack, "stack", top, children};

} // namespace hf::mod::detail
