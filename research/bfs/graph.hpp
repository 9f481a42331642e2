// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A directed graph like Flickr's, made from a seed: the input of the search, in volatile memory.
// The same description gives the same graph on every machine, for it is made with integers only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hf::apps::bfs {

using node = std::uint32_t;

/// By default as many nodes and edges as the crawl that the paper searched. Source: MOD §6.1.
struct graph_description {
    node nodes = 820'878;
    std::uint32_t edges = 9'837'214;
    std::uint64_t seed = 1;

    bool operator==(const graph_description&) const = default;
};

/// Compressed rows: the edges of node n are targets[first[n]] to targets[first[n + 1] - 1].
class graph {
public:
    /// Both ends of an edge are drawn alike: the node of rank r with a probability that falls as
    /// r^(-2/3), so that degrees follow a power law with exponent 5/2. Ranks are then shuffled.
    ///
    /// Cost: O(nodes + edges) time, 16 bytes for each edge while it is made.
    explicit graph(const graph_description& wanted);

    const graph_description& description() const noexcept { return description_; }
    std::span<const node> from(node n) const noexcept {
        return {targets_.data() + first_[n], first_[n + 1] - first_[n]};
    }
    /// The start of a search: the node of rank 0, which has most edges.
    node source() const noexcept { return source_; }

private:
    graph_description description_;
    std::vector<std::uint32_t> first_;
    std::vector<node> targets_;
    node source_ = 0;
};

} // namespace hf::apps::bfs
