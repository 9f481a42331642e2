// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What mutated pools of MOD have found, each as small as it can be: one or two words of a pool that
// was closed cleanly are changed. Reads end, updates fail or are done, and verify() finds it.
#include <mod/format.hpp>
#include <pool/header.hpp>

#include <holdfast/mod/map.hpp>
#include <holdfast/mod/ordered_map.hpp>
#include <holdfast/mod/queue.hpp>
#include <holdfast/mod/vector.hpp>
#include <holdfast/pool.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <fcntl.h>
#include <optional>
#include <string>
#include <unistd.h>

namespace {

using namespace hf;
using numbers = mod::map<std::uint64_t, std::uint64_t>;
using ordered = mod::ordered_map<std::uint64_t, std::uint64_t>;

class ModRegressions : public ::testing::Test {
protected:
    void SetUp() override {
        path_ = "/dev/shm/hf_mod_regressions_test." + std::to_string(::getpid());
        ::unlink(path_.c_str());
        options_.layout = "mod_regressions_test/1";
        options_.create_bytes = 1_MiB;
        options_.engines = {mod::engine()};
        open_again();
    }
    void TearDown() override {
        pool_.reset();
        ::unlink(path_.c_str());
    }
    /// Whether it opened.
    bool open_again() {
        auto opened = pool::open(path_, options_);
        said_ = opened ? std::string() : std::string(opened.error().what());
        if (opened) pool_.emplace(std::move(*opened));
        return static_cast<bool>(opened);
    }
    void close() {
        pool_.reset();
        file_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
        super_ = get<root_words>(root_words_offset).anchor(engine_mod);
    }
    bool opens() {
        ::close(file_);
        return open_again();
    }
    template <class T> T get(std::uint64_t at) const {
        T value{};
        EXPECT_EQ(::pread(file_, &value, sizeof value, static_cast<off_t>(at)),
                  ssize_t(sizeof value));
        return value;
    }
    template <class T> void put(std::uint64_t at, T value) const {
        EXPECT_EQ(::pwrite(file_, &value, sizeof value, static_cast<off_t>(at)),
                  ssize_t(sizeof value));
    }
    std::uint64_t cell_at(std::uint64_t index) const {
        return super_ + sizeof(mod::superblock) + index * sizeof(mod::cell);
    }
    /// Offset of the node that the word of cell 'index' names.
    std::uint64_t top_of(std::uint64_t index) const {
        return (get<std::uint64_t>(cell_at(index)) & mod::ref_max) * mod::granule_bytes;
    }
    mod::store& store() const { return mod::store::in(*pool_); }
    template <class Map> void fill(const char* name, std::uint64_t count = 300) {
        auto map = Map::open(*pool_, {name});
        ASSERT_TRUE(map) << map.error().what();
        for (std::uint64_t n = 0; n < count; ++n) ASSERT_TRUE(map->insert(n, n));
    }
    template <class Range> static std::uint64_t counted(const Range& range) {
        std::uint64_t seen = 0;
        for ([[maybe_unused]] const auto& element : range) ++seen;
        return seen;
    }
    void expect_damaged() { EXPECT_EQ(store().verify().code(), errc::corrupt); }

    std::string path_, said_;
    open_options options_;
    std::optional<pool> pool_;
    int file_ = -1;
    std::uint64_t super_ = 0;
};

// The way down was written past the end of its array; a circle passed verify().
TEST_F(ModRegressions, TrieThatNamesItselfEnds) {
    fill<numbers>("numbers");
    close();
    const std::uint64_t top = top_of(0);
    for (unsigned child = 0; child < 16; ++child)
        put(top + 4 * child, static_cast<mod::ref>(top / mod::granule_bytes));
    ASSERT_TRUE(opens());
    expect_damaged();
    auto map = *numbers::open(*pool_, {"numbers"});
    EXPECT_EQ(counted(map), 0U);
    EXPECT_FALSE(map.contains(7));
    EXPECT_EQ(map.insert(1'000, 1).error().code(), errc::corrupt);
    EXPECT_EQ(map.erase(7).error().code(), errc::corrupt);
    (void)map.clear();
    (void)map.insert(1, 1);
}

TEST_F(ModRegressions, TreeThatNamesItselfEnds) {
    fill<ordered>("ordered");
    close();
    const std::uint64_t top = top_of(0);
    for (std::uint64_t at = top + 8; at < top + 128; at += 4)
        put(at, static_cast<mod::ref>(top / mod::granule_bytes));
    ASSERT_TRUE(opens());
    expect_damaged();
    auto map = *ordered::open(*pool_, {"ordered"});
    EXPECT_EQ(counted(map), 0U);
    EXPECT_FALSE(map.contains(7));
    EXPECT_EQ(map.insert(1'000, 1).error().code(), errc::corrupt);
    EXPECT_EQ(map.erase(7).error().code(), errc::corrupt);
}

TEST_F(ModRegressions, RefsLeadNowhereOutsideThePool) {
    fill<numbers>("numbers");
    close();
    const std::uint64_t top = top_of(0);
    for (unsigned child = 0; child < 16; ++child)
        put(top + 4 * child, mod::ref{0x7fff'fff0 + child});
    ASSERT_TRUE(opens());
    expect_damaged();
    auto map = numbers::open(*pool_, {"numbers"});
    EXPECT_EQ(map.error().code(), errc::corrupt) << "found as soon as it is opened";
}

// The server said "listening", and answered nobody.
TEST_F(ModRegressions, CircleOfArenasEnds) {
    fill<numbers>("numbers");
    close();
    const auto newest = get<std::uint64_t>(super_ + offsetof(mod::superblock, arenas));
    const auto second = get<mod::arena_head>(newest).next;
    ASSERT_NE(second, 0U);
    put(second + offsetof(mod::arena_head, next), newest);
    ASSERT_TRUE(opens());
    expect_damaged();
    fill<numbers>("others");
    (void)store().collect();
    std::uint64_t blocks = 0;
    store().for_each_block([](void* sum, const void*) { ++*static_cast<std::uint64_t*>(sum); },
                           &blocks);
    EXPECT_LE(blocks, 1 + 64 * 1_MiB / 4096) << "no more than the pool can ever have";
}

// Its head was read before its place was looked at: seen by a sanitizer.
TEST_F(ModRegressions, ArenaAtAnOddPlaceIsNone) {
    fill<numbers>("numbers");
    close();
    const auto newest = get<std::uint64_t>(super_ + offsetof(mod::superblock, arenas));
    put(newest + offsetof(mod::arena_head, next), newest + 3);
    ASSERT_TRUE(opens());
    expect_damaged();
}

TEST_F(ModRegressions, FamilyIsCheckedBeforeItIsFollowed) {
    const mod::place left{"left", "family", {"left", "right"}};
    ASSERT_TRUE(numbers::open(*pool_, left)->insert(1, 1));
    close();
    put(cell_at(0), std::uint64_t{0x7fff'ffff});
    ASSERT_TRUE(opens());
    expect_damaged();
    EXPECT_EQ(numbers::open(*pool_, left).error().code(), errc::corrupt);
    close();
    put(cell_at(0) + offsetof(mod::cell, members), std::uint32_t{60});
    EXPECT_FALSE(opens());
    EXPECT_NE(said_.find("root cell 0"), std::string::npos) << said_;
}

// Any block that 'taking' named was freed.
TEST_F(ModRegressions, OnlyAnArenaIsHalfTaken) {
    fill<numbers>("numbers");
    close();
    put(super_ + offsetof(mod::superblock, taking), super_);
    put(super_ + offsetof(mod::superblock, clean), std::uint64_t{0});
    EXPECT_FALSE(opens());
    EXPECT_NE(said_.find("expected an arena half taken"), std::string::npos) << said_;
}

TEST_F(ModRegressions, ArenaThatTheListLeavesOutIsKept) {
    fill<numbers>("numbers");
    close();
    const auto newest = get<std::uint64_t>(super_ + offsetof(mod::superblock, arenas));
    put(super_ + offsetof(mod::superblock, arenas), get<mod::arena_head>(newest).next);
    put(super_ + offsetof(mod::superblock, taking), newest);
    put(super_ + offsetof(mod::superblock, taking_bytes), get<mod::arena_head>(newest).bytes);
    put(super_ + offsetof(mod::superblock, clean), std::uint64_t{0});
    ASSERT_TRUE(opens()) << said_;
    EXPECT_TRUE(store().verify().ok());
    auto map = *numbers::open(*pool_, {"numbers"});
    EXPECT_EQ(counted(map), 300U);
}

// Live nodes were handed out; a count that lied was a vector of elements that are not there.
TEST_F(ModRegressions, VerifyComparesBitmapsAndCounts) {
    fill<numbers>("numbers");
    fill<numbers>("others");
    close();
    const std::uint64_t top = top_of(0);
    for (auto at = get<std::uint64_t>(super_ + offsetof(mod::superblock, arenas)); at != 0;) {
        const auto head = get<mod::arena_head>(at);
        const std::uint64_t first = at + mod::slots_at(head.slots);
        if (top >= first && top < at + head.bytes) {
            const std::uint64_t slot = (top - first) / head.slot_bytes;
            const std::uint64_t byte = at + sizeof head + slot / 8;
            put(byte, static_cast<std::uint8_t>(get<std::uint8_t>(byte) & ~(1U << slot % 8)));
        }
        at = head.next;
    }
    ASSERT_TRUE(opens());
    EXPECT_NE(std::string(store().verify().what()).find("as a root leads there, found it free"),
              std::string::npos)
        << store().verify().what();
}

TEST_F(ModRegressions, VerifyComparesCounts) {
    fill<numbers>("numbers");
    close();
    put(cell_at(0) + 4, std::uint32_t{299});
    ASSERT_TRUE(opens());
    EXPECT_NE(std::string(store().verify().what()).find("299 elements, found 300"),
              std::string::npos)
        << store().verify().what();
}

TEST_F(ModRegressions, VerifyLooksForKeysInTheirPlaces) {
    fill<numbers>("few", 3);
    fill<numbers>("many");
    close();
    const std::uint64_t leaf = top_of(0) & (mod::ref_max * mod::granule_bytes);
    const auto tag = get<std::uint8_t>(leaf + 1);
    put(leaf + 1, static_cast<std::uint8_t>(tag ^ 1));
    ASSERT_TRUE(opens());
    EXPECT_NE(
        std::string(store().verify().what()).find("expected each element in the place of its key"),
        std::string::npos)
        << store().verify().what();
    close();
    put(leaf + 1, tag);
    ASSERT_TRUE(opens());
    EXPECT_TRUE(store().verify().ok()) << store().verify().what();
    close();
    const std::uint64_t top = top_of(1);
    const auto first = get<mod::ref>(top), second = get<mod::ref>(top + 4);
    ASSERT_TRUE(first != 0 && second != 0);
    put(top, second);
    put(top + 4, first);
    ASSERT_TRUE(opens());
    expect_damaged();
}

TEST_F(ModRegressions, SharedNodesAreLookedAtFromEveryParent) {
    using vector = mod::vector<std::uint64_t>;
    auto one = *vector::open(*pool_, {"one"});
    for (std::uint64_t n = 0; n < 300; ++n) ASSERT_TRUE(one.push_back(n).ok());
    auto two = *vector::open(*pool_, {"two"});
    ASSERT_TRUE(two.commit(two.snapshot().append(one.snapshot())).ok());
    close();
    ASSERT_EQ(top_of(0), top_of(1));
    put(cell_at(1) + 4, std::uint32_t{512});
    ASSERT_TRUE(opens());
    EXPECT_NE(std::string(store().verify().what()).find("expected a way that goes on"),
              std::string::npos)
        << store().verify().what();
}

// Another count of a leaf of strings was another number of strings with this parent: reclamation
// knew of fewer parents than there were, and gave a string to somebody else.
TEST_F(ModRegressions, LeavesOfStringsHaveOneCount) {
    using vector = mod::vector<std::string>;
    for (const std::uint32_t count : {16U, 40U}) { // a leaf, and below an inner node
        const std::string names[] = {"one " + std::to_string(count),
                                     "two " + std::to_string(count)};
        auto one = *vector::open(*pool_, {names[0]});
        for (std::uint32_t n = 0; n < count; ++n)
            ASSERT_TRUE(one.push_back(std::to_string(n)).ok());
        auto two = *vector::open(*pool_, {names[1]});
        ASSERT_TRUE(two.commit(two.snapshot().append(one.snapshot())).ok());
        ASSERT_TRUE(store().verify().ok());
        close();
        const std::uint64_t cell = count == 16 ? 0 : 2;
        for (const std::uint64_t which : {cell, cell + 1}) { // the first one met, and the other
            put(cell_at(which) + 4, count - 4);
            ASSERT_TRUE(opens());
            EXPECT_NE(
                std::string(store().verify().what()).find("expected two ways to the same nodes"),
                std::string::npos)
                << store().verify().what();
            close();
            put(cell_at(which) + 4, count);
        }
        ASSERT_TRUE(opens());
        EXPECT_TRUE(store().verify().ok()) << store().verify().what();
    }
}

TEST_F(ModRegressions, TwoRootsOfOneVersionAreFound) {
    fill<numbers>("numbers");
    fill<numbers>("others");
    close();
    put(cell_at(0), get<std::uint64_t>(cell_at(1)));
    ASSERT_TRUE(opens());
    expect_damaged();
}

TEST_F(ModRegressions, QueueOfAnyLevelsEnds) {
    auto queue = *mod::queue<std::uint64_t>::open(*pool_, {"queue"});
    for (std::uint64_t n = 0; n < 500; ++n) ASSERT_TRUE(queue.push(n).ok());
    close();
    const std::uint64_t header = top_of(0);
    const std::uint64_t level = get<mod::ref>(header) * mod::granule_bytes;
    put(level, static_cast<mod::ref>(level / mod::granule_bytes));
    put(level + 4, std::uint32_t{0});
    ASSERT_TRUE(opens());
    expect_damaged();
    auto damaged = *mod::queue<std::uint64_t>::open(*pool_, {"queue"});
    EXPECT_EQ(counted(damaged), 500U);
    for (unsigned n = 0; n < 40; ++n) (void)damaged.push(n);
    for (unsigned n = 0; n < 400; ++n) (void)damaged.pop();
}

TEST_F(ModRegressions, HeightsOfVectorsAreBounded) {
    auto vector = *mod::vector<std::uint64_t>::open(*pool_, {"vector"});
    for (std::uint64_t n = 0; n < 500; ++n) ASSERT_TRUE(vector.push_back(n).ok());
    ASSERT_TRUE(vector.update([](auto& all) { all.erase(3, 90); }).ok());
    close();
    const std::uint64_t top = top_of(0);
    ASSERT_NE(get<mod::ref>(cell_at(0)) & ~mod::ref_max, 0U) << "a relaxed node";
    put(top + 124, std::uint16_t{0xffff}); // height and children
    ASSERT_TRUE(opens());
    expect_damaged();
    if (auto damaged = mod::vector<std::uint64_t>::open(*pool_, {"vector"})) {
        EXPECT_EQ(counted(*damaged), damaged->size());
        (void)damaged->set(5, 5);
        (void)damaged->push_back(1);
        (void)damaged->update([](auto& all) { all.erase(7, 30); });
    }
}

} // namespace
