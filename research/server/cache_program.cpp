// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The cache's sections for the crash checker, built once per engine: a set of a new key, with a
// split of a bucket, and sets of a key that is there.
#include <check/pool_program.hpp>

#include <holdfast/engines.hpp>

#include <server/sections.hpp>

#include <algorithm>

namespace hf::apps::server::HF_APPLICATION_BUILD {
namespace {

using structures::hash_table;

class cache_program final : public hf::crash::pool_program {
public:
    cache_program() : pool_program({.layout = "crash/cache", .engines = hf::engines_of_build()}) {}

    void setup(hf::pool& p) override {
        reserve_buckets(p.root<hash_table>(), 8);
        for (char name = 'a'; name < 'a' + 8; ++name) store(p, name, 0);
    }
    unsigned operations(unsigned) const override { return 3; }
    void run(hf::pool& p, unsigned, unsigned i) override { store(p, i == 1 ? 'z' : 'b', i + 1); }
    void describe(hf::pool& p, hf::crash::state& s) override {
        auto* const table = p.root<hash_table>();
        s.expect(structures::check(table), "the hash table's invariants");
        std::vector<const item*> all;
        structures::for_each(table, [&](const structures::hash_node* each) {
            all.push_back(static_cast<const item*>(each));
            s.object(each);
        });
        for (const auto* const* segment : table->segments)
            if (segment != nullptr) s.object(segment);
        std::ranges::sort(all, {}, &item::key);
        for (const item* each : all) {
            s.expect(find(table, each->key, hash_of(each->key)) == each, "a key is found once");
            s.add(static_cast<std::uint64_t>(each->key[0]));
            for (const std::uint64_t word : each->value) s.add(word);
        }
    }

private:
    static void store(hf::pool& p, char name, std::uint64_t stamp) {
        cache_key key{};
        key.fill(name);
        cache_value value;
        value.fill(stamp);
        put_item(p.root<hash_table>(), hash_of(key), key, &value);
    }
};

[[maybe_unused]] const bool added = [] {
    hf::crash::add("server/cache/" + std::string(hf::engine_of_build()),
                   std::make_unique<cache_program>());
    return true;
}();

} // namespace
} // namespace hf::apps::server::HF_APPLICATION_BUILD
