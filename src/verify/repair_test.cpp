// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: repair puts right what can be known, changes no byte of an object, and leaves a pool that
// the library opens; what it cannot put right it names. Method: every kind of damage, alone and
// together, then repaired in memory and compared with the pool before the damage.
#include <verify/mending.hpp>
#include <verify/read_file.hpp>
#include <verify/test_pools.hpp>

#include <holdfast/author/blocks.hpp>

#include <filesystem>
#include <random>

namespace {

using namespace hf;
using namespace hf::test;
using verify::depth;
using verify::examine;
using verify::plan_repair;
using verify::repair_plan;
using verify::verdict;

bytes repaired(const bytes& damaged, const repair_plan& plan) {
    bytes out = damaged;
    out.resize(plan.file_bytes);
    for (const auto& c : plan.changes)
        std::copy(c.bytes.begin(), c.bytes.end(),
                  out.begin() + static_cast<std::ptrdiff_t>(c.offset));
    return out;
}

using hf::test::lines_of;

std::string lines_of(const repair_plan& plan) {
    std::string out = plan.possible ? "possible" : "impossible";
    for (const auto& line : plan.done) out += "\n  done: " + line;
    for (const auto& line : plan.lost) out += "\n  lost: " + line;
    return out;
}

class Repair : public Pools {
protected:
    void SetUp() override {
        Pools::SetUp();
        good = make_pool();
        h = load<pool_header>(good, 0);
        heap = h.extents[0].offset_bytes;
        split = split_extent(h.extents[0].size_bytes, h.chunk_bytes);
        ASSERT_EQ(h.extent_count, 1U);
    }
    /// The same in mode pmem, where sections of engine clobber leave records.
    void make_with_records() {
        std::filesystem::remove(path);
        options.mode = mode::pmem;
        good = make_pool();
        h = load<pool_header>(good, 0);
    }
    /// Repairs, expects the pool as it was before the damage, and opens it.
    void expect_whole_again(const bytes& damaged) {
        ASSERT_NE(verdict_of(damaged), verdict::good) << "this is no damage";
        const repair_plan plan = plan_repair(damaged);
        ASSERT_TRUE(plan.possible) << lines_of(plan);
        EXPECT_TRUE(plan.lost.empty()) << lines_of(plan);
        EXPECT_FALSE(plan.done.empty());
        const bytes after = repaired(damaged, plan);
        const auto report = examine(after, depth::deep);
        EXPECT_EQ(report.outcome, verdict::good) << lines_of(plan) << lines_of(report);
        EXPECT_EQ(after, good) << lines_of(plan);
        write_all(path, after);
        EXPECT_NO_THROW(open_good());
    }
    std::uint64_t bits(std::uint64_t chunk) const {
        return heap + split.entry_table_bytes + chunk * h.chunk_bytes / 128;
    }

    bytes good;
    pool_header h{};
    std::uint64_t heap = 0;
    extent_split split{};
};

TEST_F(Repair, SoundPoolIsLeftAlone) {
    const repair_plan plan = plan_repair(good);
    EXPECT_TRUE(plan.nothing_to_do()) << lines_of(plan);
    EXPECT_TRUE(plan.lost.empty() && plan.done.empty()) << lines_of(plan);
}

TEST_F(Repair, DamagedHeaderCopyComesFromTheOther) {
    for (const std::size_t copy : {0, 4096}) {
        bytes file = good;
        std::fill_n(file.begin() + static_cast<std::ptrdiff_t>(copy), 4096, std::byte{0x5a});
        expect_whole_again(file);
    }
}

TEST_F(Repair, TwoDamagedCopiesAreMergedWhereTheyAreWhole) {
    bytes file = good;
    file.resize(64_KiB); // no seal to help
    file[40] ^= std::byte{1};
    file[300] ^= std::byte{1};
    file[4096 + 100] ^= std::byte{1};
    const repair_plan plan = plan_repair(file);
    ASSERT_TRUE(plan.possible) << lines_of(plan);
    const bytes after = repaired(file, plan);
    EXPECT_TRUE(std::equal(after.begin(), after.end(), good.begin()));
}

TEST_F(Repair, BothHeadersComeFromTheSeal) {
    bytes file = good;
    std::fill_n(file.begin(), 8192, std::byte{0});
    expect_whole_again(file);
}

TEST_F(Repair, SealInsideAnObjectIsNotMistakenForThePools) {
    options.create_bytes = options.max_bytes = 512_KiB;
    std::filesystem::remove(path);
    {
        pool p = open_good();
        void* inside = hf_alloc(good.size()); // a large block: at a chunk's start
        std::memcpy(inside, good.data(), good.size());
    }
    good = read_all(path);
    bytes file = good;
    std::fill_n(file.begin(), 8192, std::byte{0});
    expect_whole_again(file);
    file.resize(512_KiB); // without a seal of its own it finds none
    EXPECT_FALSE(plan_repair(file).possible);
}

TEST_F(Repair, WithoutHeaderAndSealItRefuses) {
    bytes file = good;
    file.resize(64_KiB);
    std::fill_n(file.begin(), 8192, std::byte{0});
    const repair_plan plan = plan_repair(file);
    EXPECT_FALSE(plan.possible);
    EXPECT_TRUE(plan.changes.empty());
    EXPECT_EQ(plan.lost.size(), 1U) << lines_of(plan);
    EXPECT_FALSE(plan_repair({}).possible);
}

TEST_F(Repair, RootWordsAndLaneWordsComeFromTheSeal) {
    bytes file = good;
    file[root_words_offset] ^= std::byte{0x10};
    file[root_words_offset + 40] ^= std::byte{0x10};
    expect_whole_again(file);
    file = good;
    store(file, h.lanes_offset, std::uint64_t{0});
    expect_whole_again(file);
}

TEST_F(Repair, LaneOfAClosedPoolNeedsNoSeal) {
    make_with_records();
    bytes file = good;
    file.resize(64_KiB);
    const bytes before = file;
    store(file, h.lanes_offset, std::uint64_t{0});
    const repair_plan plan = plan_repair(file);
    EXPECT_EQ(repaired(file, plan), before) << lines_of(plan);
}

TEST_F(Repair, ASectionNewerThanTheSealDoesNotKeepThePoolShut) {
    make_with_records();
    bytes newer; // the same pool after two more pushes: a begin record in each half
    {
        pool p = open_good();
        auto* l = p.root<list_sections::list>();
        for (int i = 0; i < 2; ++i) list_sections::push(true, l, l->count + 1);
    }
    newer = read_all(path);
    bytes file = good;
    const auto lane = static_cast<std::ptrdiff_t>(h.lanes_offset);
    std::copy_n(newer.begin() + lane, h.lane_bytes, file.begin() + lane);
    std::copy_n(good.begin() + lane, 8, file.begin() + lane); // except 'committed'
    ASSERT_EQ(verdict_of(file), verdict::damaged);
    const repair_plan plan = plan_repair(file);
    EXPECT_EQ(plan.lost.size(), 2U) << lines_of(plan);
    const bytes after = repaired(file, plan);
    EXPECT_EQ(verdict_of(after), verdict::good);
    EXPECT_TRUE(plan_repair(after).nothing_to_do());
    write_all(path, after);
    pool p = open_good();
    EXPECT_EQ(p.recovered().sections_pending, 0U);
    EXPECT_EQ(p.root<list_sections::list>()->count, 6U);
}

TEST_F(Repair, ALaneStaysInOrderUnlessAHalfOfItIsDamaged) {
    const std::uint64_t witness = h.lanes_offset + offsetof(lane_header, witness);
    const std::uint64_t half = h.lanes_offset + sizeof(lane_header);
    const auto committed = load<std::uint64_t>(good, h.lanes_offset);
    ASSERT_EQ(load<std::uint64_t>(good, witness), witness_of(committed));
    const auto after = [&](std::initializer_list<std::uint64_t> flipped) {
        bytes file = good;
        for (const std::uint64_t at : flipped) file[at] ^= std::byte{1};
        return repaired(file, plan_repair(file));
    };
    EXPECT_EQ(after({witness}), good);
    EXPECT_EQ(after({witness, h.lanes_offset}), good);
    for (const bytes& mended :
         {after({half}), after({half, witness}), after({half, h.lanes_offset})}) {
        EXPECT_EQ(load<std::uint64_t>(mended, witness), lane_unordered);
        EXPECT_EQ(load<std::uint64_t>(mended, h.lanes_offset), committed);
        EXPECT_TRUE(plan_repair(mended).nothing_to_do());
    }
}

TEST_F(Repair, EveryFlippedTableByteIsPutBack) {
    // Entries and bits: all of them, whether they matter or not.
    for (std::uint64_t at = heap; at < bits(split.chunks); ++at) {
        bytes file = good;
        file[at] ^= std::byte{0x21};
        if (verdict_of(file) == verdict::good) continue;
        expect_whole_again(file);
        if (HasFailure()) FAIL() << "byte " << at;
    }
}

TEST_F(Repair, ErasedTablesAreWrittenAnew) {
    bytes file = good;
    std::fill(file.begin() + static_cast<std::ptrdiff_t>(heap),
              file.begin() + static_cast<std::ptrdiff_t>(bits(split.chunks)), std::byte{0xff});
    const repair_plan plan = plan_repair(file);
    EXPECT_TRUE(plan.lost.empty()) << lines_of(plan);
    const bytes after = repaired(file, plan);
    EXPECT_EQ(verdict_of(after), verdict::good);
    write_all(path, after);
    pool p = open_good();
    EXPECT_EQ(account(p).blocks, 12U);
}

TEST_F(Repair, EverythingAtOnceButTheObjects) {
    bytes file = good;
    file[17] ^= std::byte{1};
    file[root_words_offset + 9] ^= std::byte{1};
    store(file, h.lanes_offset, std::uint64_t{0});
    store(file, h.lanes_offset + h.lane_bytes, ~std::uint64_t{0});
    store(file, bits(0), ~std::uint64_t{0});
    store(file, bits(2), std::uint64_t{0});
    store(file, heap, std::uint64_t{0x7777});
    expect_whole_again(file);
}

TEST_F(Repair, DamagedObjectsAreNamedAndNotTouched) {
    bytes file = good;
    const auto head = load<seal_head>(file, 64_KiB);
    const std::uint64_t first = 64_KiB + sizeof head + head.lane_count * 8;
    for (std::uint64_t i = 0; i < head.block_count; i += 5) {
        const auto b = load<sealed_block>(file, first + i * sizeof(sealed_block));
        file[b.offset + b.bytes - 1] ^= std::byte{1};
    }
    store(file, bits(0), std::uint64_t{0});
    const repair_plan plan = plan_repair(file);
    EXPECT_EQ(plan.lost.size(), (head.block_count + 4) / 5) << lines_of(plan);
    const bytes after = repaired(file, plan);
    const auto report = examine(after, depth::deep);
    EXPECT_EQ(report.blocks_damaged, plan.lost.size()) << lines_of(report);
    EXPECT_EQ(report.findings.size(), plan.lost.size());
    const auto data = static_cast<std::ptrdiff_t>(heap + split.metadata_bytes);
    EXPECT_TRUE(std::equal(after.begin() + data, after.begin() + 64_KiB, file.begin() + data));
}

TEST_F(Repair, CutPoolGetsItsLengthBackAndTheLostBlocksNamed) {
    const auto head = load<seal_head>(good, 64_KiB);
    const std::uint64_t first = 64_KiB + sizeof head + head.lane_count * 8;
    for (std::size_t size = heap + split.metadata_bytes; size < 64_KiB; size += 512) {
        const bytes file(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size));
        std::size_t cut = 0;
        for (std::uint64_t i = 0; i < head.block_count; ++i) {
            const auto b = load<sealed_block>(good, first + i * sizeof(sealed_block));
            cut += b.offset + b.bytes > size;
        }
        const repair_plan plan = plan_repair(file);
        ASSERT_TRUE(plan.possible);
        EXPECT_EQ(plan.lost.size(), cut) << size << lines_of(plan);
        const bytes after = repaired(file, plan);
        EXPECT_EQ(after.size(), 64_KiB);
        EXPECT_TRUE(std::equal(file.begin(), file.end(), after.begin()));
        EXPECT_EQ(verdict_of(after), verdict::not_verifiable);
        write_all(path, after);
        EXPECT_NO_THROW(open_good());
    }
}

TEST_F(Repair, WithoutASealTablesAreNotGuessed) {
    bytes file = good;
    file.resize(64_KiB);
    file[heap] ^= std::byte{2}; // the kind of the first chunk
    const repair_plan plan = plan_repair(file);
    EXPECT_TRUE(plan.changes.empty()) << lines_of(plan);
    EXPECT_EQ(plan.lost.size(), 1U) << lines_of(plan);
}

TEST_F(Repair, PoolLeftOpenKeepsLanesAndTables) {
    EXPECT_FALSE(in_child([&] {
        pool p = open_good();
        list_sections::steps_left = 9;
        list_sections::push(true, p.root<list_sections::list>(), 7);
    }));
    bytes file = read_all(path);
    const bytes before = file;
    file[4096 + 1000] ^= std::byte{1};
    const repair_plan plan = plan_repair(file);
    EXPECT_EQ(repaired(file, plan), before) << lines_of(plan);
    EXPECT_EQ(plan.changes.size(), 1U);
}

TEST_F(Repair, AnyDamageIsSurvivedAndObjectsKeepTheirBytes) {
    std::mt19937_64 random(5);
    for (int round = 0; round < 3000; ++round) {
        bytes file = good;
        if (random() % 4 == 0) file.resize(random() % file.size());
        for (auto n = random() % 20; n > 0 && !file.empty(); --n)
            file[random() % file.size()] = std::byte(random());
        const repair_plan plan = plan_repair(file);
        if (!plan.possible) continue;
        const bytes after = repaired(file, plan);
        const std::uint64_t data = heap + split.metadata_bytes;
        for (std::uint64_t at = data; at < std::min<std::uint64_t>(file.size(), 64_KiB); ++at)
            ASSERT_EQ(after[at], file[at]) << round << ": byte " << at << lines_of(plan);
        ASSERT_TRUE(plan_repair(after).nothing_to_do()) << round << lines_of(plan_repair(after));
    }
}

TEST_F(Repair, OnACopyLeavesTheOriginalAndInPlaceLeavesAJournal) {
    bytes file = good;
    file[100] ^= std::byte{1};
    file[root_words_offset] ^= std::byte{1};
    write_all(path, file);
    const std::string copy = directory + "/copy.hf", journal = directory + "/journal";
    ASSERT_TRUE(verify::mend_copy(path, copy, plan_repair(file)).ok());
    EXPECT_EQ(read_all(path), file);
    EXPECT_EQ(read_all(copy), good);
    EXPECT_EQ(verify::mend_copy(path, copy, plan_repair(file)).code(), errc::exists);

    const auto plan = verify::mend_in_place(path, journal);
    ASSERT_TRUE(plan) << plan.error().what();
    EXPECT_EQ(read_all(path), good);
    const bytes text = read_all(journal);
    const std::string said(reinterpret_cast<const char*>(text.data()), text.size());
    EXPECT_NE(said.find("\nlength " + std::to_string(good.size()) + "\n"), std::string::npos);
    EXPECT_NE(said.find("\n0x0 484f4c4446415354"), std::string::npos) << said.substr(0, 200);
    EXPECT_NE(said.find("\n0x2000 "), std::string::npos) << said.substr(0, 200);
    // The journal holds the old bytes.
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 2 + 2);

    write_all(path, file);
    EXPECT_EQ(verify::mend_in_place(path, journal).error().code(), errc::exists);
    EXPECT_EQ(read_all(path), file) << "without a journal nothing is changed";
}

TEST_F(Repair, PoolInUseIsRefused) {
    pool p = open_good();
    EXPECT_EQ(verify::mend_in_place(path, directory + "/journal").error().code(), errc::in_use);
}

} // namespace
