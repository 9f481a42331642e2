// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rewrites the refs of a node whose children have moved, by the visits of its kind: (3) of
// compaction.hpp.
#pragma once

#include <holdfast/author/mod/store.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hf::mod {

/// One call of a visitor.
struct visit {
    ref node; // without bit 31
    std::size_t bytes;
    std::uint32_t context;
    bool operator==(const visit&) const = default;
};

/// The refs that a kind names, in order.
class visits final : public visitor {
public:
    std::vector<visit> all;
    void node(ref at, std::size_t bytes, std::uint32_t context) override {
        all.push_back({at & ref_max, bytes, context});
    }
};

/// A node as its kind sees it.
struct node_form {
    const kind* what;
    std::uint32_t context;
    std::uint64_t shape;
    std::vector<visit> visits_of(std::span<const std::byte> node) const {
        visits out;
        what->children(out, node.data(), node.size(), context, shape);
        return std::move(out.all);
    }
};

/// The places of a node's refs, as indices of its words of 4 bytes. Some are missing if the kind
/// names what no word contains. 'named': what the node visits, at least one.
std::vector<std::size_t> find_refs(const node_form& form, std::span<const std::byte> node,
                                   std::span<const visit> named);

/// A word of 4 bytes of a node.
ref word_at(std::span<const std::byte> node, std::size_t index) noexcept;
void set_word(std::span<std::byte> node, std::size_t index, ref to) noexcept;

} // namespace hf::mod
