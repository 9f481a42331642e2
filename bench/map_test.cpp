// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every engine and peer that is measured is a map: a structure that loses keys is fast. The same
// random operations go to it and to std::map; then two threads insert, and everything is looked
// for. A failure names engine, structure and seed.
#include "map_under_test.hpp"
#include "workload.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <random>
#include <thread>

namespace hf::bench {
namespace {

struct measured_map {
    structure which;
    std::string engine;
};
void PrintTo(const measured_map& map, std::ostream* out) {
    *out << name_of(map.which) << "/" << map.engine;
}

std::vector<measured_map> all() {
    std::vector<measured_map> maps;
    for (const structure which : all_structures())
        for (const std::string& engine : engines_for(which))
            if (engine != "floor-append") maps.push_back({which, engine}); // it finds nothing again
    return maps;
}

std::string test_name(const testing::TestParamInfo<measured_map>& info) {
    std::string name = std::string(name_of(info.param.which)) + "_" + info.param.engine;
    std::ranges::replace(name, '-', '_');
    return name;
}

class Map : public testing::TestWithParam<measured_map> {
protected:
    static constexpr std::uint64_t operations = 4000;
    static constexpr unsigned seed = 4711;

    void SetUp() override {
        map_options options;
        options.which = GetParam().which;
        options.keys = 3 * operations;
        options.value_bytes = bytes_ = has_values() ? 256 : 0;
        options.prefault = false;
        map_ = make_map(GetParam().engine, options);
        ASSERT_NE(map_, nullptr);
    }
    bool holds(std::uint64_t key, const void* value) {
        std::vector<std::byte> found(256);
        return map_->find(key, found.data()) && std::memcmp(found.data(), value, bytes_) == 0;
    }
    static bool has_values() { return GetParam().which != structure::set; }
    // As many as there are from a key on, the last of them with the right value.
    void expect_scan(const std::map<std::uint64_t, std::uint64_t>& model, std::uint64_t from,
                     std::uint64_t count) {
        auto last = model.lower_bound(from);
        std::uint64_t wanted = 0;
        for (auto at = last; at != model.end() && wanted < count; ++at, ++wanted) last = at;
        std::vector<std::byte> found(256);
        ASSERT_EQ(map_->scan(from, count, found.data()), wanted) << "seed " << seed;
        if (wanted != 0)
            EXPECT_EQ(std::memcmp(found.data(), values_.value_of(last->second), 256), 0)
                << "seed " << seed;
    }

    noise values_{256};
    std::size_t bytes_ = 0;
    std::unique_ptr<map_under_test> map_;
};

TEST_P(Map, AnswersAsAModelDoes) {
    std::map<std::uint64_t, std::uint64_t> model; // key -> number of its value
    std::mt19937_64 random(seed);
    for (std::uint64_t i = 0; i < operations; ++i) {
        const std::uint64_t key = scrambled(random() % (operations / 2));
        const bool there = model.contains(key);
        if (there && random() % 2 == 0) {
            ASSERT_TRUE(holds(key, values_.value_of(model[key]))) << "seed " << seed;
            continue;
        }
        if (there && !has_values()) continue;
        model[key] = i;
        const void* value = values_.value_of(i);
        ASSERT_TRUE(there ? map_->update(key, value) : map_->insert(key, value))
            << "seed " << seed << ", operation " << i;
    }
    for (const auto& [key, value] : model)
        EXPECT_TRUE(holds(key, values_.value_of(value))) << "seed " << seed;
    EXPECT_FALSE(holds(scrambled(operations), values_.value_of(0)));
    if (!ordered(GetParam().which)) return;
    for (int i = 0; i < 50; ++i) expect_scan(model, random(), 1 + random() % 100);
    expect_scan(model, 0, 2 * operations);
    expect_scan(model, model.rbegin()->first, 2);
}

TEST_P(Map, KeepsWhatTwoThreadsInsert) {
    const auto insert_all = [&](unsigned own) {
        bool done = true;
        for (std::uint64_t i = 0; i < operations; ++i) {
            const std::uint64_t key = scrambled(2 * i + own);
            done = done && map_->insert(key, values_.value_of(key));
        }
        EXPECT_TRUE(done);
    };
    std::thread other(insert_all, 1);
    insert_all(0);
    other.join();
    for (std::uint64_t i = 0; i < 2 * operations; ++i)
        ASSERT_TRUE(holds(scrambled(i), values_.value_of(scrambled(i))));
}

INSTANTIATE_TEST_SUITE_P(Measured, Map, testing::ValuesIn(all()), test_name);

} // namespace
} // namespace hf::bench
