// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the durable structures of MOD can do. docs/guide/mod.md is cut from it.
//
//   $ example_mod_tour
//   Ada is 36, Bob is not known
//   20 and 22 degrees
//   then 2, now 3
//   a conflict, as it must be
//   moved
//   2 ages are known
// [include]
#include <holdfast/holdfast.hpp>
// [/include]

#include <cstdint>
#include <cstdio>
#include <string>
#include <tuple>
#include <utility>

namespace mod = hf::mod;

namespace {

using age_map = mod::map<std::string, int>;

int fail(const hf::status& why) { return std::puts(why.what().c_str()), 1; }

// [basic]
int basic(age_map& ages) {
    const auto inserted = ages.insert("Ada", 35);    // result<bool>: whether the key is new
    if (!inserted) return fail(inserted.error());    // pool_full: nothing has changed
    if (const auto again = ages.insert_or_assign("Ada", 36); !again) return fail(again.error());
    const int* age = ages.get("Ada");                // into the pool: until the next update
    std::printf("Ada is %d, Bob is %s\n", *age, ages.contains("Bob") ? "known" : "not known");
    return 0;
}
// [/basic]

// [ranges]
int ranges(mod::ordered_map<std::uint64_t, int>& degrees) {
    const auto filled = degrees.update([](auto& batch) {        // one commit
        for (std::uint64_t hour = 0; hour < 24; ++hour) batch.insert(hour, 10 + static_cast<int>(hour));
    });
    if (!filled.ok()) return fail(filled);
    const auto tea_time = degrees.lower_bound(10);
    for (const auto& [hour, degree] : degrees.range(12, 13)) std::printf("%d and %d degrees\n", (*tea_time).second, degree);
    if (const auto gone = degrees.erase(0, 12); !gone) return fail(gone.error());   // the morning
    return 0;
}
// [/ranges]

// [snapshot]
int snapshot(age_map& ages) {
    if (const auto bob = ages.insert("Bob", 41); !bob) return fail(bob.error());
    const age_map::version then = ages.snapshot();   // copies nothing, never blocks
    if (const auto eve = ages.insert("Eve", 29); !eve) return fail(eve.error());
    std::printf("then %zu, now %zu\n", then.size(), ages.size());
    return 0;
}
// [/snapshot]

// [versions]
int versions(age_map& ages) {
    const auto now = ages.snapshot();
    const auto older = now.insert_or_assign("Ada", now["Ada"] + 1).erase("Eve");    // pure
    const auto other = now.update([](auto& batch) { batch.clear(); });
    if (const auto first = ages.commit(older); !first.ok()) return fail(first);
    const auto second = ages.commit(other);          // was made of what is no longer current
    if (second.code() == hf::errc::conflict) std::puts("a conflict, as it must be");
    return 0;
}
// [/versions]

// [family]
int family(hf::pool& pool) {
    auto open = age_map::open(pool, {"open", "accounts", {"open", "frozen"}});
    auto frozen = age_map::open(pool, {"frozen", "accounts", {"open", "frozen"}});
    if (!open || !frozen) return fail(open ? frozen.error() : open.error());
    if (const auto made = open->insert_or_assign("Ada", 100); !made) return fail(made.error());
    const auto moved = mod::update(std::tie(*open, *frozen), [](auto& open, auto& frozen) {
        const int* cents = open.get("Ada");
        if (cents == nullptr) return false;          // gives it up: nothing is changed
        frozen.insert_or_assign("Ada", *cents);
        return open.erase("Ada");
    });
    if (!moved.ok()) return fail(moved);
    std::puts(frozen->contains("Ada") && !open->contains("Ada") ? "moved" : "lost");
    return 0;
}
// [/family]

// [beside]
int in_another_process(const char* path) {
    auto pool = hf::pool::open(path, {.layout = "tour/1", .engines = {hf::mod::engine()}, .read_only = true, .shared = true});
    if (!pool) return fail(pool.error());
    auto ages = age_map::open(*pool, {"ages"});
    if (!ages) return fail(ages.error());            // not_found: nobody has made it yet
    const auto now = ages->snapshot();               // the writer goes on, and uses none of this again
    std::printf("%zu ages are known\n", now.size());
    return 0;
}
// [/beside]

} // namespace

int main(int argc, char** argv) {
    // [open]
    auto pool = hf::pool::open(argc > 1 ? argv[1] : "tour.hf",
                               {.layout = "tour/1", .engines = {hf::mod::engine()}});
    if (!pool) return fail(pool.error());
    auto ages = mod::map<std::string, int>::open(*pool, {"ages"});
    if (!ages) return fail(ages.error());
    // [/open]
    // [durability]
    ages->set_durability(mod::durability::on_return);
    // [/durability]
    auto degrees = mod::ordered_map<std::uint64_t, int>::open(*pool, {"degrees by hour"});
    if (!degrees) return fail(degrees.error());
    if (!ages->clear().ok() || !degrees->clear().ok()) return 1;
    const bool failed = basic(*ages) || ranges(*degrees) || snapshot(*ages) || versions(*ages) || family(*pool);
    if (failed) return 1;
    { const hf::pool closing(std::move(*pool)); }    // here the other process comes when this one is done
    return in_another_process(argc > 1 ? argv[1] : "tour.hf");
}
