// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Readings of sensors, counted by many threads and looked at now and then. docs/guide/simpo.md is cut from it.
#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>
// [include]
#include <holdfast/simpo.hpp>
// [/include]

// [class]
class histogram {
public:
    static constexpr hf::simpo::class_name simpo_class{"histogram", 1};

    void count(double reading) noexcept {            // returns nothing: can be deferred
        cells_[place_of(reading)] += 1;
        ++count_;
    }
    std::uint64_t clear() noexcept {                 // returns something: instant
        const std::uint64_t had = count_;
        cells_ = {};
        count_ = 0;
        return had;
    }
    std::uint64_t readings() const { return count_; } // changes nothing: not logged at all

private:
    static std::size_t place_of(double reading) noexcept {
        return reading < 0 ? 0 : reading >= 255 ? 255 : static_cast<std::size_t>(reading);
    }
    std::array<std::uint64_t, 256> cells_{};
    std::uint64_t count_ = 0;
};
// [/class]

namespace {

int fail(const hf::status& why) { return std::puts(why.what().c_str()), 1; }

} // namespace

int main(int argc, char** argv) {
    // [open]
    auto pool = hf::pool::open(argc > 1 ? argv[1] : "readings.hf",
                               {.layout = "readings/1", .engines = {hf::simpo::engine()}});
    if (!pool) return fail(pool.error());
    auto all = hf::simpo::object<histogram>::find(*pool, "all");
    if (!all && all.error().code() == hf::errc::not_found)
        all = hf::simpo::object<histogram>::create(*pool, "all");
    if (!all) return fail(all.error());
    // [/open]

    // [use]
    std::vector<std::thread> sensors;
    for (int s = 0; s < 4; ++s)
        sensors.emplace_back([all = *all, s]() mutable {
            for (int i = 0; i < 1000; ++i)
                all.defer<&histogram::count>(s * 50 + i % 50); // logged, and no more
        });
    for (auto& each : sensors) each.join();
    const auto readings = all->call<&histogram::readings>(); // all of them survive from here on
    // [/use]
    std::printf("%llu readings\n", static_cast<unsigned long long>(readings));

    // [reset]
    if (readings >= 12'000) {
        const auto had = all->call<&histogram::clear>();
        std::printf("cleared %llu\n", static_cast<unsigned long long>(had));
    }
    // [/reset]
    // [sync]
    all->defer<&histogram::count>(12.5);
    all->sync();       // survives
    all->checkpoint(); // and the next open has nothing to call again
    // [/sync]
}
