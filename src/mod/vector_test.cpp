// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: mod::vector is a std::vector, whatever its elements and the mode, keeps no node that nobody
// names, and writes few lines. Method: random updates with fixed seeds beside std::vector, through
// handles, batches and versions, compared as a whole; nodes counted by a walk of the vector's kind;
// pools that run full; reopening; damaged nodes. Crashes are the business of the crash checker.
#include <holdfast/mod/store.hpp>
#include <holdfast/mod/update.hpp>
#include <holdfast/mod/vector.hpp>
#include <holdfast/persist.hpp>
#include <holdfast/pool.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <list>
#include <memory>
#include <numeric>
#include <random>
#include <ranges>
#include <string>
#include <thread>
#include <tuple>
#include <unistd.h>
#include <unordered_set>
#include <vector>

namespace {

using namespace hf::literals;
namespace mod = hf::mod;
using hf::errc;
using hf::status;

template <std::size_t Bytes> struct bytes_of {
    std::array<std::uint8_t, Bytes> at;
    bool operator==(const bytes_of&) const = default;
};

using numbers = mod::vector<std::uint64_t>;
using texts = mod::vector<std::string>;

static_assert(std::random_access_iterator<numbers::iterator>);
static_assert(std::random_access_iterator<texts::iterator>);
static_assert(std::ranges::random_access_range<const numbers>);
static_assert(std::ranges::sized_range<const numbers>);
static_assert(std::ranges::common_range<const numbers>);
static_assert(std::ranges::random_access_range<const texts>);
static_assert(std::ranges::random_access_range<const numbers::version>);
static_assert(std::ranges::random_access_range<const texts::batch>);
static_assert(std::is_same_v<decltype(std::declval<const numbers&>()[0]), const std::uint64_t&>);
static_assert(std::is_same_v<decltype(std::declval<const texts&>()[0]), std::string_view>);
static_assert(std::is_same_v<numbers::found, const std::uint64_t*>);
static_assert(std::is_copy_constructible_v<numbers> && !std::is_default_constructible_v<numbers>);

template <class T> T made_of(std::uint64_t n) {
    if constexpr (std::is_same_v<T, std::string>) {
        return std::to_string(n) + std::string(n % 13 == 0 ? 280 : n % 5, static_cast<char>(n % 3));
    } else {
        T made{};
        for (std::size_t at = 0; at < sizeof made; at += 8, n = n * 0x9e3779b97f4a7c15 + 1)
            std::memcpy(reinterpret_cast<char*>(&made) + at, &n,
                        std::min<std::size_t>(8, sizeof made - at));
        return made;
    }
}

/// Every node that a word reaches: what reclamation goes by.
struct reached_nodes final : mod::visitor {
    struct named {
        mod::ref at;
        std::uint32_t context;
    };
    std::vector<named> left;
    std::unordered_set<mod::ref> seen;

    void node(mod::ref at, std::size_t, std::uint32_t context) override {
        if (seen.insert(at).second) left.push_back({at, context});
    }
    void follow(mod::root& from) {
        const mod::kind& kind = mod::detail::vector_kind;
        kind.top(*this, from.base(), from.word(), from.shape());
        while (!left.empty()) {
            const named next = left.back();
            left.pop_back();
            kind.children(*this, mod::detail::node_at<std::byte>(from.base(), next.at),
                          mod::node_bytes_max, next.context, from.shape());
        }
    }
};

template <class T> using model = std::vector<T>;

template <class Vector, class T> void expect_same(const Vector& v, const model<T>& expected) {
    ASSERT_EQ(v.size(), expected.size());
    ASSERT_EQ(v.empty(), expected.empty());
    ASSERT_TRUE(std::ranges::equal(v, expected));
    for (std::size_t i = 0; i < v.size(); i += 1 + i / 7) ASSERT_EQ(v[i], expected[i]) << i;
}

/// One random update of a batch and of what it should be.
template <class T, class Batch> void change_once(Batch& to, model<T>& m, std::mt19937_64& random) {
    const auto below = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
    const std::size_t i = below(m.size());
    const std::size_t j = i + below(m.size() - i);
    const T value = made_of<T>(random());
    const auto at = [&](std::size_t n) { return m.begin() + static_cast<std::ptrdiff_t>(n); };
    const std::uint64_t what = random() % 16;
    if (what < 4) {
        to.push_back(value);
        m.push_back(value);
    } else if (what < 6) {
        model<T> more;
        for (std::size_t n = below(200); n > 0; --n) more.push_back(made_of<T>(random()));
        to.append_range(more);
        m.insert(m.end(), more.begin(), more.end());
    } else if (m.empty()) {
        to.insert(0, value);
        m.insert(at(0), value);
    } else if (what < 9) {
        to.set(i, value);
        m[i] = value;
    } else if (what == 9) {
        to.swap(i, j);
        std::swap(m[i], m[j]);
    } else if (what == 10) {
        to.pop_back();
        m.pop_back();
    } else if (what == 11) {
        to.insert(i, value);
        m.insert(at(i), value);
    } else if (what == 12) {
        to.erase(i);
        m.erase(at(i));
    } else if (what == 13) {
        to.erase(i, i + (j - i) / 8);
        m.erase(at(i), at(i + (j - i) / 8));
    } else if (what == 14) {
        const std::size_t count = m.size() - below(m.size() / 4);
        to.take(count);
        m.resize(count);
    } else {
        const std::size_t count = below(m.size() / 4);
        to.drop(count);
        m.erase(m.begin(), at(count));
    }
}

class pools {
public:
    pools() {
        path_ = "/dev/shm/mod_vector_" + std::to_string(getpid()) + ".hf";
        std::filesystem::remove(path_);
    }
    ~pools() {
        pool_.reset();
        std::filesystem::remove(path_);
    }
    void open(hf::mode mode, std::uint64_t max_bytes = 0) {
        hf::open_options how;
        how.layout = "mod vector test";
        how.create_bytes = 1_MiB;
        how.max_bytes = max_bytes;
        how.mode = mode;
        how.engines = {mod::engine()};
        auto opened = hf::pool::open(path_, how);
        ASSERT_TRUE(opened) << opened.error().what();
        pool_ = std::make_unique<hf::pool>(std::move(*opened));
    }
    void make_new(hf::mode mode, std::uint64_t max_bytes = 0) {
        pool_.reset();
        std::filesystem::remove(path_);
        open(mode, max_bytes);
    }
    void reopen(hf::mode mode) {
        pool_.reset();
        open(mode);
    }
    template <class T> mod::vector<T> vector(const char* name = "v") {
        auto opened = mod::vector<T>::open(*pool_, {name});
        EXPECT_TRUE(opened) << opened.error().what();
        return *opened;
    }
    mod::store& store() { return mod::store::of(*pool_); }
    hf::pool& pool() { return *pool_; }
    /// What is in use is what these reach.
    void expect_no_other_nodes(std::initializer_list<mod::root*> roots) {
        EXPECT_TRUE(store().collect().ok());
        const status sound = store().verify();
        EXPECT_TRUE(sound.ok()) << sound.what();
        reached_nodes reached;
        for (mod::root* r : roots) reached.follow(*r);
        EXPECT_EQ(store().account().nodes, reached.seen.size());
        EXPECT_EQ(store().account().retired, 0U);
    }

private:
    std::string path_;
    std::unique_ptr<hf::pool> pool_;
};

constexpr hf::mode both_modes[] = {hf::mode::process, hf::mode::pmem};

template <class T> class mod_vector_of : public testing::Test {
protected:
    pools in_;
};
using element_types = testing::Types<std::uint8_t, std::uint32_t, std::uint64_t, bytes_of<24>,
                                     bytes_of<40>, bytes_of<256>, std::string>;
TYPED_TEST_SUITE(mod_vector_of, element_types);

TYPED_TEST(mod_vector_of, does_what_a_standard_vector_does) {
    using T = TypeParam;
    for (const hf::mode mode : both_modes) {
        this->in_.make_new(mode);
        auto v = this->in_.template vector<T>();
        model<T> m;
        constexpr unsigned seed = 1;
        SCOPED_TRACE(testing::Message() << "seed " << seed);
        std::mt19937_64 random(seed);
        for (int step = 0; step < 1500; ++step) {
            const status done = v.update([&](auto& to) {
                for (auto n = random() % 3 == 0 ? random() % 9 : 1; n > 0; --n)
                    change_once<T>(to, m, random);
            });
            ASSERT_TRUE(done.ok()) << done.what();
            if (step % 16 == 0) expect_same(v, m);
            if (this->HasFatalFailure()) FAIL() << "step " << step;
        }
        expect_same(v, m);
        this->in_.expect_no_other_nodes({v.of()});
        ASSERT_TRUE(v.clear().ok());
        this->in_.expect_no_other_nodes({v.of()});
        EXPECT_EQ(this->in_.store().account().nodes, 0U);
    }
}

TYPED_TEST(mod_vector_of, keeps_snapshots_as_they_were) {
    using T = TypeParam;
    for (const hf::mode mode : both_modes) {
        this->in_.make_new(mode);
        auto v = this->in_.template vector<T>();
        std::mt19937_64 random(2);
        model<T> m;
        std::list<std::pair<typename mod::vector<T>::version, model<T>>> kept;
        for (int step = 0; step < 600; ++step) {
            ASSERT_TRUE(v.update([&](auto& to) { change_once<T>(to, m, random); }).ok());
            if (random() % 8 == 0) kept.emplace_back(v.snapshot(), m);
            if (kept.size() > 12) kept.erase(std::next(kept.begin(), random() % 12));
        }
        for (const auto& [version, expected] : kept) expect_same(version, expected);
        kept.clear();
        this->in_.expect_no_other_nodes({v.of()});
    }
}

TYPED_TEST(mod_vector_of, makes_versions_without_changing_others) {
    using T = TypeParam;
    this->in_.make_new(hf::mode::pmem);
    auto v = this->in_.template vector<T>();
    {
        using pair = std::pair<typename mod::vector<T>::version, model<T>>;
        std::mt19937_64 random(3);
        std::vector<pair> all{{v.snapshot(), {}}};
        for (int step = 0; step < 400; ++step) {
            pair next = all[random() % 4 == 0 ? random() % all.size() : all.size() - 1];
            if (random() % 12 == 0 && next.second.size() < 3000) {
                const pair& behind = all[random() % all.size()];
                next.first = next.first.append(behind.first);
                next.second.insert(next.second.end(), behind.second.begin(), behind.second.end());
            } else {
                next.first =
                    next.first.update([&](auto& to) { change_once<T>(to, next.second, random); });
            }
            all.push_back(std::move(next));
        }
        for (const auto& [version, expected] : all) expect_same(version, expected);
        const auto& [last, expected] = all.back();
        const status done = v.commit(last);
        ASSERT_TRUE(done.ok()) << done.what();
        expect_same(v, expected);
        EXPECT_EQ(v.commit(all[all.size() / 2].first).code(), errc::conflict);
    }
    this->in_.expect_no_other_nodes({v.of()});
}

TYPED_TEST(mod_vector_of, doubles_itself_and_shares_its_nodes) {
    using T = TypeParam;
    this->in_.make_new(hf::mode::pmem);
    auto v = this->in_.template vector<T>();
    std::mt19937_64 random(4);
    model<T> m;
    for (int i = 0; i < 777; ++i) m.push_back(made_of<T>(random()));
    ASSERT_TRUE(v.assign(m).ok());
    for (int doubled = 0; doubled < 4; ++doubled) {
        ASSERT_TRUE(v.append(v.snapshot()).ok());
        m.reserve(2 * m.size());
        m.insert(m.end(), m.begin(), m.end());
        expect_same(v, m);
        this->in_.expect_no_other_nodes({v.of()});
        // What is shared is changed in one place only, and given up in one.
        for (int change = 0; change < 40; ++change) {
            ASSERT_TRUE(v.update([&](auto& to) { change_once<T>(to, m, random); }).ok());
        }
        expect_same(v, m);
        this->in_.expect_no_other_nodes({v.of()});
    }
    ASSERT_TRUE(v.append(v.snapshot()).ok());
    EXPECT_GT(this->in_.store().account().shared_nodes, 0U);
    ASSERT_TRUE(v.clear().ok());
    this->in_.expect_no_other_nodes({v.of()});
    EXPECT_EQ(this->in_.store().account().shared_nodes, 0U);
}

TYPED_TEST(mod_vector_of, is_there_after_a_close) {
    using T = TypeParam;
    for (const hf::mode mode : both_modes) {
        this->in_.make_new(mode);
        model<T> m;
        std::mt19937_64 random(5);
        for (int opened = 0; opened < 4; ++opened) {
            auto v = this->in_.template vector<T>();
            expect_same(v, m);
            ASSERT_TRUE(v.append(v.snapshot()).ok());
            m.reserve(2 * m.size());
            m.insert(m.end(), m.begin(), m.end());
            for (int change = 0; change < 60; ++change) {
                ASSERT_TRUE(v.update([&](auto& to) { change_once<T>(to, m, random); }).ok());
            }
            this->in_.reopen(mode);
        }
        auto v = this->in_.template vector<T>();
        expect_same(v, m);
        this->in_.expect_no_other_nodes({v.of()});
    }
}

TYPED_TEST(mod_vector_of, stays_as_it_was_when_the_pool_is_full) {
    using T = TypeParam;
    this->in_.make_new(hf::mode::pmem, 1_MiB);
    auto v = this->in_.template vector<T>();
    std::mt19937_64 random(6);
    model<T> m;
    unsigned refused = 0;
    for (int step = 0; step < 400; ++step) {
        model<T> next = m;
        model<T> more;
        const std::size_t added = 200'000 / sizeof(T);
        while (more.size() < added) more.push_back(made_of<T>(random()));
        const status done = v.update([&](auto& to) {
            to.append_range(more);
            next.insert(next.end(), more.begin(), more.end());
            for (int i = 0; i < 6; ++i) {
                if (to.failed()) next = m; // indices of both agree as long as it is read
                else change_once<T>(to, next, random);
            }
        });
        if (done.ok()) m = std::move(next);
        else {
            ASSERT_EQ(done.code(), errc::pool_full);
            expect_same(v, m);
            if (this->HasFatalFailure()) FAIL() << "step " << step;
            if (++refused % 3 == 0) {
                ASSERT_TRUE(v.take(m.size() / 2).ok());
                m.resize(m.size() / 2);
            }
        }
        if (refused > 12) break;
    }
    EXPECT_GT(refused, 6U);
    expect_same(v, m);
    this->in_.expect_no_other_nodes({v.of()});
}

class mod_vector : public testing::Test {
protected:
    pools in_;
};

TEST_F(mod_vector, keeps_trees_low_over_slices_and_concatenations) {
    in_.make_new(hf::mode::process);
    auto v = in_.vector<std::uint64_t>();
    constexpr auto leaf = mod::detail::vector_layout<std::uint64_t>::leaf;
    using tree = mod::detail::rrb::tree_of<leaf>;
    unsigned above_least = 0;
    for (const unsigned seed : {11U, 12U, 13U}) {
        std::mt19937_64 random(seed);
        model<std::uint64_t> m(3000);
        std::iota(m.begin(), m.end(), seed);
        ASSERT_TRUE(v.assign(m).ok());
        for (int step = 0; step < 3000; ++step) {
            const std::size_t i = random() % (m.size() + 1);
            const std::size_t j = i + random() % (m.size() + 1 - i);
            // m = [0, j) and then [i, end): grows and shrinks, and cuts where it was joined.
            ASSERT_TRUE(v.update([&](auto& to) { to.slice(0, j); }).ok());
            const auto front = v.snapshot();
            model<std::uint64_t> next(m.begin(), m.begin() + static_cast<std::ptrdiff_t>(j));
            if (next.size() < 60'000) {
                ASSERT_TRUE(v.commit(front.append(front).drop(std::min(i, next.size()))).ok());
                const model<std::uint64_t> copy = next;
                next.insert(next.end(), copy.begin(), copy.end());
                next.erase(next.begin(),
                           next.begin() + static_cast<std::ptrdiff_t>(std::min(i, copy.size())));
            }
            if (next.size() < 100) {
                for (std::uint64_t n = 0; n < 500; ++n) next.push_back(n);
                ASSERT_TRUE(v.assign(next).ok());
            }
            m = std::move(next);
            const auto top = mod::detail::rrb::top_of(v.word());
            above_least =
                std::max(above_least, tree::height_of(v.base(), top) - leaf.height_for(top.count));
            if (step % 100 == 0) expect_same(v, m);
            if (HasFatalFailure()) FAIL() << "seed " << seed << ", step " << step;
        }
        expect_same(v, m);
    }
    EXPECT_LE(above_least, 1U);
    in_.expect_no_other_nodes({v.of()});
}

TEST_F(mod_vector, appends_another_vector_when_that_is_still_current) {
    in_.make_new(hf::mode::pmem);
    auto a = in_.vector<std::string>("a");
    auto b = in_.vector<std::string>("b");
    model<std::string> ma;
    model<std::string> mb;
    for (std::uint64_t i = 0; i < 500; ++i) ma.push_back(made_of<std::string>(i));
    for (std::uint64_t i = 0; i < 900; ++i) mb.push_back(made_of<std::string>(~i));
    ASSERT_TRUE(a.assign(ma).ok());
    ASSERT_TRUE(b.assign(mb).ok());
    {
        const auto joined = a.snapshot().append(b.snapshot());
        ASSERT_TRUE(b.push_back("later").ok());
        EXPECT_EQ(a.commit(joined).code(), errc::conflict);
        expect_same(a, ma);
        mb.push_back("later");
    }
    {
        const auto then = b.snapshot(); // of then, by now: its elements are copied
        ASSERT_TRUE(b.pop_back().ok());
        const auto joined = a.snapshot().append(then);
        ASSERT_TRUE(a.commit(joined).ok());
        ma.insert(ma.end(), mb.begin(), mb.end());
        mb.pop_back();
        expect_same(a, ma);
        EXPECT_EQ(in_.store().account().shared_nodes, 0U);
    }
    const auto before = in_.store().account().node_bytes;
    ASSERT_TRUE(a.append(b.snapshot()).ok());
    EXPECT_LT(in_.store().account().node_bytes, before + 4000);
    ma.insert(ma.end(), mb.begin(), mb.end());
    expect_same(a, ma);
    expect_same(b, mb);
    in_.expect_no_other_nodes({a.of(), b.of()});
    // Each goes its own way.
    std::mt19937_64 random(21);
    for (int step = 0; step < 300; ++step) {
        ASSERT_TRUE(a.update([&](auto& to) { change_once<std::string>(to, ma, random); }).ok());
        ASSERT_TRUE(b.update([&](auto& to) { change_once<std::string>(to, mb, random); }).ok());
    }
    expect_same(a, ma);
    expect_same(b, mb);
    in_.expect_no_other_nodes({a.of(), b.of()});
    ASSERT_TRUE(a.clear().ok());
    expect_same(b, mb);
    in_.expect_no_other_nodes({a.of(), b.of()});
}

TEST_F(mod_vector, keeps_a_snapshot_of_nodes_that_another_vector_gives_up_last) {
    in_.make_new(hf::mode::process);
    auto a = in_.vector<std::uint64_t>("a");
    auto b = in_.vector<std::uint64_t>("b");
    model<std::uint64_t> m(5000);
    std::iota(m.begin(), m.end(), 0);
    ASSERT_TRUE(b.assign(m).ok());
    ASSERT_TRUE(a.append(b.snapshot()).ok());
    const auto then = b.snapshot();
    ASSERT_TRUE(b.clear().ok());
    ASSERT_TRUE(a.clear().ok());
    ASSERT_TRUE(in_.store().collect().ok());
    ASSERT_TRUE(
        a.assign(std::views::iota(std::uint64_t{1'000'000}, std::uint64_t{1'020'000})).ok());
    expect_same(then, m);
}

TEST_F(mod_vector, refuses_indices_that_no_element_has) {
    in_.make_new(hf::mode::process);
    auto v = in_.vector<std::uint64_t>();
    EXPECT_EQ(v.pop_back().code(), errc::bad_argument);
    EXPECT_EQ(v.set(0, 1).code(), errc::bad_argument);
    ASSERT_TRUE(v.insert(0, 5).ok());
    EXPECT_EQ(v.insert(2, 1).code(), errc::bad_argument);
    EXPECT_EQ(v.erase(1).code(), errc::bad_argument);
    EXPECT_EQ(v.erase(0, 2).code(), errc::bad_argument);
    EXPECT_EQ(v.swap(0, 1).code(), errc::bad_argument);
    EXPECT_EQ(v.at(1), nullptr);
    ASSERT_NE(v.at(0), nullptr);
    EXPECT_EQ(*v.at(0), 5U);
    EXPECT_EQ(v.front(), 5U);
    EXPECT_EQ(v.back(), 5U);
    const auto in_another = [](auto&& action) { // a child has no part in its parent's pool
        pools own;
        own.make_new(hf::mode::process);
        std::filesystem::remove(own.pool().path());
        auto one = own.vector<std::uint64_t>();
        if (one.push_back(5).ok()) action(one);
    };
    EXPECT_DEATH(in_another([](auto& one) { static_cast<void>(one[1]); }),
                 "no element 1 in a vector of 1");
    EXPECT_DEATH(in_another([](auto& one) {
                     static_cast<void>(one.update([](auto& to) { to.set(1, 0); }));
                 }),
                 "no element 1");
    EXPECT_EQ(in_.vector<std::string>("s").at(0), std::nullopt);
    auto other = mod::vector<std::uint32_t>::open(in_.pool(), {"v"});
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().code(), errc::wrong_layout);
}

TEST_F(mod_vector, has_iterators_that_algorithms_take) {
    in_.make_new(hf::mode::process);
    auto v = in_.vector<std::uint64_t>();
    ASSERT_TRUE(v.assign(std::views::iota(std::uint64_t{0}, std::uint64_t{10'000})).ok());
    ASSERT_TRUE(v.erase(5000, 5003).ok()); // relaxed from here on
    EXPECT_EQ(*std::ranges::lower_bound(v, 7777U), 7777U);
    EXPECT_EQ(std::ranges::lower_bound(v, 7777U) - v.begin(), 7774);
    EXPECT_TRUE(std::ranges::is_sorted(v));
    EXPECT_EQ(std::accumulate(v.begin(), v.end(), std::uint64_t{0}),
              std::uint64_t{10'000} * 9'999 / 2 - 5000 - 5001 - 5002);
    auto it = v.end();
    std::uint64_t expected = 9'999;
    while (it != v.begin()) {
        EXPECT_EQ(*--it, expected);
        expected = expected == 5003 ? 4999 : expected - 1;
    }
    EXPECT_EQ(v.begin()[4999], 4999U);
    EXPECT_EQ((v.begin() + 6000)[-1000], 5003U);
    EXPECT_EQ(*(9'000 + v.begin() - 5), 8'998U);
    EXPECT_LT(v.begin() + 1, v.end());
    std::vector<std::uint64_t> reversed(std::make_reverse_iterator(v.end()),
                                        std::make_reverse_iterator(v.begin()));
    EXPECT_TRUE(std::ranges::equal(v | std::views::reverse, reversed));
}

TEST_F(mod_vector, sorts_by_swaps_in_one_section) {
    in_.make_new(hf::mode::pmem);
    auto v = in_.vector<std::string>();
    model<std::string> m;
    std::mt19937_64 random(31);
    for (int i = 0; i < 300; ++i) m.push_back(made_of<std::string>(random() % 1000));
    ASSERT_TRUE(v.assign(m).ok());
    const auto sections = hf::persist::thread_counters().sections;
    ASSERT_TRUE(v.update([](auto& to) { // heap sort
                     const auto sift = [&](std::size_t i, std::size_t n) {
                         for (std::size_t child; (child = 2 * i + 1) < n; i = child) {
                             if (child + 1 < n && to[child] < to[child + 1]) ++child;
                             if (to[i] >= to[child]) return;
                             to.swap(i, child);
                         }
                     };
                     for (std::size_t i = to.size() / 2; i-- > 0;) sift(i, to.size());
                     for (std::size_t n = to.size(); n-- > 1;) {
                         to.swap(0, n);
                         sift(0, n);
                     }
                 })
                    .ok());
    EXPECT_EQ(hf::persist::thread_counters().sections, sections + 1);
    std::ranges::sort(m);
    expect_same(v, m);
    in_.expect_no_other_nodes({v.of()});
}

TEST_F(mod_vector, commits_two_vectors_together) {
    in_.make_new(hf::mode::pmem);
    auto a = in_.vector<std::uint64_t>("a");
    auto b = in_.vector<std::uint64_t>("b");
    ASSERT_TRUE(a.push_back(7).ok());
    const auto next_a = a.snapshot().pop_back();
    const auto next_b = b.snapshot().push_back(a.back());
    ASSERT_TRUE(in_.store().commit({{a.of(), &next_a}, {b.of(), &next_b}}).ok());
    EXPECT_TRUE(a.empty());
    EXPECT_EQ(b.front(), 7U);
}

TEST_F(mod_vector, is_changed_in_one_section_with_another) {
    in_.make_new(hf::mode::pmem);
    auto a = in_.vector<std::uint64_t>("a");
    auto b = in_.vector<std::string>("b");
    for (std::uint64_t i = 0; i < 100; ++i)
        ASSERT_TRUE(mod::update(std::tie(a, b), [&](auto& a, auto& b) {
                        a.push_back(i);
                        b.push_back(std::to_string(i));
                        return i % 10 != 9;
                    }).ok());
    ASSERT_EQ(a.size(), 90U);
    ASSERT_EQ(b.size(), 90U);
    for (std::size_t i = 0; i < 90; ++i) EXPECT_EQ(std::to_string(a[i]), b[i]);
    in_.expect_no_other_nodes({a.of(), b.of()});
}

TEST_F(mod_vector, is_read_on_snapshots_while_it_is_written) {
    in_.make_new(hf::mode::process);
    auto v = in_.vector<std::uint64_t>();
    ASSERT_TRUE(v.assign(std::views::iota(std::uint64_t{0}, std::uint64_t{2000})).ok());
    // Updates keep the sum; each snapshot must have it.
    constexpr std::uint64_t sum = std::uint64_t{2000} * 1999 / 2;
    std::atomic<bool> stop{false};
    std::thread reader([&] {
        while (!stop) {
            const auto now = v.snapshot();
            ASSERT_EQ(std::accumulate(now.begin(), now.end(), std::uint64_t{0}), sum);
        }
    });
    std::mt19937_64 random(41);
    for (int step = 0; step < 3000; ++step) {
        const std::size_t i = random() % 2000;
        if (step % 3 == 0) EXPECT_TRUE(v.swap(i, random() % 2000).ok());
        else if (step % 3 == 1)
            EXPECT_TRUE(v.update([&](auto& to) {
                             const std::uint64_t value = to[i];
                             to.erase(i);
                             to.insert(random() % 1999, value);
                         }).ok());
        else
            EXPECT_TRUE(v.update([&](auto& to) {
                             const std::uint64_t last = to.back();
                             to.pop_back();
                             to.push_back(last);
                         }).ok());
    }
    stop = true;
    reader.join();
    in_.expect_no_other_nodes({v.of()});
}

TEST_F(mod_vector, stores_elements_in_place_unless_somebody_could_see_it) {
    const auto run = [&]<class T>(T) {
        in_.make_new(hf::mode::pmem, 16_MiB);
        auto v = in_.vector<T>(), other = in_.vector<T>("other");
        for (int i = 0; i < 100; ++i) ASSERT_TRUE(v.push_back(T(i)).ok());
        const auto held = v.snapshot();
        for (int i = 0; i < 100; ++i) ASSERT_TRUE(v.set(i, T(i + 1)).ok());
        for (int i = 0; i < 100; ++i) ASSERT_EQ(held[i], T(i));
        ASSERT_TRUE(other.append(held.take(0).append(v.snapshot())).ok());
        ASSERT_TRUE(other.assign(std::vector<T>{}).ok());
        ASSERT_TRUE(other.append(v.snapshot()).ok()); // shares v's nodes
        for (int i = 0; i < 100; ++i) ASSERT_TRUE(v.set(i, T(i + 2)).ok());
        for (int i = 0; i < 100; ++i) ASSERT_EQ(other[i], T(i + 1));
        for (int i = 0; i < 100; ++i) ASSERT_EQ(v[i], T(i + 2));
        EXPECT_EQ(v.set(100, T(1)).code(), hf::errc::bad_argument);
    };
    run(std::uint8_t{});
    run(std::uint16_t{});
    run(std::uint32_t{});
    run(std::uint64_t{});
    run(double{});
}

// The writer's k-th set stores k in element k % n: whatever moment a snapshot shows, it has n
// numbers in a row, and shows them again.
TEST_F(mod_vector, snapshots_beside_stores_in_place_show_one_moment) {
    in_.make_new(hf::mode::process, 16_MiB);
    auto v = in_.vector<std::uint64_t>();
    constexpr std::uint64_t n = 40;
    ASSERT_TRUE(v.assign(std::views::iota(std::uint64_t{0}, n)).ok());
    std::atomic<bool> stop{false};
    std::vector<std::thread> readers;
    for (int r = 0; r < 2; ++r)
        readers.emplace_back([&] {
            for (std::uint64_t newest = 0; !stop;) {
                const auto s = v.snapshot();
                const std::vector<std::uint64_t> once(s.begin(), s.end());
                const std::uint64_t last = *std::ranges::max_element(once);
                for (std::uint64_t i = 0; i < n; ++i)
                    ASSERT_EQ(once[i], last - (last - i) % n) << i << ", newest " << last;
                EXPECT_TRUE(std::ranges::equal(once, s));
                EXPECT_GE(last, newest);
                newest = last;
            }
        });
    for (std::uint64_t k = n; k < 60'000; ++k) ASSERT_TRUE(v.set(k % n, k).ok());
    stop = true;
    for (auto& r : readers) r.join();
}

TEST_F(mod_vector, writes_seven_lines_for_an_element_of_a_million) {
    in_.make_new(hf::mode::pmem, 512_MiB);
    auto v = in_.vector<std::uint64_t>();
    ASSERT_TRUE(v.assign(std::views::iota(std::uint64_t{0}, std::uint64_t{1'000'000})).ok());
    std::mt19937_64 random(51);
    const auto lines = [&](auto&& once) {
        for (int i = 0; i < 1000; ++i) EXPECT_TRUE(once().ok()); // nodes to take are at hand
        const auto before = hf::persist::thread_counters();
        for (int i = 0; i < 100; ++i) EXPECT_TRUE(once().ok());
        const auto& after = hf::persist::thread_counters();
        EXPECT_EQ(after.ordering_points - before.ordering_points, 100U);
        return static_cast<double>(after.flushes - before.flushes + after.nt_stores -
                                   before.nt_stores) /
               100;
    };
    const auto set = [&] { return v.set(random() % v.size(), random()); };
    EXPECT_EQ(lines(set), 1.0) << "in place: nobody holds a version";
    {
        const auto held = v.snapshot();
        const auto before = hf::persist::thread_counters().flushes;
        EXPECT_TRUE(set().ok());
        EXPECT_GE(hf::persist::thread_counters().flushes - before, 6U) << "its way was copied";
    }
    EXPECT_EQ(lines(set), 1.0);
    EXPECT_LE(lines([&] { return v.swap(random() % v.size(), random() % v.size()); }), 12.0);
    EXPECT_LE(lines([&] { return v.push_back(1); }), 7.0);
    EXPECT_LE(lines([&] { return v.pop_back(); }), 1.5);
}

TEST_F(mod_vector, takes_little_more_memory_than_its_elements) {
    in_.make_new(hf::mode::process, 512_MiB);
    auto v = in_.vector<std::uint64_t>();
    ASSERT_TRUE(v.assign(std::views::iota(std::uint64_t{0}, std::uint64_t{100'000})).ok());
    ASSERT_TRUE(in_.store().collect().ok());
    const auto once = in_.store().account().node_bytes;
    EXPECT_LE(static_cast<double>(once), 8.3 * 100'000);
    ASSERT_TRUE(v.update([](auto& to) {
                     for (std::uint64_t i = 0; i < 100'000; ++i) to.push_back(i);
                 }).ok());
    ASSERT_TRUE(in_.store().collect().ok());
    EXPECT_LE(in_.store().account().node_bytes, 2.01 * static_cast<double>(once));
}

/// Verification reads any bytes as nodes and never leaves them.
TEST_F(mod_vector, is_verified_with_damaged_nodes) {
    in_.make_new(hf::mode::process);
    auto v = in_.vector<std::string>();
    model<std::string> m;
    for (std::uint64_t i = 0; i < 2000; ++i) m.push_back(made_of<std::string>(i));
    ASSERT_TRUE(v.assign(m).ok());
    ASSERT_TRUE(v.insert(1000, "makes nodes relaxed").ok());
    reached_nodes reached;
    reached.follow(*v.of());
    const std::vector<mod::ref> nodes(reached.seen.begin(), reached.seen.end());
    std::mt19937_64 random(61);
    unsigned found = 0;
    for (int damage = 0; damage < 2000; ++damage) {
        const mod::ref node = nodes[random() % nodes.size()];
        auto* words = const_cast<std::uint32_t*>(
            mod::detail::node_at<std::uint32_t>(v.base(), node) + random() % 4);
        const std::uint32_t was = *words;
        *words = random() % 2 ? static_cast<std::uint32_t>(random()) : was ^ 1U << random() % 32;
        found += !in_.store().verify().ok();
        *words = was;
    }
    EXPECT_GT(found, 300U);
    EXPECT_TRUE(in_.store().verify().ok());
}

} // namespace
