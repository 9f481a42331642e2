// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Points of a grid, and what refinement asks of them. Coordinates are whole numbers in
// [0, grid_side], so turn() and circle() are exact: no product here exceeds 128 bits.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>

namespace hf::apps::yada {

constexpr std::int32_t grid_side = 1 << 30;

struct point {
    std::int32_t x, y;

    friend bool operator==(const point&, const point&) = default;
    friend auto operator<=>(const point&, const point&) = default;
};

struct vector {
    std::int64_t x, y;
};
inline vector operator-(point to, point from) noexcept {
    return {std::int64_t{to.x} - from.x, std::int64_t{to.y} - from.y};
}
inline std::int64_t cross(vector a, vector b) noexcept { return a.x * b.y - a.y * b.x; }
inline std::int64_t dot(vector a, vector b) noexcept { return a.x * b.x + a.y * b.y; }
inline std::int64_t squared(vector a) noexcept { return dot(a, a); }

/// Twice the area of a, b, c: positive where they turn left, 0 where they lie on a line.
inline std::int64_t turn(point a, point b, point c) noexcept { return cross(b - a, c - a); }

/// Positive if p lies inside the circle through a, b and c, 0 if on it.
///
/// Requires: turn(a, b, c) > 0.
inline int circle(point a, point b, point c, point p) noexcept {
    __extension__ using wide = __int128;
    const vector pa = a - p, pb = b - p, pc = c - p;
    const wide sum = static_cast<wide>(squared(pa)) * cross(pb, pc) +
                     static_cast<wide>(squared(pb)) * cross(pc, pa) +
                     static_cast<wide>(squared(pc)) * cross(pa, pb);
    return sum > 0 ? 1 : sum < 0 ? -1 : 0;
}

/// Whether p lies inside the circle that has from-to as its diameter.
inline bool sees_obtusely(point p, point from, point to) noexcept {
    return dot(from - p, to - p) < 0;
}

/// The tangent of a triangle's smallest angle.
inline double smallest_tangent(const point (&corner)[3]) noexcept {
    std::int64_t shortest = INT64_MAX;
    unsigned sharpest = 0;
    for (unsigned i = 0; i < 3; ++i) {
        const std::int64_t opposite = squared(corner[(i + 2) % 3] - corner[(i + 1) % 3]);
        if (opposite >= shortest) continue;
        shortest = opposite;
        sharpest = i;
    }
    const vector one = corner[(sharpest + 1) % 3] - corner[sharpest];
    const vector other = corner[(sharpest + 2) % 3] - corner[sharpest];
    return static_cast<double>(cross(one, other)) / static_cast<double>(dot(one, other));
}

/// The point of the grid next to the centre of the circle through the corners. One outside of the
/// grid is moved to its edge.
inline point centre_of(const point (&corner)[3]) noexcept {
    const vector b = corner[1] - corner[0], c = corner[2] - corner[0];
    const double twice = 2.0 * static_cast<double>(cross(b, c));
    const double bb = static_cast<double>(squared(b)), cc = static_cast<double>(squared(c));
    const double x =
        corner[0].x + (static_cast<double>(c.y) * bb - static_cast<double>(b.y) * cc) / twice;
    const double y =
        corner[0].y + (static_cast<double>(b.x) * cc - static_cast<double>(c.x) * bb) / twice;
    const auto rounded = [](double of) {
        return static_cast<std::int32_t>(std::min(std::max(of, 0.0), double{grid_side}) + 0.5);
    };
    return {rounded(x), rounded(y)};
}

inline point middle_of(point a, point b) noexcept {
    return {static_cast<std::int32_t>((std::int64_t{a.x} + b.x) / 2),
            static_cast<std::int32_t>((std::int64_t{a.y} + b.y) / 2)};
}

} // namespace hf::apps::yada
