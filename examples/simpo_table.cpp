// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A class that comes to have another shape, and an object that nobody wants any more.
// docs/guide/simpo.md is cut from it.
#include <holdfast/simpo/table.hpp>

#include <array>
#include <cstdio>
#include <numeric>

namespace {

int fail(const hf::status& why) { return std::puts(why.what().c_str()), 1; }

/// Visits of one day, as in an older version of this program.
struct visits_1 {
    static constexpr hf::simpo::class_name simpo_class{"visits", 1};
    void add() noexcept { ++count; }
    unsigned count = 0;
};

/// Visits of the days of a week.
struct visits {
    static constexpr hf::simpo::class_name simpo_class{"visits", 2};
    explicit visits(const visits_1& was) { days[0] = was.count; }
    unsigned sum() const noexcept { return std::accumulate(days.begin(), days.end(), 0U); }
    std::array<unsigned, 7> days{};
};

/// What that older version left.
hf::status old_program(hf::pool& pool) {
    auto was = hf::simpo::object<visits_1>::create(pool, "visits");
    auto other = hf::simpo::object<visits_1>::create(pool, "draft");
    if (!was || !other) return was ? other.error() : was.error();
    for (int i = 0; i < 3; ++i) was->defer<&visits_1::add>();
    was->sync();
    return {};
}

} // namespace

int main(int argc, char** argv) {
    auto pool = hf::pool::open(argc > 1 ? argv[1] : "visits.hf",
                               {.layout = "visits/1", .engines = {hf::simpo::engine()}});
    if (!pool) return fail(pool.error());
    if (auto all = hf::simpo::list(*pool); all && all->empty())
        if (auto s = old_program(*pool); !s.ok()) return fail(s);
    // [table]
    auto all = hf::simpo::list(*pool);
    if (!all) return fail(all.error());
    for (const hf::simpo::object_info& each : *all) {
        if (each.name == "draft")
            if (auto s = hf::simpo::drop(*pool, each.name); !s.ok()) return fail(s);
        if (each.class_text != "visits" || each.class_version != 1 || each.name == "draft") continue;
        const auto widen = [](const visits_1& was) { return visits(was); };
        auto made = hf::simpo::remake<visits, visits_1>(*pool, each.name, {}, widen);
        if (!made) return fail(made.error());
    }
    // [/table]
    auto now = hf::simpo::object<visits>::find(*pool, "visits");
    if (!now) return fail(now.error());
    std::printf("now %u visits of 7 days\n", now->call<&visits::sum>());
    std::printf("%zu object\n", hf::simpo::list(*pool)->size());
}
