// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: what is said of persistent objects from a file's bytes agrees with what opening that file
//           finds.
// Method: pools that were closed, and pools whose process ended with groups pending; then every
// word of superblock, head, log and copy changed in turn.
#include <simpo/format.hpp>
#include <verify/test_pools.hpp>

#include <holdfast/simpo.hpp>

namespace {

using namespace hf;
using namespace hf::test;
using verify::depth;
using verify::examine;
using verify::verdict;

class digits {
public:
    static constexpr simpo::class_name simpo_class{"digits", 3};
    void append(std::uint64_t digit) noexcept {
        number_ = number_ * 10 + digit;
        cells_[digit % cells_.size()] += 1;
    }
    std::uint64_t number() const { return number_; }

private:
    std::uint64_t number_ = 0;
    std::array<std::uint64_t, 30> cells_{};
};

class Objects : public Pools {
protected:
    void SetUp() override {
        Pools::SetUp();
        options.engines = {simpo::engine()};
    }
    static simpo::object<digits> make(pool& p, const char* name) {
        auto made = simpo::object<digits>::create(
            p, name, simpo::object_options{.log_bytes = 4096, .callers = 1});
        if (!made) throw std::runtime_error(made.error().what());
        return *made;
    }
    /// As a process leaves it that ends with so many groups of two calls behind a checkpoint.
    bytes left(unsigned groups) {
        std::filesystem::remove(path);
        EXPECT_TRUE(in_child([&] {
            pool p = open_good();
            auto one = make(p, "one");
            make(p, "other");
            one.defer<&digits::append>(1U);
            one.checkpoint();
            for (unsigned g = 0; g < groups; ++g) {
                one.defer<&digits::append>(2U);
                one.defer<&digits::append>(3U);
                one.sync();
            }
            ::_exit(0);
        }));
        return read_all(path);
    }
    static std::uint64_t superblock_of(const bytes& file) {
        return load<root_words>(file, root_words_offset).anchor(engine_simpo);
    }
    static std::uint64_t first_of(const bytes& file) {
        return load<std::uint64_t>(file, superblock_of(file) + sizeof(simpo::superblock));
    }
    status opens(const bytes& file) {
        write_all(path, file);
        const auto opened = pool::open(path, options);
        return opened ? status{} : opened.error();
    }
    /// Every word of [from, to): damaged is what an open refuses, and nothing else.
    unsigned flip(const bytes& whole, std::uint64_t from, std::uint64_t to) {
        unsigned damaged = 0;
        for (std::uint64_t at = from; at < to; at += 8) {
            bytes file = whole;
            file[at] ^= std::byte{0x10};
            const auto report = examine(file, depth::tables);
            const status opened = opens(file);
            EXPECT_EQ(report.outcome == verdict::damaged, !opened.ok())
                << at - from << " " << lines_of(report) << " " << opened.what();
            damaged += report.outcome == verdict::damaged;
        }
        return damaged;
    }
};

TEST_F(Objects, AreToldWithWhatOnlyTheirLogsHave) {
    const auto open = examine(left(2), depth::tables);
    EXPECT_EQ(open.outcome, verdict::not_verifiable) << lines_of(open);
    ASSERT_EQ(open.objects.size(), 2U);
    EXPECT_EQ(open.objects[0].name, "one");
    EXPECT_EQ(open.objects[0].class_text, "digits");
    EXPECT_EQ(open.objects[0].class_version, 3U);
    EXPECT_EQ(open.objects[0].object_bytes, sizeof(digits));
    EXPECT_EQ(open.objects[0].log_bytes, 4096U);
    EXPECT_EQ(open.objects[0].groups, 2U);
    EXPECT_EQ(open.objects[0].calls, 4U);
    EXPECT_EQ(open.objects[1].groups, 0U);
    { pool p = open_good(); }
    const auto closed = examine(read_all(path), depth::deep);
    EXPECT_EQ(closed.outcome, verdict::good) << lines_of(closed);
    ASSERT_EQ(closed.objects.size(), 2U);
    EXPECT_EQ(closed.objects[0].calls, 0U);
}

// Chunks of 64 KiB have size classes that are not whole lines.
TEST_F(Objects, ThatShareAChunkAreWhereAnOpenFindsThem) {
    options.create_bytes = 16 << 20;
    options.max_bytes = 16 << 20;
    {
        pool p = open_good();
        for (const char* name : {"one", "two", "three", "four"}) make(p, name);
    }
    const auto closed = examine(read_all(path), depth::deep);
    EXPECT_EQ(closed.outcome, verdict::good) << lines_of(closed);
    EXPECT_EQ(closed.objects.size(), 4U);
    EXPECT_TRUE(opens(read_all(path)).ok());
}

TEST_F(Objects, DamagedSuperblocksAndHeadsAreWhatAnOpenRefuses) {
    const bytes file = left(1);
    const std::uint64_t super = superblock_of(file), one = first_of(file);
    EXPECT_EQ(flip(file, super, super + 16), 2U);
    EXPECT_GE(flip(file, super + sizeof(simpo::superblock), super + sizeof(simpo::superblock) + 16),
              2U);
    EXPECT_EQ(flip(file, one, one + offsetof(simpo::object_head, resilient)),
              offsetof(simpo::object_head, resilient) / 8);
}

TEST_F(Objects, ADamagedCopyThatCountsIsFoundAndTheOtherOneIsNothing) {
    const bytes file = left(1);
    const std::uint64_t one = first_of(file);
    const auto head = load<simpo::object_head>(file, one);
    const simpo::object_layout parts = layout_of(head);
    const unsigned which = simpo::copy_of(head.resilient);
    const std::uint64_t at = one + parts.copy_offset(which),
                        other = one + parts.copy_offset(1 - which);
    EXPECT_EQ(flip(file, at, at + parts.copy_bytes), parts.copy_bytes / 8);
    EXPECT_EQ(flip(file, other, other + parts.copy_bytes), 0U);
    bytes damaged = file;
    damaged[at] ^= std::byte{1};
    EXPECT_NE(examine(damaged, depth::structure).outcome, verdict::damaged); // not looked at
    EXPECT_NE(opens(damaged).what().find("its copy: expected a checksum"), std::string::npos);
}

/// In a medium that keeps order it is known how many records count.
TEST_F(Objects, ARecordThatIsMissingAmongThoseThatCountIsDamaged) {
    const bytes file = left(4);
    const std::uint64_t one = first_of(file);
    const auto head = load<simpo::object_head>(file, one);
    const std::uint64_t log = one + layout_of(head).log_offset;
    for (unsigned record = 0; record < 12; ++record) {
        bytes damaged = file;
        const std::uint64_t place = (simpo::position_of(head.resilient) + record) % head.log_lines;
        damaged[log + place * line_bytes + offsetof(simpo::record_head, position)] ^= std::byte{1};
        const auto report = examine(damaged, depth::structure);
        EXPECT_EQ(report.outcome, verdict::damaged) << record << lines_of(report);
        EXPECT_EQ(report.objects[0].groups, record / 3);
    }
}

TEST_F(Objects, ARecordBehindWhichTwoGroupsWereCommittedIsDamaged) {
    options.mode = mode::pmem;  // records have checks
    const bytes file = left(4); // twelve records of a line each
    const std::uint64_t one = first_of(file);
    const auto head = load<simpo::object_head>(file, one);
    const std::uint64_t log = one + layout_of(head).log_offset;
    for (unsigned record = 0; record < 12; ++record) {
        bytes damaged = file;
        const std::uint64_t place = (simpo::position_of(head.resilient) + record) % head.log_lines;
        damaged[log + place * line_bytes + 40] ^= std::byte{1};
        damaged[log + place * line_bytes] ^= std::byte{1};
        const auto report = examine(damaged, depth::structure);
        // The last two ends may be behind a gap that a crash leaves: of a group that was not waited
        // for.
        EXPECT_EQ(report.outcome == verdict::damaged, record <= 7) << record << lines_of(report);
        EXPECT_EQ(report.objects[0].groups, record / 3);
    }
}

} // namespace
