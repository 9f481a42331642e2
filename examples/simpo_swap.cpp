// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A year of days of 64 KiB each, in a pool of 4 MiB. docs/guide/simpo.md is cut from it.
// [include]
#include <holdfast/simpo/swap.hpp>
// [/include]
#include <holdfast/simpo/table.hpp>

#include <array>
#include <cstdio>
#include <string>

namespace {

int fail(const hf::status& why) { return std::puts(why.what().c_str()), 1; }

/// What was measured on one day.
class day {
public:
    static constexpr hf::simpo::class_name simpo_class{"day", 1};
    void note(std::uint32_t minute, std::int32_t value) noexcept { all_[minute % all_.size()] = value; }
    std::int32_t at(std::uint32_t minute) const noexcept { return all_[minute % all_.size()]; }

private:
    std::array<std::int32_t, 16'384> all_{};
};

} // namespace

int main(int argc, char** argv) {
    const std::string path = argc > 1 ? argv[1] : "year.hf";
    // [swap]
    auto pool = hf::pool::open(path, {.layout = "year/1", .create_bytes = 4 << 20, .max_bytes = 4 << 20,
                                      .engines = {hf::simpo::engine()}});
    if (!pool) return fail(pool.error());
    if (auto s = hf::simpo::swap_to(*pool, path + ".days"); !s.ok()) return fail(s);
    for (int d = 1; d <= 365; ++d) {
        const std::string name = "day " + std::to_string(d);
        auto today = hf::simpo::object<day>::find(*pool, name); // perhaps from its file
        if (!today && today.error().code() == hf::errc::not_found)
            today = hf::simpo::object<day>::create(*pool, name); // another one goes to a file
        if (!today) return fail(today.error());
        today->defer<&day::note>(720U, today->call<&day::at>(720U) + d);
        today->sync();
    }
    // [/swap]
    unsigned out = 0;
    const auto all = hf::simpo::list(*pool);
    for (const hf::simpo::object_info& each : *all) out += each.swapped_out;
    const auto first = hf::simpo::object<day>::find(*pool, "day 1");
    if (!first) return fail(first.error());
    std::printf("%zu days, %s in files, %d on day 1\n", all->size(), out > 300 ? "most" : "few",
                hf::simpo::object<day>(*first).call<&day::at>(720U));
}
