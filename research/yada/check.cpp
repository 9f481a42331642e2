// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether a mesh is whole: every invariant of mesh.hpp, by exact predicates. It trusts pointers
// only so far as they lead to the mesh's count of elements and no further.
#include "../../apps/hash.hpp"
#include "refinement.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <numbers>
#include <set>
#include <unordered_set>
#include <utility>
#include <vector>

namespace hf::apps::yada {
namespace {

class survey {
public:
    explicit survey(const mesh& at) : mesh_(at) {}

    mesh_report all() {
        reach();
        for (const element* each : elements_) {
            look_at(*each);
            for (unsigned i = 0; i < 3; ++i) look_across(*each, i);
        }
        // Exact: twice the square's area is 2^61.
        expect(area_ == std::int64_t{2} * grid_side * grid_side, "(1) the elements' area");
        walk_border();
        walk_queue();
        seen_.elements = elements_.size();
        seen_.points = corners_.size();
        expect(seen_.elements == mesh_.elements, "the count of elements");
        expect(seen_.segments == mesh_.segments, "the count of segments");
        // Euler: a triangulation of a disc.
        expect(seen_.elements + seen_.segments + 2 == 2 * seen_.points, "the count of corners");
        return seen_;
    }
    std::vector<const element*> reached() {
        reach();
        return std::move(elements_);
    }

private:
    void expect(bool holds, const char* what) {
        if (!holds && seen_.wrong.empty()) seen_.wrong = what;
    }

    void reach() {
        std::unordered_set<const element*> known;
        const auto meet = [&](const element* one) {
            if (one != nullptr && elements_.size() <= mesh_.elements && known.insert(one).second)
                elements_.push_back(one);
        };
        meet(mesh_.any);
        for (std::size_t i = 0; i < elements_.size(); ++i)
            for (const element* other : elements_[i]->across) meet(other);
    }

    void look_at(const element& one) {
        const auto& corner = one.corner;
        const std::int64_t twice = turn(corner[0], corner[1], corner[2]);
        expect(twice > 0, "(1) corners turn left");
        area_ += twice;
        corners_.insert(std::begin(corner), std::end(corner));
        const double tangent = smallest_tangent(corner);
        seen_.smallest_degrees =
            std::min(seen_.smallest_degrees, std::atan(tangent) * 180 / std::numbers::pi);
        if (tangent < mesh_.limit) ++seen_.sharp;
        const std::int64_t place = place_for(one, mesh_.limit);
        // Those that cannot be refined have left the queue.
        if (mesh_.left == 0 || one.place >= 0) expect(one.place == place, "(5) an element's list");
        const auto first = std::min_element(std::begin(corner), std::end(corner)) - corner;
        const point turned[3] = {corner[first], corner[(first + 1) % 3], corner[(first + 2) % 3]};
        seen_.digest += apps::hash_of(turned, sizeof turned, 1);
    }

    void look_across(const element& one, unsigned i) {
        const point from = corner_after(&one, i), to = corner_before(&one, i);
        const element* const other = one.across[i];
        if (other == nullptr) {
            const segment* const border = one.border[i];
            expect(border != nullptr && border->from == from && border->to == to,
                   "(2) a segment's ends");
            if (border != nullptr) bordering_.insert(border);
            return;
        }
        expect(one.border[i] == nullptr, "(2) a side with a segment and a neighbour");
        unsigned back = 0;
        while (back < 3 && other->across[back] != &one) ++back;
        expect(back < 3 && corner_after(other, back) == to && corner_before(other, back) == from,
               "(2) a side that leads back");
        if (back < 3)
            expect(circle(one.corner[0], one.corner[1], one.corner[2], other->corner[back]) <= 0,
                   "(3) Delaunay");
    }

    void walk_border() {
        const segment* at = mesh_.border;
        do {
            if (at == nullptr || !bordering_.contains(at) || seen_.segments > mesh_.segments)
                return expect(false, "(4) the border's ring");
            ++seen_.segments;
            const auto on = [](std::int32_t a, std::int32_t b, std::int32_t line) {
                return a == line && b == line;
            };
            const point a = at->from, b = at->to;
            expect((on(a.y, b.y, 0) && a.x < b.x) || (on(a.x, b.x, grid_side) && a.y < b.y) ||
                       (on(a.y, b.y, grid_side) && a.x > b.x) || (on(a.x, b.x, 0) && a.y > b.y),
                   "(4) a segment on the square's side");
            expect(at->next != nullptr && at->next->from == at->to, "(4) segments that meet");
            at = at->next;
        } while (at != mesh_.border);
        expect(seen_.segments == bordering_.size(), "(4) every segment is in the ring");
    }

    void walk_queue() {
        const std::unordered_set<const element*> known(elements_.begin(), elements_.end());
        std::uint64_t filled = 0;
        for (unsigned list = 0; list < work_queue::lists; ++list) {
            const element* before = nullptr;
            for (const element* at = mesh_.queue.first[list]; at != nullptr; at = at->after) {
                if (!known.contains(at) || at->place != list || at->before != before)
                    return expect(false, "(5) the queue's links");
                filled |= std::uint64_t{1} << list;
                ++seen_.bad;
                before = at;
            }
        }
        expect(filled == mesh_.queue.filled, "(5) the queue's map");
        const auto placed = std::count_if(elements_.begin(), elements_.end(),
                                          [](const element* one) { return one->place >= 0; });
        expect(seen_.bad == static_cast<std::uint64_t>(placed), "(5) every bad element is queued");
    }

    const mesh& mesh_;
    mesh_report seen_;
    std::vector<const element*> elements_;
    std::set<point> corners_;
    std::unordered_set<const segment*> bordering_;
    std::int64_t area_ = 0;
};

} // namespace

mesh_report look(const mesh& at) { return survey(at).all(); }

std::vector<const element*> elements_of(const mesh& at) { return survey(at).reached(); }

bool write_elements(const mesh& at, const std::string& path) {
    std::FILE* const file = std::fopen(path.c_str(), "w");
    if (file == nullptr) return false;
    for (const element* each : elements_of(at)) {
        for (const point corner : each->corner) std::fprintf(file, "%d %d ", corner.x, corner.y);
        std::fputc('\n', file);
    }
    const bool written = std::ferror(file) == 0;
    return std::fclose(file) == 0 && written;
}

} // namespace hf::apps::yada
