// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "graph.hpp"

#include "../peer/random.hpp"

#include <numeric>
#include <utility>

namespace hf::apps::bfs {
namespace {

// N u³ for a u that is uniform in [0, 1): the distribution's inverse.
node drawn(random_words& random, node nodes) {
    const std::uint64_t u = random.word();
    return static_cast<node>(high_product(high_product(high_product(u, u), u), nodes));
}

std::vector<node> shuffled(random_words& random, node nodes) {
    std::vector<node> order(nodes);
    std::iota(order.begin(), order.end(), node{0});
    for (node i = nodes; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    return order;
}

} // namespace

graph::graph(const graph_description& wanted)
    : description_(wanted), first_(wanted.nodes + 1), targets_(wanted.edges) {
    random_words random(wanted.seed);
    const std::vector<node> of_rank = shuffled(random, wanted.nodes);
    std::vector<std::pair<node, node>> edges(wanted.edges);
    for (auto& [from, to] : edges) {
        from = of_rank[drawn(random, wanted.nodes)];
        to = of_rank[drawn(random, wanted.nodes)];
        ++first_[from + 1];
    }
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
    for (const auto& [from, to] : edges) targets_[next[from]++] = to;
    source_ = of_rank[0];
}

} // namespace hf::apps::bfs
