// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A breadth-first search that can be killed at any instant and goes on where it was: its state lies
// in a durable queue and a durable array of levels. Source: MOD §6.1, bfs.
//
// The graph is input; nothing of it is stored. A node's level is its distance from the source plus
// one, 0 as long as it has not been reached. To expand the queue's first node u is: for each edge
// to a v without a level, note v's level (that of u, plus one), then push v; at last pop u. Every
// push and every pop is one failure-atomic section. A crash may leave this:
//
// (1) A node that the durable queue holds, or held, has its level: the level is flushed before the
//     section that pushes the node, and the section's fence comes before the queue's new word. The
//     level is stored in place and without a log: the store is idempotent, because a node is
//     reached on one level only.
// (2) A node with a level that the durable queue never held was reached by one of the queue's first
//     two nodes. The last section that ended may be lost (durability::by_next_section): then the
//     first is the node it popped, and the second the one that was being expanded. No fence has
//     ended since, so no third node was expanded. Otherwise the first was being expanded.
// (3) So a search that continues expands the first two with care. A node v with the level that u
//     would give it, and which the queue does not hold, is pushed as if it had no level. v cannot
//     have been popped: nodes of u's own level or a lower one stand before it. Then every reached
//     node is pushed once and the levels are those of a search that was never killed.
#pragma once

#include "graph.hpp"

#include <holdfast/result.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hf::apps::bfs {

using level = std::uint32_t;

/// The state of a search, kept by an engine.
class search_state {
public:
    virtual ~search_state() = default;

    /// Whether the source has been pushed: an empty queue then means that the search is over.
    virtual bool begun() const noexcept = 0;
    /// Durable after the sections before it, and before the next one.
    virtual status set_begun() = 0;

    /// The level is durable before the section of the next push.
    virtual void note_level(node reached, level its) noexcept = 0;
    virtual status push(node last) = 0;
    virtual status pop() = 0;
    /// False when the queue is empty.
    virtual bool front(node& first) const noexcept = 0;
    virtual void for_each_queued(const std::function<void(node)>& visit) const = 0;

    std::span<const level> levels() const noexcept { return levels_; }

protected:
    std::span<level> levels_; // one for each node
};

struct search_result {
    std::uint64_t pushed = 0; // in this run
    std::uint64_t popped = 0;
    std::uint32_t reached = 0;  // in all runs
    level depth = 0;            // of the farthest node
    std::uint64_t checksum = 0; // of all levels
};

/// Called after every store and section, with their number so far: for tests, which die there.
using step_observer = void (*)(std::uint64_t step);

/// Begins the search, or continues it, to the end.
///
/// Ordering: those of a section for each push and pop.
/// Errors:   pool_full; another call goes on from there when there is room.
result<search_result> search(const graph& in, search_state& state,
                             step_observer observer = nullptr);

struct state_options {
    std::string engine = "mod"; // mod, pmdk, volatile
    std::string path;           // the pool's file; made when missing
    bool power = false;         // survive power failures (mode pmem), not just a killed process
    bool prefault = false;      // touch the file's pages first
};

/// Opens the state of a search through a graph of this description.
///
/// Errors: those of opening a pool; wrong_layout when the file holds the search of another graph;
///         bad_argument for an unknown engine.
result<std::unique_ptr<search_state>> open_state(const state_options& options,
                                                 const graph_description& searched);

// One file each.
result<std::unique_ptr<search_state>> open_mod(const state_options&, const graph_description&);
result<std::unique_ptr<search_state>> open_pmdk(const state_options&, const graph_description&);
result<std::unique_ptr<search_state>> open_volatile(const state_options&, const graph_description&);

} // namespace hf::apps::bfs
