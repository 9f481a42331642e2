// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a pool whose root has another size than its program's type is refused, with both sizes, and
//           stays as it was.
// Method: a pool with a root of 64 bytes is opened with other expectations; its bytes are compared
//           before and after.
#include <pool/test_support.hpp>

#include <holdfast/pool.hpp>
#include <holdfast/undo.hpp>

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
    result<pool> open(std::uint64_t root_bytes) const {
        open_options o;
        o.layout = "root-size/1";
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

} // namespace
