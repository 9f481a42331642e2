// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: mod::vector is a std::vector, whatever its elements and the mode, and writes few lines.
// Method: the generic suite, and what only vectors promise: concatenation and sharing, slices,
// stores in place, iterators, lines and bytes; nodes that are damaged.
#include <mod/container_suite.hpp>
#include <mod/rrb.hpp>

#include <holdfast/mod/update.hpp>
#include <holdfast/mod/vector.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>
#include <optional>
#include <random>
#include <ranges>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <vector>

namespace hf::mod::test {
namespace {

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

bool same(const auto& v, const auto& wanted) {
    if (v.size() != wanted.size() || v.empty() != wanted.empty()) return false;
    if (!std::ranges::equal(v, wanted)) return false;
    for (std::size_t i = 0; i < v.size(); i += 1 + i / 7)
        if (!(v[i] == wanted[i])) return false;
    return wanted.empty() || (v.front() == wanted.front() && v.back() == wanted.back());
}

/// The generic suite's configuration.
template <class T> struct vector_of {
    using container = mod::vector<T>;
    using version = typename container::version;
    using model = std::vector<T>;
    static constexpr std::uint64_t seeds = 1;
    static constexpr int steps = 1200;

    static const mod::kind& kind() { return mod::detail::vector_kind; }
    static T value(std::uint64_t n) {
        if constexpr (std::is_same_v<T, std::string>)
            if (n % 11 == 0) return {};
        return made_of<T>(n);
    }
    static void prefill(std::uint64_t, container&, model&) {}
    static auto add(auto& to, std::uint64_t n) {
        if constexpr (requires { to.failed(); }) return to.push_back(value(n));
        else return to.push_back(value(n)).ok();
    }
    static void added(model& m, std::uint64_t n) { m.push_back(value(n)); }
    static std::uint64_t number(const auto& element) { return element; }
    static bool same(const auto& reader, const model& m) { return test::same(reader, m); }

    /// One random update of whatever has these functions; 'did' looks at what they return.
    static void step(std::mt19937_64& random, int phase, auto& to, model& m) {
        change(random, phase, m, [&](auto&& update) {
            if constexpr (std::is_void_v<decltype(update(to))>) update(to);
            else (void)told(update(to));
        });
    }
    static version stepped(std::mt19937_64& random, version from, model& m) {
        if (random() % 6 == 0 && m.size() < 3000) { // itself, or a part of it that has to be copied
            const std::size_t count = m.size() - (m.empty() ? 0 : random() % 2);
            m.reserve(m.size() + count);
            m.insert(m.end(), m.begin(), m.begin() + static_cast<std::ptrdiff_t>(count));
            return from.append(from.take(count));
        }
        change(random, 0, m, [&](auto&& update) {
            if constexpr (std::is_same_v<decltype(update(from)), version>) from = update(from);
            else from = from.update([&](auto& batch) { update(batch); });
        });
        return from;
    }
    static void change(std::mt19937_64& random, int phase, model& m, const auto& did) {
        const auto below = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
        const std::size_t i = below(m.size());
        const std::size_t j = i + below(m.size() - i);
        const T one = value(random());
        const auto at = [&](std::size_t n) { return m.begin() + static_cast<std::ptrdiff_t>(n); };
        const std::uint64_t what = random() % 16 + (phase == 2 ? 2 : 0);
        if (what < 4) {
            did([&](auto& to) { return to.push_back(one); });
            m.push_back(one);
        } else if (what < 6) {
            model more;
            for (std::size_t n = below(phase == 1 ? 40 : 200); n > 0; --n)
                more.push_back(value(random()));
            did([&](auto& to) {
                if constexpr (requires { to.append_range(more); }) return to.append_range(more);
                else return to.update([&](auto& batch) { batch.append_range(more); });
            });
            m.insert(m.end(), more.begin(), more.end());
        } else if (m.empty()) {
            did([&](auto& to) { return to.insert(0, one); });
            m.insert(at(0), one);
        } else if (what < 9) {
            did([&](auto& to) { return to.set(i, one); });
            m[i] = one;
        } else if (what == 9) {
            did([&](auto& to) { return to.swap(i, j); });
            std::swap(m[i], m[j]);
        } else if (what == 10) {
            did([&](auto& to) { return to.pop_back(); });
            m.pop_back();
        } else if (what == 11) {
            did([&](auto& to) { return to.insert(i, one); });
            m.insert(at(i), one);
        } else if (what == 12) {
            did([&](auto& to) { return to.erase(i); });
            m.erase(at(i));
        } else if (what == 13) {
            did([&](auto& to) { return to.erase(i, i + (j - i) / 8); });
            m.erase(at(i), at(i + (j - i) / 8));
        } else if (what == 14) {
            const std::size_t count = m.size() - below(m.size() / 4);
            did([&](auto& to) { return to.take(count); });
            m.erase(at(count), m.end());
        } else {
            const std::size_t count = below(m.size() / 4);
            did([&](auto& to) { return to.drop(count); });
            m.erase(m.begin(), at(count));
        }
    }
    static void drain(std::mt19937_64& random, container& from, model& m) {
        while (!m.empty()) {
            const std::size_t count = m.size() - random() % (m.size() / 2 + 1) / 2 - 1;
            EXPECT_TRUE(from.take(count).ok() && from.drop(count / 8).ok());
            m.resize(count);
            m.erase(m.begin(), m.begin() + static_cast<std::ptrdiff_t>(count / 8));
            EXPECT_TRUE(same(from, m));
        }
    }
};

using each_form = testing::Types<vector_of<std::uint8_t>, vector_of<std::uint32_t>,
                                 vector_of<std::uint64_t>, vector_of<words<3>>, vector_of<words<5>>,
                                 vector_of<words<32>>, vector_of<std::string>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Vectors, ElementTest, each_form);
INSTANTIATE_TYPED_TEST_SUITE_P(Vectors, ContainerTest, each_form);
INSTANTIATE_TYPED_TEST_SUITE_P(Vectors, NumbersTest, testing::Types<vector_of<std::uint64_t>>);

template <class Config> class SharingTest : public ContainerTest<Config> {};
TYPED_TEST_SUITE(SharingTest, each_form);

TYPED_TEST(SharingTest, doubles_itself_and_shares_its_nodes) {
    this->in.make_new(hf::mode::pmem);
    auto v = this->in.template get<typename TypeParam::container>();
    std::mt19937_64 random(4);
    typename TypeParam::model m;
    for (int i = 0; i < 777; ++i) m.push_back(TypeParam::value(random()));
    ASSERT_TRUE(v.assign(m).ok());
    for (int doubled = 0; doubled < 4; ++doubled) {
        ASSERT_TRUE(v.append(v.snapshot()).ok());
        m.reserve(2 * m.size());
        m.insert(m.end(), m.begin(), m.end());
        EXPECT_TRUE(same(v, m));
        this->expect_no_other_nodes(v);
        // Changing or giving up a shared node leaves its other places alone.
        for (int change = 0; change < 40; ++change) {
            const auto done = v.update([&](auto& batch) { TypeParam::step(random, 0, batch, m); });
            ASSERT_TRUE(done.ok());
        }
        if (doubled % 2 == 0) this->in.open();
        else this->in.crash_and_open();
        v = this->in.template get<typename TypeParam::container>();
        EXPECT_TRUE(same(v, m));
        this->expect_no_other_nodes(v);
    }
    ASSERT_TRUE(v.append(v.snapshot()).ok());
    EXPECT_GT(this->in.store().account().shared_nodes, 0U);
    ASSERT_TRUE(v.clear().ok());
    this->expect_no_other_nodes(v);
    EXPECT_EQ(this->in.store().account().shared_nodes, 0U);
}

// Verification compares what a node leads to from each of its parents, which may count differently.
TYPED_TEST(SharingTest, is_verified_after_every_change_of_what_two_share) {
    this->in.make_new(hf::mode::process);
    auto a = this->in.template get<typename TypeParam::container>({"a"});
    auto b = this->in.template get<typename TypeParam::container>({"b"});
    std::mt19937_64 random(31);
    typename TypeParam::model ma;
    typename TypeParam::model mb;
    for (int i = 0; i < 300; ++i) ma.push_back(TypeParam::value(random()));
    ASSERT_TRUE(a.assign(ma).ok());
    for (int step = 0; step < 400; ++step) {
        if (step % 40 == 0) { // all of it, or on top of what is there
            if (mb.size() > 2000) ASSERT_TRUE(b.clear().ok()), mb.clear();
            ASSERT_TRUE(b.append(a.snapshot()).ok());
            mb.insert(mb.end(), ma.begin(), ma.end());
        }
        const auto cut = random() % 4;
        for (auto* of : {&a, &b}) {
            auto& m = of == &a ? ma : mb;
            const auto done = of->update([&](auto& batch) {
                for (auto n = cut; n-- > 0 && !m.empty(); m.pop_back()) batch.pop_back();
                if (cut % 2 != 0 || of == &b) TypeParam::step(random, 0, batch, m);
            });
            ASSERT_TRUE(done.ok());
        }
        ASSERT_EQ(this->in.store().verify().what(), std::string_view()) << "step " << step;
    }
    EXPECT_TRUE(same(a, ma));
    EXPECT_TRUE(same(b, mb));
}

class VectorTest : public testing::Test {
protected:
    /// The nodes in use are exactly those that these roots reach.
    void expect_no_other_nodes(std::initializer_list<const mod::root*> roots) {
        EXPECT_EQ(in.nodes_in_use(), nodes_of(mod::detail::vector_kind, roots));
        EXPECT_EQ(in.store().account().retired, 0U);
    }
    test_pool in;
};

TEST_F(VectorTest, keeps_trees_low_over_slices_and_concatenations) {
    in.make_new(hf::mode::process);
    auto v = in.get<numbers>();
    constexpr auto leaf = mod::detail::vector_layout<std::uint64_t>::leaf;
    unsigned above_least = 0;
    for (const unsigned seed : {11U, 12U, 13U}) {
        std::mt19937_64 random(seed);
        std::vector<std::uint64_t> m(3000);
        std::iota(m.begin(), m.end(), seed);
        ASSERT_TRUE(v.assign(m).ok());
        for (int step = 0; step < 3000; ++step) {
            const std::size_t i = random() % (m.size() + 1);
            const std::size_t j = i + random() % (m.size() + 1 - i);
            // m = [0, j) and then [i, end): grows and shrinks, and cuts where it was joined.
            ASSERT_TRUE(v.update([&](auto& to) { to.slice(0, j); }).ok());
            const auto front = v.snapshot();
            std::vector<std::uint64_t> next(m.begin(), m.begin() + static_cast<std::ptrdiff_t>(j));
            if (next.size() < 60'000) {
                ASSERT_TRUE(v.commit(front.append(front).drop(std::min(i, next.size()))).ok());
                const std::vector<std::uint64_t> copy = next;
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
            const mod::detail::rrb::tree tree{leaf, v.base()};
            above_least = std::max(above_least, tree.height_of(top) - leaf.height_for(top.count));
            if (step % 100 == 0) {
                EXPECT_TRUE(same(v, m));
            }
            if (HasFatalFailure()) FAIL() << "seed " << seed << ", step " << step;
        }
        EXPECT_TRUE(same(v, m));
    }
    EXPECT_LE(above_least, 1U);
    expect_no_other_nodes({v.its_root()});
}

TEST_F(VectorTest, appends_another_vector_when_that_is_still_current) {
    in.make_new(hf::mode::pmem);
    auto a = in.get<texts>({"a"});
    auto b = in.get<texts>({"b"});
    std::vector<std::string> ma;
    std::vector<std::string> mb;
    for (std::uint64_t i = 0; i < 500; ++i) ma.push_back(made_of<std::string>(i));
    for (std::uint64_t i = 0; i < 900; ++i) mb.push_back(made_of<std::string>(~i));
    ASSERT_TRUE(a.assign(ma).ok());
    ASSERT_TRUE(b.assign(mb).ok());
    {
        const auto joined = a.snapshot().append(b.snapshot());
        ASSERT_TRUE(b.push_back("later").ok());
        EXPECT_EQ(a.commit(joined).code(), errc::conflict);
        EXPECT_TRUE(same(a, ma));
        mb.push_back("later");
    }
    {
        const auto then = b.snapshot(); // of then, by now: its elements are copied
        ASSERT_TRUE(b.pop_back().ok());
        const auto joined = a.snapshot().append(then);
        ASSERT_TRUE(a.commit(joined).ok());
        ma.insert(ma.end(), mb.begin(), mb.end());
        mb.pop_back();
        EXPECT_TRUE(same(a, ma));
        EXPECT_EQ(in.store().account().shared_nodes, 0U);
    }
    const auto before = in.store().account().node_bytes;
    ASSERT_TRUE(a.append(b.snapshot()).ok());
    EXPECT_LT(in.store().account().node_bytes, before + 4000);
    ma.insert(ma.end(), mb.begin(), mb.end());
    EXPECT_TRUE(same(a, ma));
    EXPECT_TRUE(same(b, mb));
    expect_no_other_nodes({a.its_root(), b.its_root()});
    // Each goes its own way.
    std::mt19937_64 random(21);
    for (int step = 0; step < 300; ++step) {
        ASSERT_TRUE(
            a.update([&](auto& to) { vector_of<std::string>::step(random, 0, to, ma); }).ok());
        ASSERT_TRUE(
            b.update([&](auto& to) { vector_of<std::string>::step(random, 0, to, mb); }).ok());
    }
    EXPECT_TRUE(same(a, ma));
    EXPECT_TRUE(same(b, mb));
    expect_no_other_nodes({a.its_root(), b.its_root()});
    ASSERT_TRUE(a.clear().ok());
    EXPECT_TRUE(same(b, mb));
    expect_no_other_nodes({a.its_root(), b.its_root()});
}

TEST_F(VectorTest, keeps_a_snapshot_of_nodes_that_another_vector_gives_up_last) {
    in.make_new(hf::mode::process);
    auto a = in.get<numbers>({"a"});
    auto b = in.get<numbers>({"b"});
    std::vector<std::uint64_t> m(5000);
    std::iota(m.begin(), m.end(), 0);
    ASSERT_TRUE(b.assign(m).ok());
    ASSERT_TRUE(a.append(b.snapshot()).ok());
    const auto then = b.snapshot();
    ASSERT_TRUE(b.clear().ok());
    ASSERT_TRUE(a.clear().ok());
    ASSERT_TRUE(in.store().collect().ok());
    ASSERT_TRUE(
        a.assign(std::views::iota(std::uint64_t{1'000'000}, std::uint64_t{1'020'000})).ok());
    EXPECT_TRUE(same(then, m));
}

/// A kill after any of many updates, over and over; some copy their way, since a version is held.
TEST_F(VectorTest, exchanges_nothing_twice_after_a_crash) {
    for (const hf::mode how : {hf::mode::process, hf::mode::pmem}) {
        in.make_new(how);
        std::mt19937_64 random(11);
        std::array<std::vector<std::uint64_t>, 2> models{std::vector<std::uint64_t>(5),
                                                         std::vector<std::uint64_t>(40)};
        for (auto& m : models) std::iota(m.begin(), m.end(), 0);
        for (std::size_t k = 0; k < 2; ++k)
            ASSERT_TRUE(in.get<numbers>({k == 0 ? "a" : "b"}).assign(models[k]).ok());
        for (int round = 0; round < 400; ++round) {
            std::array<numbers, 2> vectors{in.get<numbers>({"a"}), in.get<numbers>({"b"})};
            for (std::size_t k = 0; k < 2; ++k) ASSERT_TRUE(same(vectors[k], models[k])) << round;
            for (auto steps = random() % 8; steps-- > 0;) {
                auto& m = models[steps % 2];
                numbers& v = vectors[steps % 2];
                std::optional<numbers::version> held;
                if (random() % 3 == 0) held = v.snapshot();
                const std::size_t i = random() % m.size(), j = random() % m.size();
                if (random() % 2 == 0) {
                    ASSERT_TRUE(v.swap(i, j).ok());
                    std::swap(m[i], m[j]);
                } else {
                    ASSERT_TRUE(v.set(i, m[i] = random()).ok());
                }
            }
            in.crash();
        }
    }
}

TEST_F(VectorTest, refuses_indices_that_no_element_has) {
    in.make_new(hf::mode::process);
    auto v = in.get<numbers>();
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
        test_pool own;
        own.make_new(hf::mode::process);
        std::filesystem::remove(own.pool().path());
        auto one = own.get<numbers>();
        if (one.push_back(5).ok()) action(one);
    };
    EXPECT_DEATH(in_another([](auto& one) { static_cast<void>(one[1]); }),
                 "expected an index below 1, found 1");
    EXPECT_DEATH(in_another([](auto& one) {
                     static_cast<void>(one.update([](auto& to) { to.set(1, 0); }));
                 }),
                 "expected an index below 1");
    EXPECT_EQ(in.get<texts>({"s"}).at(0), std::nullopt);
    auto other = mod::vector<std::uint32_t>::open(in.pool(), {"it"});
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().code(), errc::wrong_layout);
}

TEST_F(VectorTest, has_iterators_that_algorithms_take) {
    in.make_new(hf::mode::process);
    auto v = in.get<numbers>();
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

TEST_F(VectorTest, sorts_by_swaps_in_one_section) {
    in.make_new(hf::mode::pmem);
    auto v = in.get<texts>();
    std::vector<std::string> m;
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
    EXPECT_TRUE(same(v, m));
    expect_no_other_nodes({v.its_root()});
}

TEST_F(VectorTest, commits_two_vectors_together) {
    in.make_new(hf::mode::pmem);
    auto a = in.get<numbers>({"a"});
    auto b = in.get<numbers>({"b"});
    ASSERT_TRUE(a.push_back(7).ok());
    const auto next_a = a.snapshot().pop_back();
    const auto next_b = b.snapshot().push_back(a.back());
    ASSERT_TRUE(in.store().commit({{a.its_root(), &next_a}, {b.its_root(), &next_b}}).ok());
    EXPECT_TRUE(a.empty());
    EXPECT_EQ(b.front(), 7U);
}

TEST_F(VectorTest, is_changed_in_one_section_with_another) {
    in.make_new(hf::mode::pmem);
    auto a = in.get<numbers>({"a"});
    auto b = in.get<texts>({"b"});
    for (std::uint64_t i = 0; i < 100; ++i)
        ASSERT_TRUE(mod::update(std::tie(a, b), [&](auto& a, auto& b) {
                        a.push_back(i);
                        b.push_back(std::to_string(i));
                        return i % 10 != 9;
                    }).ok());
    ASSERT_EQ(a.size(), 90U);
    ASSERT_EQ(b.size(), 90U);
    for (std::size_t i = 0; i < 90; ++i) EXPECT_EQ(std::to_string(a[i]), b[i]);
    expect_no_other_nodes({a.its_root(), b.its_root()});
}

TEST_F(VectorTest, is_read_on_snapshots_while_it_is_written) {
    in.make_new(hf::mode::process);
    auto v = in.get<numbers>();
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
    expect_no_other_nodes({v.its_root()});
}

TEST_F(VectorTest, stores_elements_in_place_unless_somebody_could_see_it) {
    const auto run = [&]<class T>(T) {
        in.make_new(hf::mode::pmem, 16_MiB);
        auto v = in.get<mod::vector<T>>(), other = in.get<mod::vector<T>>({"other"});
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
        EXPECT_EQ(v.set(100, T(1)).code(), errc::bad_argument);
    };
    run(std::uint8_t{});
    run(std::uint16_t{});
    run(std::uint32_t{});
    run(std::uint64_t{});
    run(double{});
}

// The writer's k-th set stores k in element k % n: whatever moment a snapshot shows, it has n
// numbers in a row, and shows them again.
TEST_F(VectorTest, snapshots_beside_stores_in_place_show_one_moment) {
    in.make_new(hf::mode::process, 16_MiB);
    auto v = in.get<numbers>();
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

TEST_F(VectorTest, writes_seven_lines_for_an_element_of_a_million) {
    in.make_new(hf::mode::pmem, 512_MiB);
    auto v = in.get<numbers>();
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

TEST_F(VectorTest, takes_little_more_memory_than_its_elements) {
    in.make_new(hf::mode::process, 512_MiB);
    auto v = in.get<numbers>();
    ASSERT_TRUE(v.assign(std::views::iota(std::uint64_t{0}, std::uint64_t{100'000})).ok());
    ASSERT_TRUE(in.store().collect().ok());
    const auto once = in.store().account().node_bytes;
    EXPECT_LE(static_cast<double>(once), 8.3 * 100'000);
    ASSERT_TRUE(v.update([](auto& to) {
                     for (std::uint64_t i = 0; i < 100'000; ++i) to.push_back(i);
                 }).ok());
    ASSERT_TRUE(in.store().collect().ok());
    EXPECT_LE(in.store().account().node_bytes, 2.01 * static_cast<double>(once));
}

/// A relaxed node whose ends decrease leads past the last element of a child that is not full. An
/// added element has no place there: an error, not a write behind the node's children.
TEST_F(VectorTest, refuses_to_grow_where_the_way_leads_past_the_last_element) {
    in.make_new(hf::mode::process);
    auto v = in.get<numbers>();
    std::vector<std::uint64_t> m(2000);
    ASSERT_TRUE(v.assign(m).ok());
    ASSERT_TRUE(v.erase(3).ok());
    const auto top = mod::detail::rrb::top_of(v.word());
    ASSERT_TRUE(top.relaxed());
    auto& node = const_cast<mod::detail::rrb::relaxed_node&>(
        *mod::detail::node_at<mod::detail::rrb::relaxed_node>(v.base(), top.at));
    ASSERT_EQ(node.height, 2U);
    const auto was = node;
    node.children = mod::detail::rrb::fan;
    node.ends[6] = 0x8000'0000;
    node.ends[7] = 0x8000'0005;
    EXPECT_EQ(v.push_back(1).code(), hf::errc::corrupt);
    node = was;
    EXPECT_TRUE(v.push_back(1).ok());
    EXPECT_EQ(v.size(), 2000U);
    EXPECT_TRUE(in.store().verify().ok());
}

/// Verification reads any bytes as nodes and never leaves them.
TEST_F(VectorTest, is_verified_with_damaged_nodes) {
    in.make_new(hf::mode::process);
    auto v = in.get<texts>();
    std::vector<std::string> m;
    for (std::uint64_t i = 0; i < 2000; ++i) m.push_back(made_of<std::string>(i));
    ASSERT_TRUE(v.assign(m).ok());
    ASSERT_TRUE(v.insert(1000, "makes nodes relaxed").ok());
    reached_nodes reached;
    reached.follow(mod::detail::vector_kind, *v.its_root());
    const std::vector<mod::ref> nodes(reached.seen.begin(), reached.seen.end());
    std::mt19937_64 random(61);
    unsigned found = 0;
    for (int damage = 0; damage < 2000; ++damage) {
        const mod::ref node = nodes[random() % nodes.size()];
        auto* words = const_cast<std::uint32_t*>(
            mod::detail::node_at<std::uint32_t>(v.base(), node) + random() % 4);
        const std::uint32_t was = *words;
        *words = random() % 2 ? static_cast<std::uint32_t>(random()) : was ^ 1U << random() % 32;
        found += !in.store().verify().ok();
        *words = was;
    }
    EXPECT_GT(found, 300U);
    EXPECT_TRUE(in.store().verify().ok());
}

} // namespace
} // namespace hf::mod::test
