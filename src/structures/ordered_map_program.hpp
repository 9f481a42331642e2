// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Crash programs on ordered structures: keys that are there at first, then each thread's steps.
// describe() shows keys and values in their order, every block, and the structure's own check.
#pragma once

#include <check/pool_program.hpp>

#include <holdfast/author/selective.hpp>
#include <holdfast/engines.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hf::structures {
inline namespace HF_STRUCTURES_ENGINE {

/// Inserts 'key' with 'value', or erases it where the value is 'erased'.
struct map_step {
    std::uint64_t key;
    std::uint64_t value;
};
inline constexpr std::uint64_t erased = 0;

template <class Map> class ordered_map_program final : public hf::crash::pool_program {
public:
    using steps = std::vector<map_step>;
    ordered_map_program(steps before, std::vector<steps> of_threads, bool eadr)
        : pool_program({.layout = "crash/ordered map", .engines = engines(), .eadr = eadr}),
          before_(std::move(before)), of_threads_(std::move(of_threads)) {}

    void setup(hf::pool& p) override {
        p.root<Map>();
        for (const map_step& one : before_) take(p, one);
    }
    unsigned threads() const override { return static_cast<unsigned>(of_threads_.size()); }
    unsigned operations(unsigned thread) const override {
        return static_cast<unsigned>(of_threads_[thread].size());
    }
    void run(hf::pool& p, unsigned thread, unsigned i) override { take(p, of_threads_[thread][i]); }
    void describe(hf::pool& p, hf::crash::state& s) override {
        auto* map = p.root<Map>();
        s.expect(map->check(), "the invariants of the structure");
        std::uint64_t keys = 0;
        map->for_each([&](std::uint64_t key, std::uint64_t value) {
            s.add(key);
            s.add(value);
            ++keys;
        });
        s.expect(map->size() == keys, "its size");
        map->for_each_block([&](const void* block) { s.object(block); });
    }

private:
    static std::vector<engine_ptr> engines() {
        engine_options how;
        if constexpr (requires(Map& map, hf::pool& in) { map.rebuild(in); })
            how.selective.rebuild = [](hf::pool& p) { p.root<Map>()->rebuild(p); };
        return engines_of_build(how);
    }
    static void take(hf::pool& p, const map_step& one) {
        auto* map = p.root<Map>();
        if (one.value == erased) map->erase(one.key);
        else map->insert(one.key, one.value);
    }

    steps before_;
    std::vector<steps> of_threads_;
};

/// Registers "<structure>/<what>/<engine>".
template <class Map>
void add_program(const char* structure, const char* what, std::vector<map_step> before,
                 std::vector<std::vector<map_step>> of_threads, bool eadr = false) {
    hf::crash::add(
        std::string(structure) + "/" + what + "/" + std::string(engine_of_build()),
        std::make_unique<ordered_map_program<Map>>(std::move(before), std::move(of_threads), eadr));
}

} // namespace HF_STRUCTURES_ENGINE
} // namespace hf::structures
