// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Refining a mesh in a pool: one failure-atomic section for each point that is inserted. The same
// source is built for each engine (sections.hpp).
#pragma once

#include "mesh.hpp"

#include <holdfast/pool.hpp>
#include <holdfast/result.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hf::apps::yada {

struct mesh_options {
    std::string path; // the pool's file; made when missing
    hf::mode mode = hf::mode::process;
    bool prefault = false;
    double degrees = 15; // the smallest angle that is allowed
    std::uint64_t points = 9998;
};

enum class outcome : std::uint32_t { done, refined, left, pool_full };

class refinement {
public:
    virtual ~refinement() = default;

    virtual const mesh& seen() const = 0;
    /// Inserts point number seen().placed of the input, and repairs the triangulation around it.
    virtual outcome place(point next) = 0;
    /// Refines the worst element. 'done': there is no bad one.
    virtual outcome refine() = 0;
};

/// Opens the pool and lays out a square of two elements, unless that has been done.
///
/// Errors:   those of opening a pool; bad_argument for an unknown engine, or if the pool's mesh has
///           another limit.
result<std::unique_ptr<refinement>> open_mesh(std::string_view engine, const mesh_options& options);

/// The input's point: the same on every machine.
point input_point(std::uint64_t seed, std::uint64_t number) noexcept;

/// What a mesh holds, from its links alone.
struct mesh_report {
    std::uint64_t elements = 0, segments = 0, points = 0;
    std::uint64_t bad = 0, sharp = 0; // in the queue; of them those with an angle below the limit
    double smallest_degrees = 180;
    std::uint64_t digest = 0; // of the elements, whatever their order
    std::string wrong;        // the first invariant that does not hold; empty when all do
};
mesh_report look(const mesh& at);

/// The elements that links lead to.
std::vector<const element*> elements_of(const mesh& at);

/// Writes corners, one element a line: "x y x y x y".
bool write_elements(const mesh& at, const std::string& path);

} // namespace hf::apps::yada
