// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ruppert's refinement, as failure-atomic sections of plain code: lay_out(), place_one() and
// refine_one(). The including file's build chooses the engine.
//
// A point that enters the mesh makes a cavity: the elements whose circles it lies in. They go, and
// the point is joined to the cavity's rim (Bowyer, Watson). The predicates are exact, so the rim is
// seen from the point as a whole, and no new element is flat.
#pragma once

#include <holdfast/alloc.hpp>
#include <holdfast/txfunc.hpp>

#include <yada/refinement.hpp>

namespace hf::apps::yada::HF_APPLICATION_BUILD {

// A side of a cavity, which lies on its left.
struct rim_side {
    element* inside;
    element* outside; // null: border
    segment* border;
    point from, to;
};

struct cavity {
    static constexpr unsigned most = 64; // elements; a dozen are usual
    element* gone[most];
    rim_side rim[most + 2];
    unsigned gone_count, rim_count;
};

inline bool contains(const cavity& hole, const element* one) noexcept {
    for (unsigned i = 0; i < hole.gone_count; ++i)
        if (hole.gone[i] == one) return true;
    return false;
}

inline bool circle_holds(const element* one, point p) noexcept {
    return circle(one->corner[0], one->corner[1], one->corner[2], p) > 0;
}

/// Finds the elements around 'start' whose circles p lies in, and their rim without the segment
/// 'split'. False: too many.
inline bool find_cavity(cavity& hole, element* start, point p, const segment* split) noexcept {
    hole.gone[0] = start;
    hole.gone_count = 1;
    hole.rim_count = 0;
    for (unsigned at = 0; at < hole.gone_count; ++at) {
        element* one = hole.gone[at];
        for (unsigned i = 0; i < 3; ++i) {
            element* other = one->across[i];
            if (other != nullptr && contains(hole, other)) continue;
            if (other != nullptr && circle_holds(other, p)) {
                if (hole.gone_count == cavity::most) return false;
                hole.gone[hole.gone_count++] = other;
                continue;
            }
            if (other == nullptr && one->border[i] == split) continue;
            hole.rim[hole.rim_count++] = {one, other, one->border[i], corner_after(one, i),
                                          corner_before(one, i)};
        }
    }
    return true;
}

/// A segment of the rim that p encroaches upon or lies behind, or null.
inline const rim_side* encroached(const cavity& hole, point p) noexcept {
    for (unsigned i = 0; i < hole.rim_count; ++i) {
        const rim_side& side = hole.rim[i];
        if (side.outside == nullptr &&
            (sees_obtusely(p, side.from, side.to) || turn(side.from, side.to, p) <= 0))
            return &side;
    }
    return nullptr;
}

inline void lead_back(element* outside, const element* from, element* to) noexcept {
    for (unsigned i = 0; i < 3; ++i)
        if (outside->across[i] == from) outside->across[i] = to;
}

/// Joins the new elements to each other, by the sides that end in the new point.
inline void join(const cavity& hole, element* const* fresh) noexcept {
    for (unsigned i = 0; i < hole.rim_count; ++i)
        for (unsigned j = 0; j < hole.rim_count; ++j)
            if (hole.rim[i].to == hole.rim[j].from) {
                fresh[i]->across[1] = fresh[j];
                fresh[j]->across[2] = fresh[i];
            }
}

/// Gives the halves of a split segment to the new elements at its ends.
inline void join_halves(const cavity& hole, element* const* fresh, segment* split, segment* half,
                        point p) noexcept {
    for (unsigned i = 0; i < hole.rim_count; ++i) {
        if (hole.rim[i].from == split->to) fresh[i]->border[2] = half;
        if (hole.rim[i].to == split->from) fresh[i]->border[1] = split;
    }
    split->to = p;
    split->next = half;
}

/// Blocks for all that fill() adds; without room for one, none.
inline bool make_all(const cavity& hole, element** fresh, const segment* split, segment*& half,
                     point p) noexcept {
    bool made = true;
    for (unsigned i = 0; i < hole.rim_count; ++i) {
        const rim_side& side = hole.rim[i];
        fresh[i] = hf::make<element>(element{{p, side.from, side.to},
                                             {side.outside, nullptr, nullptr},
                                             {side.border, nullptr, nullptr},
                                             nullptr,
                                             nullptr,
                                             -1});
        made = made && fresh[i] != nullptr;
    }
    half = nullptr;
    if (split != nullptr) {
        half = hf::make<segment>(segment{p, split->to, split->next});
        made = made && half != nullptr;
    }
    if (made) return true;
    for (unsigned i = 0; i < hole.rim_count; ++i) hf::destroy(fresh[i]);
    hf::destroy(half);
    return false;
}

/// Replaces the cavity's elements by those that join p to its rim. False: the pool is full, and
/// nothing has changed.
inline bool fill(mesh* in, const cavity& hole, point p, segment* split) noexcept {
    element* fresh[cavity::most + 2];
    segment* half;
    if (!make_all(hole, fresh, split, half, p)) return false;
    for (unsigned i = 0; i < hole.rim_count; ++i)
        if (hole.rim[i].outside != nullptr)
            lead_back(hole.rim[i].outside, hole.rim[i].inside, fresh[i]);
    join(hole, fresh);
    if (split != nullptr) {
        join_halves(hole, fresh, split, half, p);
        ++in->segments;
    }
    hf::crash_point("joined");
    for (unsigned i = 0; i < hole.gone_count; ++i) {
        if (hole.gone[i]->place >= 0) in->queue.remove(hole.gone[i]);
        hf::destroy(hole.gone[i]);
    }
    for (unsigned i = 0; i < hole.rim_count; ++i) {
        const std::int64_t place = place_for(*fresh[i], in->limit);
        if (place >= 0) in->queue.add(fresh[i], place);
    }
    in->elements += hole.rim_count - hole.gone_count;
    in->any = fresh[0];
    return true;
}

/// The element that p lies in, by walking towards it. Ends: the mesh is Delaunay.
inline element* locate(element* from, point p) noexcept {
    for (;;) {
        element* nearer = nullptr;
        for (unsigned i = 0; i < 3 && nearer == nullptr; ++i)
            if (turn(corner_after(from, i), corner_before(from, i), p) < 0)
                nearer = from->across[i];
        if (nearer == nullptr) return from;
        from = nearer;
    }
}

HF_TXFUNC inline bool lay_out(mesh* in, double limit) noexcept {
    constexpr point sw{0, 0}, se{grid_side, 0}, ne{grid_side, grid_side}, nw{0, grid_side};
    segment* west = hf::make<segment>(segment{nw, sw, nullptr});
    segment* north = hf::make<segment>(segment{ne, nw, west});
    segment* east = hf::make<segment>(segment{se, ne, north});
    segment* south = hf::make<segment>(segment{sw, se, east});
    element* low =
        hf::make<element>(element{{sw, se, ne}, {}, {east, nullptr, south}, nullptr, nullptr, -1});
    element* high = hf::make<element>(element{
        {ne, nw, sw}, {nullptr, low, nullptr}, {west, nullptr, north}, nullptr, nullptr, -1});
    if (west == nullptr || north == nullptr || east == nullptr || south == nullptr ||
        low == nullptr || high == nullptr)
        return false; // a pool that has no room for these is of no use
    west->next = south;
    low->across[1] = high;
    in->any = low;
    in->border = south;
    in->limit = limit;
    in->elements = 2;
    in->segments = 4;
    return true;
}

HF_TXFUNC inline outcome place_one(mesh* in, point p) noexcept {
    cavity hole;
    element* around = locate(in->any, p);
    outcome how = outcome::left; // a corner lies there already
    if (circle_holds(around, p)) {
        if (!find_cavity(hole, around, p, nullptr)) return outcome::left;
        if (!fill(in, hole, p, nullptr)) return outcome::pool_full;
        how = outcome::refined;
    }
    ++in->placed;
    return how;
}

/// Inserts the middle of the segment.
inline outcome split(mesh* in, cavity& hole, element* inside, segment* one) noexcept {
    const point middle = middle_of(one->from, one->to);
    if (middle == one->from || middle == one->to || !find_cavity(hole, inside, middle, one))
        return outcome::left;
    return fill(in, hole, middle, one) ? outcome::refined : outcome::pool_full;
}

inline outcome refine_element(mesh* in, cavity& hole, element* bad) noexcept {
    for (unsigned i = 0; i < 3; ++i)
        if (bad->border[i] != nullptr &&
            sees_obtusely(bad->corner[i], corner_after(bad, i), corner_before(bad, i)))
            return split(in, hole, bad, bad->border[i]);
    const point centre = centre_of(bad->corner);
    if (!circle_holds(bad, centre) || !find_cavity(hole, bad, centre, nullptr))
        return outcome::left;
    if (const rim_side* side = encroached(hole, centre))
        return split(in, hole, side->inside, side->border);
    return fill(in, hole, centre, nullptr) ? outcome::refined : outcome::pool_full;
}

HF_TXFUNC inline outcome refine_one(mesh* in) noexcept {
    element* bad = in->queue.worst();
    if (bad == nullptr) return outcome::done;
    cavity hole;
    const outcome how = refine_element(in, hole, bad);
    if (how == outcome::pool_full) return how;
    if (how == outcome::left) {
        in->queue.remove(bad);
        ++in->left;
    }
    ++in->processed;
    return how;
}

} // namespace hf::apps::yada::HF_APPLICATION_BUILD
