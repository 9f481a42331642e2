// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a pool whose root has another size than its program's type, or other members, is refused,
//           with what was expected and found, and stays as it was.
// Method: a pool with a root of 64 bytes is opened with other expectations; its bytes are compared
//           before and after.
#include <pool/test_support.hpp>

#include <holdfast/layout.hpp>
#include <holdfast/pool.hpp>
#include <holdfast/undo.hpp>

#include <atomic>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace {

using namespace hf;

struct small_root {
    std::uint64_t words[8];
};
struct large_root {
    std::uint64_t words[9];
};

class RootSize : public ::testing::Test {
protected:
    void SetUp() override {
        std::string pattern = "/dev/shm/hf_root_size_test.XXXXXX";
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        directory = pattern;
        path = directory + "/pool.hf";
    }
    void TearDown() override { std::filesystem::remove_all(directory); }
    result<pool> open(std::uint64_t root_bytes, std::uint64_t layout_hash = 0) const {
        open_options o;
        o.layout = "root-size/1";
        o.layout_hash = layout_hash;
        o.root_bytes = root_bytes;
        o.create_bytes = 1_MiB;
        o.engines = {undo::engine()};
        return pool::open(path, o);
    }
    std::string directory, path;
};

TEST_F(RootSize, OfAnotherTypeIsRefusedAndThePoolStaysAsItWas) {
    {
        auto made = open(sizeof(small_root));
        ASSERT_TRUE(made) << made.error().what();
        ASSERT_NE(made->root<small_root>(), nullptr);
    }
    const std::string before = hf::test::contents(path);
    const auto refused = open(sizeof(large_root));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), errc::wrong_layout);
    EXPECT_NE(refused.error().what().find("expected 72 bytes, found 64"), std::string::npos)
        << refused.error().what();
    EXPECT_EQ(hf::test::contents(path), before);
    EXPECT_TRUE(open(sizeof(small_root)));
    EXPECT_TRUE(open(0)) << "nothing is asked";
}

TEST_F(RootSize, IsFreeUntilThereIsARoot) {
    EXPECT_TRUE(open(sizeof(large_root)));
    auto opened = open(sizeof(small_root));
    ASSERT_TRUE(opened) << opened.error().what();
    EXPECT_NE(opened->root<small_root>(), nullptr);
}

TEST_F(RootSize, OfAnotherTypeIsNoRoot) {
    auto opened = open(0);
    ASSERT_TRUE(opened) << opened.error().what();
    ASSERT_NE(opened->root<small_root>(), nullptr);
    const auto found = opened->find_root<large_root>();
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code(), errc::wrong_layout);
    EXPECT_EQ(opened->root<large_root>(), nullptr);
    EXPECT_NE(opened->root<small_root>(), nullptr);
}

#if defined(__clang__) // which layout.hpp needs
// The same size and name, and a member of another type: 0 as it was, 1 with other names.
template <int> struct account;
template <> struct account<0> {
    std::uint64_t number;
    long cents;
    std::uint64_t words[6];
};
template <> struct account<1> {
    std::uint64_t id;
    long balance;
    std::uint64_t history[6];
};
template <> struct account<2> {
    std::uint64_t number;
    double euros;
    std::uint64_t words[6];
};

TEST_F(RootSize, OfOtherMembersIsRefusedAndThePoolStaysAsItWas) {
    static_assert(sizeof(account<0>) == sizeof(account<2>));
    {
        auto made = open(sizeof(account<0>), layout_hash_of<account<0>>());
        ASSERT_TRUE(made) << made.error().what();
        ASSERT_NE(made->root<account<0>>(), nullptr);
    }
    const std::string before = hf::test::contents(path);
    const auto refused = open(sizeof(account<2>), layout_hash_of<account<2>>());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), errc::wrong_layout);
    EXPECT_NE(refused.error().what().find("root-size/1"), std::string::npos)
        << refused.error().what();
    EXPECT_EQ(hf::test::contents(path), before);
    EXPECT_TRUE(open(sizeof(account<1>), layout_hash_of<account<1>>())) << "names do not count";
}

enum class kind : short { a };
enum class other_kind : short { b };
struct unknown;
template <class T> struct with {
    char before;
    T value;
};
template <class T> struct node {
    node* next;
    T* value;
};
class hides {
    long value_ = 0;

public:
    long value() const { return value_; }
};
struct of_bits {
    unsigned a : 3, b : 5;
};
struct of_other_bits {
    unsigned a : 4, b : 4;
};
struct derived : with<long> {
    int more;
};
struct one_way; // two that lead to each other
struct other_way {
    one_way* to;
    std::vector<one_way> all;
};
struct one_way {
    other_way* to;
    hides value;
};

template <class... T> std::vector<std::uint64_t> hashes() {
    return {layout_hash_of<T>()..., layout_hash_of<with<T>>()..., layout_hash_of<node<T>>()...,
            layout_hash_of<std::vector<T>>()..., layout_hash_of<std::map<int, T>>()...};
}

TEST(LayoutHash, DiffersWhereAMemberDiffers) {
    const auto all = hashes<char, bool, short, kind, unsigned, int, long, unsigned long, double,
                            long*, double*, long**, void*, long[3], long[4], char[24], of_bits,
                            of_other_bits, hides*, std::optional<long>, std::optional<double>,
                            std::atomic<unsigned long>, derived, one_way, other_way>();
    const std::set<std::uint64_t> different(all.begin(), all.end());
    EXPECT_EQ(different.size(), all.size());
    EXPECT_FALSE(different.contains(0));
}

TEST(LayoutHash, IsTheSameWhereNamesDiffer) {
    EXPECT_EQ(layout_hash_of<with<kind>>(), layout_hash_of<with<other_kind>>());
    EXPECT_EQ(layout_hash_of<with<long>>(), layout_hash_of<with<const long>>());
    EXPECT_EQ(layout_hash_of<unknown*>(), layout_hash_of<void*>());
}
#endif

} // namespace
