// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A directed graph with weights, in a matrix, as a persistent class.  SIMPO Table 3, §4.3.4
#pragma once

#include <holdfast/author/simpo/class_text.hpp>

#include <array>
#include <cstdint>
#include <limits>

namespace hf::simpo {

/// `N` vertices. A vertex is below N. A vertex beyond has no edges and gets none.
///
/// Call the members by a handle, hf::simpo::object. A function that returns nothing is deferred
/// (defer<&graph::join>, 0 ordering points) or called; the others are called (1 point; const ones
/// without pending calls 0).
/// Errors: none. Crash and durability: see object::defer and object::call.
template <std::size_t N>
    requires stored<double, N>
class graph {
    static constexpr class_text text = class_text("graph").number(N).end();

public:
    static constexpr class_name simpo_class{text.text(), 1};
    /// The weight of a missing edge.
    static constexpr double none = std::numeric_limits<double>::infinity();

    /// No edges. Cost: O(N * N).
    graph() noexcept {
        for (auto& row : weights_) row.fill(none);
    }
    /// One edge: join makes it or gives it another weight, the next ones take it away, look whether
    /// it is there, and read its weight. Cost: O(1).
    void join(std::uint32_t from, std::uint32_t to, double weight) noexcept {
        if (from < N && to < N) weights_[from][to] = weight;
    }
    void separate(std::uint32_t from, std::uint32_t to) noexcept { join(from, to, none); }
    bool adjacent(std::uint32_t from, std::uint32_t to) const noexcept {
        return weight(from, to) != none;
    }
    double weight(std::uint32_t from, std::uint32_t to) const noexcept {
        return from < N && to < N ? weights_[from][to] : none;
    }
    /// A step of Floyd and Warshall: between all vertices, a shorter way by `middle` replaces the
    /// edge. After a step for every vertex, weights are the lengths of the shortest ways. Cost: O(N
    /// * N).
    void shorten_by(std::uint32_t middle) noexcept { shorten_rows_by(middle, 0, N); }
    /// The same for the edges that leave vertices `first` to `end` - 1. Calls for other vertices
    /// may run beside it (defer_beside, with a barrier before the next `middle`) unless a round
    /// trip is shorter than zero. Cost: O(N) for each of them.
    void shorten_rows_by(std::uint32_t middle, std::uint32_t first, std::uint32_t end) noexcept {
        if (middle >= N) return;
        const auto& by = weights_[middle];
        for (std::uint32_t from = first; from < end && from < N; ++from) {
            auto& row = weights_[from];
            const double there = row[middle];
            for (std::size_t to = 0; to < N; ++to)
                if (there + by[to] < row[to]) row[to] = there + by[to];
        }
    }

private:
    std::array<std::array<double, N>, N> weights_;
};

} // namespace hf::simpo
