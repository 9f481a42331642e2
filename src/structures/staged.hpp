// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nodes made before their section: filled where they will stay, past the caches, and adopted by the
// section that links them. The section's log then names the node instead of repeating its value.
#pragma once

#include <structures/namespace.hpp>

#include <holdfast/abi/relocate_abi.h>
#include <holdfast/alloc.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace hf::structures {
inline namespace HF_STRUCTURES_ENGINE {

/// In code built relocatable: whether 'address' lies in a relocated pool. Elsewhere no pool is.
inline bool in_relocated_pool([[maybe_unused]] const void* address) noexcept {
#if defined(HF_RELOCATABLE)
    return reinterpret_cast<std::uintptr_t>(address) >> HF_RELOCATED_SHIFT == HF_RELOCATED_BITS;
#else
    return false;
#endif
}

/// Fills a staged block with a Node made by fill(Node&): durable before a section that begins
/// afterwards stores anything in place.
///
/// Ordering: 0 points.
template <class Node, class Fill> void fill_staged(Node* staged, Fill fill) noexcept {
    static_assert(std::is_trivially_copyable_v<Node> && alignof(Node) <= 16);
    static_assert(sizeof(Node) % 8 == 0, "staged as whole words");
    if (in_relocated_pool(staged)) { // only in place do pointers get the form they have there
        std::memset(static_cast<void*>(staged), 0, sizeof(Node));
        fill(*staged);
        hf::stage_written(staged, sizeof(Node));
        return;
    }
    // Made aside, since it goes to memory in one pass; zeroed, so that padding tells nothing.
    alignas(Node) std::byte image[sizeof(Node)];
    std::memset(image, 0, sizeof image);
    fill(*reinterpret_cast<Node*>(image));
    hf::stage_words(staged, image, sizeof image);
}

/// A staged Node in the pool around 'near', filled like that; hf::adopt it in the section, or
/// hf::unstage it.
///
/// Ordering: 0 points.
/// Errors:   null when the pool is full.
template <class Node, class Fill> Node* stage_node(const void* near, Fill fill) noexcept {
    auto* staged = static_cast<Node*>(hf::stage_near(near, sizeof(Node)));
    if (staged != nullptr) fill_staged(staged, fill);
    return staged;
}

} // namespace HF_STRUCTURES_ENGINE
} // namespace hf::structures
