// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Vectors as reclamation and verification see them, trees whose nodes may have any contents; and
// reading when the short way does not lead to the element.
#include <mod/rrb.hpp>

#include <holdfast/mod/vector.hpp>

#include <fmt/format.h>

namespace hf::mod::detail {
namespace {

using namespace rrb;

leaf_form leaf_of(std::uint64_t shape) noexcept {
    slot_form form = slot_of_shape(shape);
    if (form.holds_ref) form.bytes = sizeof(ref);
    return leaf_form::of(form);
}

/// Names a node; 'count' of its elements, at most as many as it has room for.
void visit_node(visitor& to, const leaf_form& leaf, ref at, std::uint64_t count, unsigned height) {
    const branch node{at, static_cast<std::uint32_t>(count)};
    const std::uint32_t context = node_context::of(node, height);
    if ((at & ref_max) == 0 || count == 0 || count > leaf.capacity(height))
        return visit_corrupt(to, context);
    if (height == 0 && node.relaxed()) return visit_corrupt(to, context);
    to.node(at & ref_max, node_bytes(leaf, node, height), context);
}

/// The number of elements of the last child, when those before it have so many. Counts are known
/// modulo count_modulus; the maximum for this height decides.
std::uint64_t last_count(const leaf_form& leaf, std::uint32_t count, std::uint64_t before,
                         unsigned child_height) {
    const auto low = static_cast<std::uint32_t>(count - before) % node_context::count_modulus;
    const std::uint64_t most = leaf.capacity(child_height);
    if (most > node_context::count_modulus) return low == 0 ? node_context::count_modulus : low;
    return low == 0 && most == node_context::count_modulus ? most : low;
}

void visit_regular(visitor& to, const leaf_form& leaf, const inner_node& node, unsigned height,
                   std::uint32_t count) {
    const std::uint64_t full = leaf.capacity(height - 1);
    unsigned n = 0;
    while (n < fan && node.child[n] != 0) ++n;
    if (n == 0) return visit_corrupt(to, node_context::of({0, count}, height));
    for (unsigned k = 0; k + 1 < n; ++k) visit_node(to, leaf, node.child[k], full, height - 1);
    visit_node(to, leaf, node.child[n - 1], last_count(leaf, count, (n - 1) * full, height - 1),
               height - 1);
}

void visit_relaxed(visitor& to, const leaf_form& leaf, const relaxed_node& node, unsigned height,
                   std::uint32_t count) {
    const bool sound = node.height >= 1 && node.height <= height_max && node.children >= 1 &&
                       node.children <= fan &&
                       (height == node.height || height == node_context::height_unknown);
    if (!sound) return visit_corrupt(to, node_context::of({relaxed_bit, count}, height));
    const unsigned below = node.height - 1U;
    std::uint32_t before = 0;
    for (unsigned k = 0; k + 1 < node.children; ++k) {
        const std::uint32_t end = node.ends[k];
        visit_node(to, leaf, node.child[k], end > before ? end - before : 0, below);
        before = end;
    }
    visit_node(to, leaf, node.child[node.children - 1], last_count(leaf, count, before, below),
               below);
}

void visit_top(visitor& to, const std::byte* base, std::uint64_t word, std::uint64_t shape) {
    if (word == 0) return;
    const leaf_form leaf = leaf_of(shape);
    const branch top = top_of(word);
    if (top.count == 0 || (top.at & ref_max) == 0) return visit_corrupt(to, 0);
    if (top.relaxed()) {
        // How many elements the last child has is known here alone.
        const auto& node = *node_at<relaxed_node>(base, top.at);
        const unsigned last = rrb::child_count(node) - 1;
        const std::uint32_t before = last == 0 ? 0 : node.ends[last - 1];
        const unsigned height = std::clamp<unsigned>(node.height, 1, height_max);
        if (top.count <= before || top.count - before > leaf.capacity(height - 1))
            return visit_corrupt(to, 0);
        to.node(top.at & ref_max, sizeof(relaxed_node),
                node_context::of(top, node_context::height_unknown));
    } else {
        visit_node(to, leaf, top.at, top.count, leaf.height_for(top.count));
    }
}

void visit_children(visitor& to, const std::byte* node, std::size_t bytes, std::uint32_t context,
                    std::uint64_t shape) {
    if (context == blob_context) return visit_blob_children(to, node, bytes);
    const leaf_form leaf = leaf_of(shape);
    const node_context of{context};
    const std::size_t least = of.relaxed()      ? sizeof(relaxed_node)
                              : of.height() > 0 ? sizeof(inner_node)
                                                : leaf.element_bytes * std::size_t{of.count()};
    if (bytes < least) return visit_corrupt(to, context);
    if (of.relaxed()) {
        visit_relaxed(to, leaf, *reinterpret_cast<const relaxed_node*>(node), of.height(),
                      of.count());
    } else if (of.height() > 0) {
        visit_regular(to, leaf, *reinterpret_cast<const inner_node*>(node), of.height(),
                      of.count());
    } else {
        visit_slots(to, {leaf.element_bytes, 1, leaf.holds_refs}, node, of.count());
    }
}

/// Parts of a vector may be shared with any count, but at one height. Leaves of strings have one
/// count: with another one they lead to other nodes, which verification finds.
bool alike(const std::byte* node, std::uint32_t a, std::uint32_t b) {
    if (a == blob_context || b == blob_context) return a == b;
    const auto height_of = [&](node_context c) -> unsigned {
        if (c.height() != node_context::height_unknown) return c.height();
        return reinterpret_cast<const relaxed_node*>(node)->height;
    };
    const node_context first{a}, second{b};
    return first.relaxed() == second.relaxed() && height_of(first) == height_of(second);
}

} // namespace

constinit const kind vector_kind = {builtin_kind::vector, "vector", visit_top, visit_children,
                                    alike};

const std::byte* rrb::element_anywhere(leaf_form form, const std::byte* base, std::uint64_t word,
                                       std::uint32_t index) noexcept {
    const branch top = top_of(word);
    HF_ASSERT_SLOW(index < top.count);
    ref at = top.at;
    unsigned bits = form.bits_below(tree{form, base}.height_of(top));
    while (bits > form.bits) {
        bits -= fan_bits;
        if ((at & relaxed_bit) == 0) {
            at = node_at<inner_node>(base, at)->child[std::uint64_t{index} >> bits & (fan - 1)];
            continue;
        }
        const auto& node = *node_at<relaxed_node>(base, at);
        index &= static_cast<std::uint32_t>((std::uint64_t{fan} << bits) - 1);
        const unsigned k = find_child(node, index, bits);
        if (k > 0) index -= node.ends[k - 1];
        at = node.child[k];
    }
    const std::size_t within_leaf = form.bytes_of(index & (form.capacity() - 1));
    const std::byte* leaf = node_at<std::byte>(base, at, within_leaf + form.element_bytes);
    return leaf + within_leaf;
}

rrb::leaf_place rrb::leaf_at(leaf_form form, const std::byte* base, std::uint64_t word,
                             std::uint32_t index) noexcept {
    const branch top = top_of(word);
    HF_ASSERT_SLOW(index < top.count);
    const tree in{form, base};
    branch at = top;
    std::uint32_t inside = index;
    for (unsigned height = in.height_of(at); height > 0; --height) {
        const ref* refs = node_at<inner_node>(base, at.at)->child;
        const unsigned k = in.step(at, height, inside);
        if (height > 1 || k + 1 == fan) continue;
        // An iterator comes to the next leaf soon.
        fetch(base, refs[k + 1]);
        fetch(base, refs[k + 1], 1);
    }
    const std::byte* elements = node_at<std::byte>(base, at.at, form.bytes_of(at.count));
    if (inside >= at.count || at.count > form.capacity()) [[unlikely]] // damaged: this one alone
        return {nowhere, index, index + 1};
    const std::uint32_t first = index - inside;
    // An edit that found no room may have left the leaf with more (5).
    return {elements, first, std::min(first + at.count, top.count)};
}

void no_such_element(std::size_t index, std::size_t size) noexcept {
    fatal("mod::vector: expected an index below %zu, found %zu", size, index);
}

status refuse_index(std::size_t index, std::size_t size) {
    return {errc::bad_argument,
            fmt::format("bad_argument: expected an index below {1}, found {0}", index, size)};
}

} // namespace hf::mod::detail
