// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "mod_use.hpp"

#include <holdfast/mod/cache.hpp>
#include <holdfast/mod/update.hpp>

#include <chrono>
#include <string>
#include <string_view>
#include <tuple>

namespace hf::hostile {
namespace {

using numbers = mod::map<std::uint64_t, std::uint64_t>;
using texts = mod::map<std::string, std::string>;
using words = mod::set<std::string>;
using ordered = mod::ordered_map<std::uint64_t, std::uint64_t>;
using sorted = mod::ordered_map<std::string, std::string>;

std::string text_of(std::uint64_t n) { return "text " + std::to_string(n * 7919); }

template <class Map> bool filled_with_numbers(const pool& in, const mod::place& at) {
    auto made = Map::open(in, at);
    if (!made) return false;
    for (std::uint64_t n = 0; n < 150; ++n)
        if (!made->insert_or_assign(n * n, n)) return false;
    for (std::uint64_t n = 0; n < 150; n += 5)
        if (!made->erase(n * n)) return false;
    return true;
}
template <class Map> bool filled_with_texts(const pool& in, const mod::place& at) {
    auto made = Map::open(in, at);
    if (!made) return false;
    for (std::uint64_t n = 0; n < 60; ++n)
        if (!made->insert_or_assign(text_of(n), std::string(n * 5, 'x'))) return false;
    for (std::uint64_t n = 0; n < 60; n += 7)
        if (!made->erase(text_of(n))) return false;
    return true;
}

bool fill_family(const pool& in) {
    const std::vector<std::string_view> members{"left", "right"};
    const mod::place left{"left", "family", members}, right{"right", "family", members};
    if (!filled_with_numbers<numbers>(in, left) || !filled_with_texts<texts>(in, right))
        return false;
    auto a = numbers::open(in, left);
    auto b = texts::open(in, right);
    auto alone = numbers::open(in, {"alone"});
    auto other = texts::open(in, {"other"});
    if (!a || !b || !alone || !other) return false;
    for (std::uint64_t n = 0; n < 40; ++n) {
        // Siblings, then unrelated roots.
        const auto next_a = a->snapshot().insert(n << 32, n);
        const auto next_b = b->snapshot().insert(text_of(n << 32), text_of(n));
        if (!mod::store::in(in).commit({{a->its_root(), &next_a}, {b->its_root(), &next_b}}).ok())
            return false;
        const auto next_alone = alone->snapshot().insert(n, n);
        const auto next_other = other->snapshot().insert(text_of(n), text_of(n));
        if (!mod::store::in(in)
                 .commit({{alone->its_root(), &next_alone}, {other->its_root(), &next_other}})
                 .ok())
            return false;
    }
    return true;
}

template <class Map, class Key> void use_map(mod_user& by, Map& map, Key key_of) {
    by.all_of(map);
    for (std::uint64_t n = 0; n < 24; ++n) {
        by.looked_at += map.contains(key_of(n));
        if (const auto found = map.get(key_of(n))) by.looked_at += sizeof *found;
    }
    const auto before = map.snapshot();
    for (std::uint64_t n = 0; n < 12; ++n) {
        by.ended(map.erase(key_of(n)));
        by.ended(map.insert_or_assign(key_of(2 * n), {}));
    }
    by.ended(map.update([&](auto& batch) {
        for (std::uint64_t n = 0; n < 30; ++n)
            if (n % 3 == 0) batch.erase(key_of(n));
            else batch.insert_or_assign(key_of(n + 5), {});
    }));
    by.all_of(before);
    const auto tried = before.insert(key_of(1000), {}).erase(key_of(3));
    by.looked_at += tried.size();
    by.ended(map.commit(tried));
}

std::uint64_t square(std::uint64_t n) { return n * n; }

void use_bounds(mod_user& by, const ordered& map) {
    std::uint64_t back = 0;
    for (auto it = map.end(); it != map.begin() && back <= map.size(); ++back) --it;
    for (const auto& [key, value] : map.range(100, 2500)) {
        by.looked_at += key + value;
        if (++back > 3 * map.size() + 10) break;
    }
    if (!map.empty()) by.looked_at += map.first().first + map.last().second;
}

template <class Structure>
void use_and_clear(mod_user& by, const char* name, const char* family, auto key_of) {
    auto map = by.opened<Structure>(name, family);
    if (!map) return;
    use_map(by, *map, key_of);
    by.ended(map->clear());
    by.ended(map->insert_or_assign(key_of(1), {}));
    by.all_of(*map);
    by.still_good(name);
}

bool filled_cache(const pool& in) {
    auto made = mod::cache::open(in, "cache", {.max_bytes = 6000});
    for (std::uint64_t n = 0; n < 90; ++n) // some of them evicted
        if (!made ||
            !made->put(text_of(n), std::string(n * 3, 'x'), std::chrono::hours(n + 1)).ok())
            return false;
    return true;
}

void use_cache(mod_user& by) {
    constexpr std::uint64_t max_bytes = 5000;
    auto made = mod::cache::open(by.in(), "cache", {.max_bytes = max_bytes});
    by.ended(made);
    if (!made) return;
    const auto count = [&] {
        made->for_each([&](std::string_view key, std::string_view value) {
            by.looked_at += key.size() + value.size();
            return true;
        });
    };
    count();
    for (std::uint64_t n = 0; n < 90; ++n) {
        if (const auto found = made->get(text_of(n))) by.looked_at += found->size();
        if (n % 5 == 0) by.ended(made->erase(text_of(n)));
        if (n % 5 == 1) by.ended(made->touch(text_of(n), std::chrono::hours(1)));
        if (n % 5 == 2) by.ended(made->replace(text_of(n), std::string(n * 7, 'y')));
        by.ended(made->put(text_of(2 * n), std::string(n * 4, 'z')));
    }
    by.ended(made->expire());
    count();
    by.still_good("cache");
    by.ended(made->clear());
    by.ended(made->put("last", "one"));
    by.still_good("cache");
}

void use_maps(mod_user& by) {
    if (auto set = by.opened<words>("words")) {
        by.all_of(*set);
        for (std::uint64_t n = 0; n < 20; ++n) {
            by.looked_at += set->contains(text_of(n));
            by.ended(set->insert(text_of(3 * n)));
            by.ended(set->erase(text_of(n)));
        }
    }
    use_and_clear<numbers>(by, "numbers", "", square);
    use_and_clear<texts>(by, "texts", "", text_of);
    use_cache(by);
}

void use_ordered(mod_user& by) {
    if (auto map = by.opened<ordered>("ordered")) {
        use_bounds(by, *map);
        by.ended(map->update([](auto& batch) { batch.erase(400, 3000); }));
    }
    use_and_clear<ordered>(by, "ordered", "", square);
    use_and_clear<sorted>(by, "sorted", "", text_of);
}

void use_family(mod_user& by) {
    auto a = by.opened<numbers>("left", "family");
    auto alone = by.opened<numbers>("alone");
    if (a && alone)
        by.ended(mod::update(std::tie(*a, *alone), [](auto& left, auto& other) {
            left.insert(7, 7);
            other.insert(7, 7);
        }));
    use_and_clear<numbers>(by, "left", "family", square);
    use_and_clear<texts>(by, "right", "family", text_of);
    use_and_clear<texts>(by, "other", "", text_of);
}

} // namespace

const char* name(mod_shape of) noexcept {
    switch (of) {
    case mod_shape::maps: return "maps";
    case mod_shape::ordered: return "ordered maps";
    case mod_shape::sequences: return "sequences";
    case mod_shape::family: return "family, unrelated";
    default: return "shared";
    }
}

bool fill_mod(const pool& in, mod_shape what) {
    switch (what) {
    case mod_shape::maps: {
        auto set = words::open(in, {"words"});
        for (std::uint64_t n = 0; n < 50; ++n)
            if (!set || !set->insert(text_of(n))) return false;
        return filled_with_numbers<numbers>(in, {"numbers"}) &&
               filled_with_texts<texts>(in, {"texts"}) && filled_cache(in);
    }
    case mod_shape::ordered:
        return filled_with_numbers<ordered>(in, {"ordered"}) &&
               filled_with_texts<sorted>(in, {"sorted"});
    case mod_shape::sequences: return fill_sequences(in);
    case mod_shape::family: return fill_family(in);
    default: return fill_shared(in);
    }
}

mod_use use_mod(const pool& in, mod_shape what) {
    mod_use said;
    mod_user by(in, said);
    mod::store& store = mod::store::in(in);
    const status good = store.verify();
    said.verified = good.ok();
    by.ended(good);
    switch (what) {
    case mod_shape::maps: use_maps(by); break;
    case mod_shape::ordered: use_ordered(by); break;
    case mod_shape::sequences: use_sequences(by); break;
    case mod_shape::family: use_family(by); break;
    default: use_shared(by); break;
    }
    by.ended(store.collect());
    by.still_good("collecting");
    by.looked_at += store.account().nodes;
    store.for_each_block([](void* sum, const void*) { ++*static_cast<std::uint64_t*>(sum); },
                         &by.looked_at);
    return said;
}

} // namespace hf::hostile
