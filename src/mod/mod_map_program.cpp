// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Maps, sets and ordered maps: every operation, of words and of strings, and of keys that collide
// so that nodes are deep; batches, versions, and two maps that change together.
#include "mod_program.hpp"
#include <mod/kinds.hpp>

#include <holdfast/mod/map.hpp>
#include <holdfast/mod/ordered_map.hpp>
#include <holdfast/mod/set.hpp>
#include <holdfast/mod/update.hpp>

#include <map>
#include <string>

namespace {

using namespace hf;
using namespace hf::crash;
using u64 = std::uint64_t;

/// Eight hashes for all keys: tries as deep as possible, and keys with equal hashes.
struct poor_hash {
    static constexpr std::uint16_t identity = 77;
    using is_avalanching = void;
    u64 operator()(const u64& key) const noexcept { return key % 8 << 61 | (key % 2); }
};

/// So large that few fit a leaf: search trees of some levels.
struct wide {
    u64 words[9];
    auto operator<=>(const wide&) const = default;
};
const u64& shown(const wide& element) { return element.words[0]; }
template <class T> const T& shown(const T& element) { return element; }

template <class T> T made(u64 from) {
    if constexpr (std::is_same_v<T, wide>) return {{from, ~from}};
    else if constexpr (std::is_same_v<T, std::string>)
        return std::string(3 + from % 50, static_cast<char>('a' + from % 26)) +
               std::to_string(from);
    else return from;
}

/// The differences between maps and sets.
template <class Map> struct face {
    using K = typename Map::key_type;
    using V = typename Map::mapped_type;
    template <class To> static auto insert(To&& to, u64 key, u64 value) {
        return to.insert(made<K>(key), made<V>(value));
    }
    template <class To> static auto assign(To&& to, u64 key, u64 value) {
        return to.insert_or_assign(made<K>(key), made<V>(value));
    }
    template <class From> static void show(const From& from, state& s) {
        std::map<K, V> sorted;
        for (const auto& [key, value] : from) sorted.emplace(K(key), V(value));
        s.expect(sorted.size() == from.size(), "size is the number of keys");
        for (const auto& [key, value] : sorted) {
            s.expect(from.contains(key), "a key is found where it lies");
            s.add(shown(key)), s.add(shown(value));
        }
    }
};
template <class K, class H> struct face<mod::set<K, H>> {
    template <class To> static auto insert(To&& to, u64 key, u64) {
        return to.insert(made<K>(key));
    }
    template <class To> static auto assign(To&& to, u64 key, u64) {
        return to.insert(made<K>(key + 1000));
    }
    template <class From> static void show(const From& from, state& s) {
        std::map<K, int> sorted;
        for (const auto& key : from) sorted.emplace(K(key), 0);
        s.expect(sorted.size() == from.size(), "size is the number of keys");
        for (const auto& [key, nothing] : sorted) {
            s.expect(from.contains(key), "a key is found where it lies");
            s.add(key);
        }
    }
};

template <class Map> constexpr std::uint32_t kind_of = mod::builtin_kind::hash_trie;
template <class K, class V, class C>
constexpr std::uint32_t kind_of<mod::ordered_map<K, V, C>> = mod::builtin_kind::ordered_map;

template <class Map> class one_map : public mod_program {
public:
    using K = typename Map::key_type;
    using with = face<Map>;
    one_map(const mod_variant& v, unsigned before) : mod_program(v), before_(before) {
        use_afterwards();
    }
    /// All of it once before, so that there are arenas of each size (mod_store_program.cpp has
    /// programs for taking them).
    void setup(pool& p) override {
        Map m = open(p);
        const auto fill = [&] {
            for (u64 i = 0; i < before_; ++i) HF_ASSERT(*with::insert(m, i, i));
        };
        fill();
        for (unsigned i = 0; i < operations(0); ++i) run(p, 0, i);
        expect(m.clear());
        fill();
    }
    unsigned operations(unsigned) const override { return 7; }
    void run(pool& p, unsigned, unsigned i) override {
        Map m = open(p);
        if (i == 0) HF_ASSERT(*with::insert(m, 100, 1));
        if (i == 1) HF_ASSERT(static_cast<bool>(with::assign(m, 1, 2)));
        if (i == 2) {
            HF_ASSERT(!*with::insert(m, 100, 3) && !*m.erase(made<K>(99))); // nothing changes
            HF_ASSERT(*m.erase(made<K>(0)));
        }
        if (i == 3)
            expect(m.update([](auto& batch) {
                for (u64 k = 200; k < 208; ++k) with::insert(batch, k, k);
                batch.erase(made<K>(100));
                batch.erase(made<K>(203));
                with::assign(batch, 204, 9);
            }));
        if (i == 4) {
            const auto now = m.snapshot();
            const auto next = with::insert(now.erase(made<K>(200)), 300, 5).erase(made<K>(201));
            expect(m.commit(with::insert(next, 301, 6)));
        }
        if (i == 5) expect(m.clear());
        if (i == 6) HF_ASSERT(*with::insert(m, 400, 7));
    }

private:
    Map open(pool& p) const {
        auto m = Map::open(p, {"one"});
        HF_ASSERT(static_cast<bool>(m));
        m->set_durability(variant().when);
        return *m;
    }
    static void expect(const status& outcome) { HF_ASSERT(outcome.ok()); }
    void show(pool& p, state& s) override { with::show(open(p), s); }
    std::uint64_t reachable(pool& p) override {
        node_census found(mod::store::in(p));
        found.add(*open(p).its_root(), *mod::find_kind(kind_of<Map>));
        return found.count();
    }
    void use(pool& p, state& s) override {
        Map m = open(p);
        state before, after;
        with::show(m, before);
        for (u64 k = 500; k < 512; ++k) HF_ASSERT(*with::insert(m, k, k));
        for (u64 k = 500; k < 512; ++k) HF_ASSERT(*m.erase(made<K>(k)));
        with::show(m, after);
        s.expect(before.text() == after.text(), "what was recovered can be used");
    }
    unsigned before_;
};

/// An entry moves from one map to another: unrelated ones, and members of a family.
class two_maps final : public mod_program {
public:
    using map = mod::map<u64, u64>;
    two_maps(const mod_variant& v, bool siblings) : mod_program(v), siblings_(siblings) {}
    void setup(pool& p) override {
        for (u64 i = 0; i < 3; ++i) HF_ASSERT(*open(p, "from").insert(i, 10 * i));
        HF_ASSERT(*open(p, "to").insert(7, 7));
    }
    bool buffered(unsigned, unsigned) const override {
        return siblings_ && mod_program::buffered(0, 0);
    }
    unsigned operations(unsigned) const override { return 3; }
    void run(pool& p, unsigned, unsigned i) override {
        map from = open(p, "from"), to = open(p, "to");
        if (i == 1) {
            const status done = mod::update(std::tie(from, to), [](auto& less, auto& more) {
                more.insert(1, 10);
                less.erase(1);
            });
            HF_ASSERT(done.ok());
            return;
        }
        const auto source = from.snapshot();
        const auto less = source.erase(i);
        const auto more = to.snapshot().insert(i, source[i]);
        HF_ASSERT(
            mod::store::in(p).commit({{from.its_root(), &less}, {to.its_root(), &more}}).ok());
    }

private:
    map open(pool& p, std::string_view name) const {
        auto m = siblings_ ? map::open(p, {name, "both", {"from", "to"}}) : map::open(p, {name});
        HF_ASSERT(static_cast<bool>(m));
        m->set_durability(variant().when);
        return *m;
    }
    void show(pool& p, state& s) override {
        face<map>::show(open(p, "from"), s);
        s.add(~u64{0});
        face<map>::show(open(p, "to"), s);
    }
    std::uint64_t reachable(pool& p) override {
        node_census found(mod::store::in(p));
        found.add(*open(p, "from").its_root(), mod::detail::hash_trie_kind);
        found.add(*open(p, "to").its_root(), mod::detail::hash_trie_kind);
        return found.count() + parents(p);
    }
    bool siblings_;
};

[[maybe_unused]] const bool added =
    add_variants<one_map<mod::map<u64, u64>>>("map/words", 12U) &&
    add_variants<one_map<mod::map<u64, u64, poor_hash>>>("map/collisions", 12U) &&
    add_variants<one_map<mod::map<std::string, std::string>>>("map/strings", 6U) &&
    add_variants<one_map<mod::map<u64, std::string>>>("map/words to strings", 4U) &&
    add_variants<one_map<mod::set<u64>>>("set/words", 12U) &&
    add_variants<one_map<mod::set<std::string>>>("set/strings", 4U) &&
    add_variants<one_map<mod::ordered_map<u64, u64>>>("ordered map/words", 12U) &&
    add_variants<one_map<mod::ordered_map<u64, wide>>>("ordered map/levels", 14U) &&
    add_variants<one_map<mod::ordered_map<std::string, std::string>>>("ordered map/strings", 4U) &&
    add_variants<two_maps>("maps/unrelated", false) &&
    add_variants<two_maps>("maps/siblings", true);

} // namespace
