// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A mesh as it lies in the pool: triangles that know their neighbours, the segments of the border,
// and a queue of the bad triangles. sections.hpp changes it; check.cpp says whether it is whole.
//
// (1) The triangles fill a square whose sides lie along the axes. Their corners turn left.
// (2) Across each side of a triangle lies another one, whose side leads back, or a border segment.
// (3) No corner lies inside the circle through another triangle's corners (Delaunay).
// (4) The segments, by 'next', go once round the square. The mesh lies on their left.
// (5) A triangle is in the queue if and only if it is bad: it encroaches upon a segment of its own,
//     or its smallest angle is below the limit. 'place' names its list.
//
// Source: Ruppert 1995; STAMP's yada (Cao Minh et al., IISWC'08), from their descriptions;
// Clobber §5.8.
#pragma once

#include "geometry.hpp"

#include <holdfast/lock.hpp>

#include <bit>
#include <cstdint>

namespace hf::apps::yada {

struct segment {
    point from, to;
    segment* next;
};

struct element {
    point corner[3];
    element* across[3]; // the side opposite corner i; null: border[i]
    segment* border[3];
    element* before; // in its list of the queue
    element* after;
    std::int64_t place; // its list, or -1
};
static_assert(sizeof(element) == 96);

inline point corner_after(const element* of, unsigned i) noexcept {
    return of->corner[(i + 1) % 3];
}
inline point corner_before(const element* of, unsigned i) noexcept {
    return of->corner[(i + 2) % 3];
}

/// Lists of bad elements, the most urgent first: those that encroach upon a segment, then by angle.
struct work_queue {
    static constexpr unsigned lists = 64;
    element* first[lists];
    std::uint64_t filled; // bit i: list i has an element

    element* worst() const noexcept {
        return filled == 0 ? nullptr : first[std::countr_zero(filled)];
    }
    void add(element* bad, std::int64_t place) noexcept {
        element* second = first[place];
        bad->place = place;
        bad->before = nullptr;
        bad->after = second;
        if (second != nullptr) second->before = bad;
        first[place] = bad;
        filled |= std::uint64_t{1} << place;
    }
    void remove(element* bad) noexcept {
        if (bad->after != nullptr) bad->after->before = bad->before;
        if (bad->before != nullptr) {
            bad->before->after = bad->after;
        } else {
            first[bad->place] = bad->after;
            if (bad->after == nullptr) filled &= ~(std::uint64_t{1} << bad->place);
        }
        bad->place = -1;
    }
};

/// The pool's root.
struct mesh {
    element* any; // one of the elements
    segment* border;
    double limit; // tangent of the smallest angle that is allowed
    std::uint64_t elements, segments;
    std::uint64_t placed;    // of the input's points
    std::uint64_t processed; // bad elements that were taken from the queue's head
    std::uint64_t left;      // of them those that cannot be refined on this grid
    work_queue queue;

    std::byte apart[64]; // the lock's line is never flushed
    hf::mutex lock;
};

/// The queue's list for an element, or -1 if it is not bad. (5)
inline std::int64_t place_for(const element& of, double limit) noexcept {
    for (unsigned i = 0; i < 3; ++i)
        if (of.border[i] != nullptr &&
            sees_obtusely(of.corner[i], corner_after(&of, i), corner_before(&of, i)))
            return 0;
    const double tangent = smallest_tangent(of.corner);
    if (tangent >= limit) return -1;
    return 1 + static_cast<std::int64_t>(tangent / limit * (work_queue::lists - 1));
}

} // namespace hf::apps::yada
