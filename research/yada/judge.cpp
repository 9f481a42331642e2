// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// usage: yada_judge ELEMENTS DEGREES: CGAL's opinion of a mesh that holdfast-yada has written
// (--elements). It makes the Delaunay triangulation of the corners anew, with exact predicates, and
// compares: as many elements, each of them Delaunay, the square's area, no angle below the limit.
#include <CGAL/Delaunay_triangulation_2.h>
#include <CGAL/Exact_predicates_inexact_constructions_kernel.h>
#include <CGAL/Polygon_2_algorithms.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <vector>

namespace {

using kernel = CGAL::Exact_predicates_inexact_constructions_kernel;
using triangulation = CGAL::Delaunay_triangulation_2<kernel>;
using corners = std::array<kernel::Point_2, 3>;

[[noreturn]] void reject(const char* why) {
    std::fprintf(stderr, "yada_judge: %s\n", why);
    std::exit(1);
}

// No corner of a neighbour lies inside the circle: of the neighbours in CGAL's triangulation, which
// may have turned an edge between corners on one circle.
bool is_delaunay(const triangulation& all, const corners& of) {
    for (const auto& corner : of) {
        triangulation::Locate_type how{};
        int index = 0;
        const auto face = all.locate(corner, how, index);
        if (how != triangulation::VERTEX) return false;
        auto around = all.incident_vertices(face->vertex(index));
        const auto first = around;
        do {
            if (all.is_infinite(around)) continue;
            if (CGAL::side_of_oriented_circle(of[0], of[1], of[2], around->point()) ==
                CGAL::ON_POSITIVE_SIDE)
                return false;
        } while (++around != first);
    }
    return true;
}

double smallest_degrees(const corners& of) {
    double smallest = 180;
    for (std::size_t i = 0; i < 3; ++i) {
        const auto a = of[(i + 1) % 3] - of[i], b = of[(i + 2) % 3] - of[i];
        const double radians = std::atan2(a.x() * b.y() - a.y() * b.x(), a * b);
        smallest = std::min(smallest, radians * 180 / M_PI);
    }
    return smallest;
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 3) reject("usage: yada_judge ELEMENTS DEGREES");
    std::ifstream file(argv[1]);
    std::vector<corners> elements;
    std::set<kernel::Point_2> points;
    double ax, ay, bx, by, cx, cy;
    while (file >> ax >> ay >> bx >> by >> cx >> cy) {
        elements.push_back({kernel::Point_2(ax, ay), {bx, by}, {cx, cy}});
        points.insert(elements.back().begin(), elements.back().end());
    }
    if (elements.empty()) reject("no elements");
    const triangulation all(points.begin(), points.end());
    if (all.number_of_faces() != elements.size()) reject("another number of elements");
    double area = 0, smallest = 180;
    for (const corners& each : elements) {
        if (CGAL::orientation(each[0], each[1], each[2]) != CGAL::LEFT_TURN)
            reject("a flat element");
        if (!is_delaunay(all, each)) reject("an element is not Delaunay");
        area += CGAL::area(each[0], each[1], each[2]);
        smallest = std::min(smallest, smallest_degrees(each));
    }
    const double side = points.rbegin()->x() - points.begin()->x();
    if (std::abs(area - side * side) > 1e-9 * area) reject("the elements do not fill the square");
    if (smallest < std::strtod(argv[2], nullptr) - 1e-9) reject("an angle is too small");
    std::printf("%zu elements, %zu corners, smallest angle %.6f\n", elements.size(), points.size(),
                smallest);
    return 0;
}
