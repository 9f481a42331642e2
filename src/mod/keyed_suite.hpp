// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The generic suite's configuration for maps, sets and ordered maps; their model is a std::map.
#pragma once

#include <mod/container_suite.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>
#include <type_traits>

namespace hf::mod::test {

template <class Container> constexpr bool is_ordered =
    requires { typename Container::key_compare; };
template <class Container> constexpr bool has_values =
    requires { typename Container::mapped_type; };

template <class Container> struct mapped_of {
    using type = empty;
};
template <class Container>
    requires has_values<Container>
struct mapped_of<Container> {
    using type = typename Container::mapped_type;
};
template <class Container> struct order_of {
    using type = std::less<typename Container::key_type>;
};
template <class Container>
    requires is_ordered<Container>
struct order_of<Container> {
    struct type { // of keys, not of views
        bool operator()(const typename Container::key_type& a,
                        const typename Container::key_type& b) const {
            return typename Container::key_compare{}(a, b);
        }
    };
};

template <class Container, std::uint64_t Keys, int Steps> struct keyed {
    using container = Container;
    using version = typename Container::version;
    using key_type = typename Container::key_type;
    using mapped_type = typename mapped_of<Container>::type;
    using model = std::map<key_type, mapped_type, typename order_of<Container>::type>;
    static constexpr std::uint64_t seeds = 3;
    static constexpr int steps = Steps;

    static const mod::kind& kind() {
        return is_ordered<Container> ? detail::bplus_tree_kind : detail::hash_trie_kind;
    }
    static key_type key(std::uint64_t n) { return made_of<key_type>(n); }
    static mapped_type value(std::uint64_t n) {
        if constexpr (std::is_same_v<mapped_type, std::string>)
            if (n % 11 == 0) return {};
        return made_of<mapped_type>(n);
    }

    static auto insert(auto& to, const key_type& k, const mapped_type& v) {
        if constexpr (has_values<Container>) return to.insert(k, v);
        else return to.insert(k);
    }
    static auto assign(auto& to, const key_type& k, const mapped_type& v) {
        if constexpr (has_values<Container>) return to.insert_or_assign(k, v);
        else return to.insert(k);
    }
    static auto add(auto& to, std::uint64_t n) { return insert(to, key(n), value(n)); }
    static void added(model& m, std::uint64_t n) { m.emplace(key(n), value(n)); }

    static void expect(const auto& to, std::size_t said, std::size_t wanted) {
        if constexpr (requires { to.failed(); })
            if (to.failed()) return; // the pool is full
        EXPECT_EQ(said, wanted);
    }
    static void step(std::mt19937_64& random, int phase, auto& to, model& m) {
        const key_type k = key(random() % Keys);
        const mapped_type v = value(random());
        const std::uint64_t what = random() % 8;
        const std::uint64_t insertions = phase == 0 ? 4 : phase == 1 ? 3 : 2;
        if (what < insertions) return expect(to, told(insert(to, k, v)), m.emplace(k, v).second);
        if (what == insertions)
            return expect(to, told(assign(to, k, v)), m.insert_or_assign(k, v).second);
        if constexpr (is_ordered<Container>)
            if (what == insertions + 1 && random() % 32 == 0) {
                const key_type other = key(random() % Keys);
                const auto& [from, upto] = std::minmax(k, other, m.key_comp());
                const std::size_t before = m.size();
                m.erase(m.lower_bound(from), m.lower_bound(upto));
                return expect(to, told(to.erase(from, upto)), before - m.size());
            }
        expect(to, told(to.erase(k)), m.erase(k));
    }
    static version stepped(std::mt19937_64& random, const version& from, model& m) {
        const key_type k = key(random() % Keys);
        if (random() % 3 == 0) {
            m.erase(k);
            return from.erase(k);
        }
        const mapped_type v = value(random());
        if constexpr (has_values<Container>)
            if (random() % 2 == 0) {
                m.insert_or_assign(k, v);
                return from.insert_or_assign(k, v);
            }
        m.emplace(k, v);
        if constexpr (has_values<Container>) return from.insert(k, v);
        else return from.insert(k);
    }
    /// In order, as far as there is one: ascending, or descending.
    static void prefill(std::uint64_t seed, Container& to, model& m) {
        for (std::uint64_t i = 0; i < Keys / 2; ++i) {
            const std::uint64_t n = seed % 2 == 0 ? i : Keys - i;
            EXPECT_EQ(told(insert(to, key(n), value(n))), m.emplace(key(n), value(n)).second);
        }
    }
    static void drain(std::mt19937_64& random, Container& from, model& m) {
        while (!m.empty()) {
            const auto n = static_cast<std::ptrdiff_t>(random() % m.size());
            const key_type k = std::next(m.begin(), n)->first;
            EXPECT_TRUE(told(from.erase(k)));
            m.erase(k);
            if (m.size() % 256 == 0) {
                EXPECT_TRUE(same(from, m));
            }
        }
    }

    static decltype(auto) key_of(auto&& entry) {
        if constexpr (has_values<Container>) return (entry.first);
        else return (entry);
    }
    static std::uint64_t number(auto&& entry) { return key_of(entry); }
    static bool is(auto&& entry, const typename model::value_type& wanted) {
        if constexpr (has_values<Container>)
            if (mapped_type(entry.second) != wanted.second) return false;
        return key_type(key_of(entry)) == wanted.first;
    }
    static bool same(const auto& reader, const model& m) {
        if (reader.size() != m.size() || reader.empty() != m.empty()) return false;
        std::size_t seen = 0;
        for (auto&& entry : reader) { // no key twice, as each is found once and sizes agree
            const auto wanted = m.find(key_type(key_of(entry)));
            if (wanted == m.end() || !is(entry, *wanted)) return false;
            ++seen;
        }
        if (seen != m.size()) return false;
        for (const auto& wanted : m) {
            const auto found = reader.find(wanted.first);
            if (found == reader.end() || !is(*found, wanted)) return false;
            if (!reader.contains(wanted.first)) return false;
            if constexpr (has_values<Container>)
                if (mapped_type(*reader.get(wanted.first)) != wanted.second) return false;
        }
        if constexpr (is_ordered<Container>) return same_order(reader, m) && same_bounds(reader, m);
        return true;
    }
    static bool finds_all(const auto& reader) {
        for (auto&& entry : reader)
            if (reader.find(key_of(entry)) == reader.end()) return false;
        return true;
    }
    static bool same_order(const auto& reader, const model& m) {
        auto found = reader.begin();
        for (const auto& wanted : m)
            if (!is(*found++, wanted)) return false;
        if (found != reader.end()) return false;
        for (auto wanted = m.rbegin(); wanted != m.rend(); ++wanted)
            if (!is(*--found, *wanted)) return false;
        return found == reader.begin() &&
               (m.empty() || (is(reader.first(), *m.begin()) && is(reader.last(), *m.rbegin())));
    }
    /// Bounds of keys that are there and of others.
    static bool same_bounds(const auto& reader, const model& m) {
        static std::mt19937_64 random(1);
        const auto at = [&](const auto& found, const auto& wanted) {
            return wanted == m.end() ? found == reader.end() : is(*found, *wanted);
        };
        for (int i = 0; i < 20; ++i) {
            const key_type a = key(random() % (Keys + 20)), b = key(random() % (Keys + 20));
            const auto equal = reader.equal_range(a);
            if (!at(reader.find(a), m.find(a)) || !at(equal.first, m.lower_bound(a)) ||
                !at(equal.second, m.upper_bound(a)))
                return false;
            const auto& [from, upto] = std::minmax(a, b, m.key_comp());
            auto wanted = m.lower_bound(from);
            for (auto&& entry : reader.range(from, upto))
                if (!is(entry, *wanted++)) return false;
            if (wanted != m.lower_bound(upto)) return false;
        }
        return true;
    }
};

/// The cost of a call that changes nothing, and of one that changes something.
template <class Map> void expect_points_of_changes(Map map) {
    using value_type = typename Map::mapped_type;
    const auto value = made_of<value_type>(1);
    for (std::uint64_t i = 0; i < 2000; ++i) (void)told(map.insert(i, value));
    const auto insert = [&] { (void)told(map.insert(10'000, value)); };
    const auto erase = [&] { (void)told(map.erase(10'000)); };
    EXPECT_EQ(points_of(insert), 1U);
    EXPECT_EQ(points_of(insert), 0U);
    EXPECT_EQ(points_of([&] { (void)told(map.insert_or_assign(10'000, value)); }), 1U);
    EXPECT_EQ(points_of(erase), 1U);
    EXPECT_EQ(points_of(erase), 0U);
    if constexpr (is_ordered<Map>) {
        EXPECT_EQ(points_of([&] { EXPECT_EQ(told(map.erase(100, 1100)), 1000U); }), 1U);
        EXPECT_EQ(points_of([&] { EXPECT_EQ(told(map.erase(100, 1100)), 0U); }), 0U);
    }
}

inline bool is_wrong_layout(const auto& opened) {
    return !opened && opened.error().code() == errc::wrong_layout;
}

} // namespace hf::mod::test
