// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The hash map, built once per engine: every public operation that writes, with and without splits.
#include <check/pool_program.hpp>
#include <structures/hash_map.hpp>

#include <holdfast/engines.hpp>

#include <algorithm>

namespace {

using map = hf::structures::hash_map<std::uint64_t, std::uint64_t, 2>;

class map_program : public hf::crash::pool_program {
public:
    explicit map_program(bool eadr = false)
        : pool_program({.layout = "crash/map", .engines = hf::engines_of_build(), .eadr = eadr}) {}
    void describe(hf::pool& p, hf::crash::state& s) override {
        auto* m = p.root<map>();
        s.expect(m->check(), "the hash map's invariants");
        std::vector<std::pair<std::uint64_t, std::uint64_t>> all;
        m->for_each([&](std::uint64_t key, std::uint64_t value) { all.emplace_back(key, value); });
        std::ranges::sort(all);
        for (const auto& [key, value] : all) {
            s.add(key);
            s.add(value);
        }
        m->for_each_block([&](const void* block) { s.object(block); });
    }
};

class map_insert final : public map_program {
    void setup(hf::pool& p) override { p.root<map>(); }
    unsigned operations(unsigned) const override { return 4; }
    void run(hf::pool& p, unsigned, unsigned i) override { p.root<map>()->insert(i + 1, 100 + i); }
};

class map_assign final : public map_program {
    void setup(hf::pool& p) override {
        for (std::uint64_t k = 1; k <= 2; ++k) p.root<map>()->insert(k, k);
    }
    unsigned operations(unsigned) const override { return 3; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        p.root<map>()->insert(1 + i % 2, 10 + i);
    }
};

class map_erase final : public map_program {
    void setup(hf::pool& p) override {
        for (std::uint64_t k = 1; k <= 4; ++k) p.root<map>()->insert(k, k);
    }
    unsigned operations(unsigned) const override { return 4; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        if (i < 3) p.root<map>()->erase(1 + i);
        else p.root<map>()->insert(1, 9); // in memory that an erasure freed
    }
};

/// Enough keys that buckets split and a segment is allocated.
class map_split final : public map_program {
    static constexpr std::uint64_t keys = 20;
    void setup(hf::pool& p) override {
        for (std::uint64_t k = 1; k <= keys; ++k) p.root<map>()->insert(k, k);
    }
    unsigned operations(unsigned) const override { return 2; }
    void run(hf::pool& p, unsigned, unsigned i) override { p.root<map>()->insert(keys + 1 + i, 7); }
};

class map_reserve final : public map_program {
    void setup(hf::pool& p) override { p.root<map>()->insert(1, 1); }
    unsigned operations(unsigned) const override { return 1; }
    void run(hf::pool& p, unsigned, unsigned) override { p.root<map>()->reserve(24); }
};

class map_two_threads final : public map_program {
public:
    using map_program::map_program;

private:
    void setup(hf::pool& p) override { p.root<map>()->insert(1, 1); }
    unsigned threads() const override { return 2; }
    unsigned operations(unsigned) const override { return 1; }
    void run(hf::pool& p, unsigned thread, unsigned) override {
        if (thread == 0) p.root<map>()->insert(2, 2);
        else p.root<map>()->insert(3, 3);
    }
};

class map_same_key final : public map_program {
public:
    using map_program::map_program;

private:
    void setup(hf::pool& p) override { p.root<map>()->insert(1, 1); }
    unsigned threads() const override { return 2; }
    unsigned operations(unsigned) const override { return 1; }
    void run(hf::pool& p, unsigned thread, unsigned) override {
        if (thread == 0) p.root<map>()->erase(1);
        else p.root<map>()->insert(1, 5);
    }
};

std::string named(const char* what) {
    return std::string("map/") + what + "/" + std::string(hf::engine_of_build());
}
[[maybe_unused]] const bool added = [] {
    hf::crash::add(named("insert"), std::make_unique<map_insert>());
    hf::crash::add(named("assign"), std::make_unique<map_assign>());
    hf::crash::add(named("erase"), std::make_unique<map_erase>());
    hf::crash::add(named("split"), std::make_unique<map_split>());
    hf::crash::add(named("reserve"), std::make_unique<map_reserve>());
    hf::crash::add(named("two threads"), std::make_unique<map_two_threads>());
    hf::crash::add(named("same key"), std::make_unique<map_same_key>());
    hf::crash::add(named("two threads, eadr"), std::make_unique<map_two_threads>(true));
    hf::crash::add(named("same key, eadr"), std::make_unique<map_same_key>(true));
    return true;
}();

} // namespace
