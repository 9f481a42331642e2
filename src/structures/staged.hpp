// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nodes made before their section: filled where they will stay, past the caches, and adopted by the
// section that links them. The section's log then names the node instead of repeating its value.
#pragma once

#include <structures/namespace.hpp>

#include <holdfast/alloc.hpp>

#include <cstddef>
#include <cstring>
#include <type_traits>

namespace hf::structures {
inline namespace HF_STRUCTURES_ENGINE {

/// A staged Node in the pool around 'near', filled in by fill(Node&): durable before a section that
/// begins afterwards stores anything in place; hf::adopt it there, or hf::unstage it.
///
/// Ordering: 0 points.
/// Errors:   null when the pool is full.
template <class Node, class Fill> Node* stage_node(const void* near, Fill fill) noexcept {
    static_assert(std::is_trivially_copyable_v<Node> && alignof(Node) <= 16);
    static_assert(sizeof(Node) % 8 == 0, "staged as whole words");
    auto* staged = static_cast<Node*>(hf::stage_near(near, sizeof(Node)));
    if (staged == nullptr) return nullptr;
    // Made aside, since it goes to memory in one pass; zeroed, so that padding tells nothing.
    alignas(Node) std::byte image[sizeof(Node)];
    std::memset(image, 0, sizeof image);
    fill(*reinterpret_cast<Node*>(image));
    hf::stage_words(staged, image, sizeof image);
    return staged;
}

} // namespace HF_STRUCTURES_ENGINE
} // namespace hf::structures
