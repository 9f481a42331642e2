// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: no damage to a sealed pool goes unnoticed, nothing sound is called damaged, and no bytes
// whatever bring the examination down. Method: pools made by the library, every byte of them
// flipped, cut at every 512 bytes, headers forged with checksums made right, sections killed at
// every step; what must be noticed is worked out here from the library's own account of its blocks.
#include <open/pool_impl.hpp>
#include <verify/examine.hpp>
#include <verify/read_file.hpp>
#include <verify/test_pools.hpp>

#include <algorithm>
#include <chrono>
#include <fcntl.h>
#include <random>
#include <sys/stat.h>

namespace {

using namespace hf;
using namespace hf::test;
using verify::depth;
using verify::examine;
using verify::verdict;

class Examine : public Pools {
protected:
    /// Which bytes of a sealed pool must matter, from README.md of this folder.
    std::vector<bool> covered(const bytes& file) {
        std::vector<bool> out(file.size(), false);
        const auto cover = [&](std::uint64_t from, std::uint64_t count) {
            std::fill_n(out.begin() + static_cast<std::ptrdiff_t>(from), count, true);
        };
        const auto h = load<pool_header>(file, 0);
        cover(0, root_words_offset + sizeof(root_words));
        for (std::uint64_t l = 0; l < h.lane_count; ++l)
            for (const std::uint64_t word :
                 {offsetof(lane_header, committed), offsetof(lane_header, logged)})
                cover(h.lanes_offset + l * h.lane_bytes + word, word_bytes);
        const std::uint64_t bit_bytes = h.chunk_bytes / granule_bytes / 8;
        for (std::uint32_t i = 0; i < h.extent_count; ++i) {
            const extent_split split =
                split_extent(h.extents[i].size_bytes, h.chunk_bytes, h.laid_out_bytes[i]);
            cover(h.extents[i].offset_bytes + split.entry_table_bytes, split.chunks * bit_bytes);
        }
        for (const block b : blocks_of()) {
            cover(b.offset, b.bytes);
            cover(entry_offset(h, b.offset), word_bytes);
        }
        const extent& last = h.extents[h.extent_count - 1];
        const std::uint64_t end = last.offset_bytes + last.size_bytes;
        cover(end, file.size() - end);
        return out;
    }
    static std::uint64_t entry_offset(const pool_header& h, std::uint64_t block_offset) {
        for (std::uint32_t i = 0; i < h.extent_count; ++i) {
            const extent& e = h.extents[i];
            const std::uint64_t data =
                e.offset_bytes +
                split_extent(e.size_bytes, h.chunk_bytes, h.laid_out_bytes[i]).metadata_bytes;
            if (block_offset >= data && block_offset < e.offset_bytes + e.size_bytes)
                return e.offset_bytes + (block_offset - data) / h.chunk_bytes * word_bytes;
        }
        ADD_FAILURE() << "block outside every extent";
        return 0;
    }
    /// The library's own account of its blocks; leaves the file as it was.
    std::vector<block> blocks_of() {
        const bytes before = read_all(path);
        std::vector<block> out;
        {
            pool p = open_good();
            auto visit = [&](const void* at, std::size_t size) {
                out.push_back({p.internals().offset_of(at), size});
            };
            for_each_block(
                p,
                [](void* context, const void* at, std::size_t size) {
                    (*static_cast<decltype(visit)*>(context))(at, size);
                },
                &visit);
        }
        write_all(path, before);
        return out;
    }
    void flip_every_byte(const bytes& sealed) {
        const std::vector<bool> matters = covered(sealed);
        bytes file = sealed;
        for (std::uint64_t at = 0; at < file.size(); ++at)
            for (const unsigned mask : {0x01U, 0x80U, 0xffU}) {
                file[at] ^= std::byte(mask);
                const auto report = examine(file, depth::deep);
                ASSERT_EQ(report.outcome == verdict::good, !matters[at])
                    << "byte " << at << " ^ " << mask << ": " << lines_of(report);
                file[at] ^= std::byte(mask);
            }
        ASSERT_EQ(file, sealed);
    }
};

TEST_F(Examine, SealedPoolIsGoodAtEveryDepth) {
    const bytes file = make_pool();
    for (const depth how : {depth::header, depth::structure, depth::tables, depth::deep}) {
        const auto report = examine(file, how);
        EXPECT_EQ(report.outcome, verdict::good) << lines_of(report);
        EXPECT_TRUE(report.notes.empty()) << lines_of(report);
    }
    const auto report = examine(file, depth::deep);
    const auto blocks = blocks_of();
    std::uint64_t block_bytes = 0;
    for (const block b : blocks) block_bytes += b.bytes;
    EXPECT_EQ(report.blocks, blocks.size());
    EXPECT_EQ(report.blocks, 12U); // root, 6 nodes, 5 of the 8 others
    EXPECT_EQ(report.large_blocks, 1U);
    EXPECT_EQ(report.block_bytes, block_bytes);
    EXPECT_EQ(report.blocks_verified, blocks.size());
    EXPECT_EQ(report.seal, seal_state::intact);
}

TEST_F(Examine, EveryByteThatMattersIsMissedWhenItIsFlippedAndNoOther) {
    flip_every_byte(make_pool());
}

TEST_F(Examine, TheSameAfterGrowth) {
    options.max_bytes = 1_MiB;
    {
        pool p = open_good();
        fill(p, 6);
        auto* l = p.root<list_sections::list>();
        while (p.size_bytes() < 80_KiB) list_sections::push(false, l, l->count + 1);
    }
    flip_every_byte(read_all(path));
}

TEST_F(Examine, FlipsInThePoolWithLargeChunksAreFound) {
    options.create_bytes = options.max_bytes = 16_MiB;
    options.max_threads = 4;
    bytes file = make_pool(300);
    const std::vector<bool> matters = covered(file);
    std::mt19937_64 random(7);
    std::vector<std::uint64_t> places;
    for (std::uint64_t at = 0; at < file.size(); ++at)
        if (matters[at]) places.push_back(at);
    std::ranges::shuffle(places, random);
    places.resize(1500);
    for (const std::uint64_t at : places) {
        file[at] ^= std::byte{0x10};
        ASSERT_NE(verdict_of(file), verdict::good) << "byte " << at;
        file[at] ^= std::byte{0x10};
    }
    EXPECT_EQ(verdict_of(file), verdict::good);
}

TEST_F(Examine, CutPoolsAreNeverGood) {
    const bytes whole = make_pool();
    for (std::size_t size = 0; size < whole.size(); size += 512) {
        const bytes file(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
        for (const depth how : {depth::tables, depth::deep}) {
            const auto report = examine(file, how);
            // Cut inside the seal it is still a whole pool, but one whose seal is damaged.
            EXPECT_EQ(report.outcome, size == 64_KiB && how == depth::tables ? verdict::good
                                      : size == 64_KiB ? verdict::not_verifiable
                                      : size == 0      ? verdict::unreadable
                                                       : verdict::damaged)
                << size << ": " << lines_of(report);
        }
    }
}

TEST_F(Examine, WhatIsNoPoolIsUnreadable) {
    EXPECT_EQ(verdict_of({}), verdict::unreadable);
    EXPECT_EQ(verdict_of(bytes(1)), verdict::unreadable);
    EXPECT_EQ(verdict_of(bytes(1_MiB)), verdict::unreadable) << "a sparse file reads as zeros";
    bytes noise(100000);
    std::mt19937_64 random(3);
    for (auto& b : noise) b = std::byte(random());
    EXPECT_EQ(verdict_of(noise), verdict::unreadable);
    bytes newer = make_pool();
    edit_headers(newer, [](pool_header& h) { h.format_version = 2; });
    EXPECT_EQ(verdict_of(newer), verdict::unreadable);
    bytes feature = make_pool();
    edit_headers(feature, [](pool_header& h) { h.required_features = 1ULL << 40; });
    EXPECT_EQ(verdict_of(feature), verdict::unreadable);
}

TEST_F(Examine, OnlyRegularFilesAreRead) {
    const auto code = [](const std::string& name) {
        const auto file = verify::read_file::open(name);
        return file ? errc::ok : file.error().code();
    };
    EXPECT_EQ(code(directory), errc::not_a_pool);
    EXPECT_EQ(code("/dev/zero"), errc::not_a_pool);
    EXPECT_EQ(code(directory + "/none"), errc::not_found);
    ASSERT_EQ(::mkfifo((directory + "/fifo").c_str(), 0600), 0);
    EXPECT_EQ(code(directory + "/fifo"), errc::not_a_pool) << "and does not wait for a writer";
    write_all(path, {});
    EXPECT_EQ(code(path), errc::ok);
}

TEST_F(Examine, PoolInUseIsSeenToBe) {
    make_pool();
    EXPECT_FALSE(verify::read_file::open(path)->in_use());
    pool p = open_good();
    const auto file = verify::read_file::open(path);
    ASSERT_TRUE(file);
    EXPECT_TRUE(file->in_use());
    EXPECT_EQ(examine(file->bytes(), depth::deep).outcome, verdict::not_verifiable);
}

TEST_F(Examine, HugeNumbersInHeadersThatVerifyAreFound) {
    const bytes good = make_pool();
    for (std::size_t field = 64; field < 240 + 2 * sizeof(extent); field += 4)
        for (const std::uint32_t value : {0xffffffffU, 0x80000000U, 0x7fffffffU, 0x10001U}) {
            bytes file = good;
            edit_headers(file, [&](pool_header& h) {
                std::memcpy(reinterpret_cast<char*>(&h) + field, &value, sizeof value);
            });
            const auto report = examine(file, depth::deep);
            // No longer the seal's header: the seal reports it, whatever else is wrong.
            EXPECT_EQ(report.outcome, verdict::damaged) << field << ": " << lines_of(report);
        }
}

TEST_F(Examine, HostileTablesAndSealsWithRightChecksumsAreSurvived) {
    const bytes good = make_pool();
    std::mt19937_64 random(11);
    const std::uint64_t values[] = {0, 1, 2, ~0ULL, 0xffffffff00000002ULL, 1ULL << 56, 1ULL << 63};
    for (int round = 0; round < 20000; ++round) {
        bytes file = good;
        for (auto changes = 1 + random() % 4; changes > 0; --changes)
            store(file, random() % (file.size() / 8 - 1) * 8,
                  random() % 2 == 0 ? values[random() % std::size(values)] : random());
        edit_headers(file, [](pool_header&) {});
        auto head = load<seal_head>(file, 64_KiB);
        if (random() % 2 == 0) head.header = load<pool_header>(file, 0);
        const std::uint64_t body = 64_KiB + sizeof head;
        head.body_checksum = checksum(file.data() + body, file.size() - body, seal_magic);
        head.checksum = seal_head_checksum(head);
        store(file, 64_KiB, head);
        const auto report = examine(file, depth::deep);
        ASSERT_LE(report.findings.size(), 1000U);
    }
}

TEST_F(Examine, FindingsAreCountedBeyondTheFirstThousand) {
    options.create_bytes = options.max_bytes = 1_MiB;
    {
        pool p = open_good();
        for (int i = 0; i < 3000; ++i) std::memset(hf_alloc(64), i, 64);
    }
    bytes file = read_all(path);
    const auto good = examine(file, depth::deep);
    ASSERT_EQ(good.outcome, verdict::good) << lines_of(good);
    const auto h = load<pool_header>(file, 0);
    for (std::uint64_t at = h.extents[0].offset_bytes + 16384; at < 1_MiB; at += 64)
        file[at] ^= std::byte{1};
    const auto report = examine(file, depth::deep);
    EXPECT_EQ(report.outcome, verdict::damaged);
    EXPECT_EQ(report.findings.size(), 1000U);
    EXPECT_EQ(report.findings.size() + report.findings_left_out, report.blocks_damaged);
    EXPECT_GT(report.blocks_damaged, 2500U);
}

TEST_F(Examine, SectionsCutShortAreReadAsRecoveryReadsThem) {
    bool any_pending = false, any_freed = false;
    for (const mode how : {mode::pmem, mode::process})
        for (const bool clobber : {true, false})
            for (int step = 0;; ++step) {
                options.mode = how;
                std::filesystem::remove(path);
                const bool through = in_child([&] {
                    pool p = open_good();
                    auto* l = p.root<list_sections::list>();
                    list_sections::steps_left = step;
                    while (l->count < 3) list_sections::push(clobber, l, l->count + 1);
                    list_sections::pop(clobber, l);
                    list_sections::steps_left = -1;
                });
                if (through) break;
                const auto report = examine(read_all(path), depth::deep);
                EXPECT_EQ(report.outcome, verdict::not_verifiable) << step << lines_of(report);
                const pool p = open_good();
                EXPECT_EQ(report.pending.size(), p.recovered().sections_pending) << step;
                for (const auto& s : report.pending) {
                    any_pending = true;
                    EXPECT_EQ(s.begin.engine, clobber ? engine_clobber : engine_undo);
                    any_freed = any_freed || s.begin.function_id == 1002;
                }
            }
    EXPECT_TRUE(any_pending && any_freed);
}

/// Words, and a few bytes, that a section overwrites unread and unlogged, between inputs: records
/// of every kind and place, more than a lane has room for.
void overwrite(std::uint64_t* words, std::uint64_t count) {
    list_sections::list* none = nullptr;
    hf_clobber_begin(&list_sections::pop_desc, &none);
    for (std::uint64_t i = 0; i < count; ++i) {
        list_sections::step();
        if (i % 5 == 3) hf_clobber_log(&words[i], 8);
        else hf_note_store(&words[i], i % 7 == 2 ? 3 : 8);
        reinterpret_cast<volatile std::uint8_t&>(words[i]) = static_cast<std::uint8_t>(i);
    }
    list_sections::step();
}

TEST_F(Examine, WhatASectionKeptIsReadAsRecoveryReadsIt) {
    constexpr std::uint64_t count = 200;
    struct numbers {
        std::uint64_t at[count];
    };
    options.recovery = recovery_policy::roll_back;
    for (const mode how : {mode::pmem, mode::process})
        for (int step = 1; step <= static_cast<int>(count); step += 9) {
            options.mode = how;
            std::filesystem::remove(path);
            EXPECT_FALSE(in_child([&] {
                pool p = open_good();
                list_sections::steps_left = step;
                overwrite(p.root<numbers>()->at, count);
            }));
            const bytes file = read_all(path);
            const auto report = examine(file, depth::deep);
            EXPECT_EQ(report.outcome, verdict::not_verifiable) << step << lines_of(report);
            ASSERT_EQ(report.pending.size(), 1U);

            auto mapped = pool_file::open(path, file_options_of(options));
            ASSERT_TRUE(mapped) << mapped.error().what();
            heap blocks(**mapped);
            pending_section found;
            std::uint64_t newest = 0;
            lane_damage damage;
            ASSERT_TRUE(read_lane(**mapped, blocks, 0, found, newest, damage));
            EXPECT_EQ(damage.what, nullptr);
            EXPECT_EQ(report.pending[0].records, found.records.size()) << step;
            EXPECT_GE(found.records.size(), static_cast<std::size_t>(step));
            pool_file::abandon(std::move(*mapped));
        }
}

TEST_F(Examine, NewBytesThatWouldBeStoredElsewhereAreFound) {
    // In the log that is replayed, or in the one before it, which is replayed first.
    bool earlier = false;
    const auto find = [&](std::uint64_t from_root, std::uint16_t mask, std::uint64_t cut) {
        std::filesystem::remove(path);
        pool p = open_good();
        pool_file& file = *p.internals().file;
        const std::uint64_t root = p.offset_of(p.root<list_sections::list>());
        const std::uint64_t epoch = p.internals().lanes[0].epoch + 1;
        start_lane(file, 0, epoch - 1);
        for (const std::uint64_t e : {epoch, epoch + 1}) {
            const begin_payload begin{e, 1, 1, engine_redo, 0, 0};
            const bool odd = (e == epoch) == earlier;
            const deferred_store where{(root + (odd ? from_root : 0)) << 16 |
                                       (odd ? mask : 0xffff)};
            const std::uint64_t stores[] = {where.where, 7, 8};
            const std::uint64_t bytes = sizeof stores - (odd ? cut : 0);
            as_its_kind(file.medium(), [&](auto pm) {
                lane_writer_in log(pm);
                log.start(lane_start(file, 0, e));
                log.append(record_kind::begin, 0, sizeof begin, &begin, sizeof begin);
                log.append(record_kind::new_bytes, 1, bytes, stores, bytes);
            });
        }
        pool::impl::abandon(std::move(p));
        const auto report = examine(read_all(path), depth::deep);
        EXPECT_EQ(report.pending.size(), 1U);
        return lines_of(report).find("whole stores to bytes of the heap") != std::string::npos;
    };
    for (const bool before : {false, true}) {
        earlier = before;
        EXPECT_FALSE(find(0, 0xffff, 0));
        EXPECT_FALSE(find(0, 0x80ff, 0));
        EXPECT_FALSE(find(16, 0x0001, 8));
        EXPECT_TRUE(find(0, 0xffff, 8)) << "a word is missing";
        EXPECT_TRUE(find(0, 0x0001, 0)) << "half a store follows";
        EXPECT_TRUE(find(0, 0, 16)) << "half of a run's head";
        EXPECT_TRUE(find(0, 0, 0)) << "a run of seven granules that are not there";
        EXPECT_TRUE(find(8, 0xffff, 0)) << "not at a granule";
        EXPECT_TRUE(find(1_GiB, 0xffff, 0)) << "behind the heap";
        EXPECT_TRUE(find(-std::uint64_t{64_KiB}, 0xffff, 0)) << "before it";
    }
}

TEST_F(Examine, CleanPoolWithAPendingSectionIsDamaged) {
    options.mode = mode::pmem; // where sections of engine clobber leave records
    bytes file = make_pool();
    const auto h = load<pool_header>(file, 0);
    store(file, h.lanes_offset, std::uint64_t{0}); // 'committed'
    const auto report = examine(file, depth::structure);
    EXPECT_EQ(report.outcome, verdict::damaged);
    EXPECT_NE(lines_of(report).find("no pending section"), std::string::npos) << lines_of(report);
}

TEST_F(Examine, HeaderWriteCutShortBetweenTheCopiesIsNoDamage) {
    const bytes before = make_pool();
    bytes file = make_pool(); // opened and closed once more
    std::memcpy(file.data(), before.data(), 4096);
    const auto report = examine(file, depth::deep);
    EXPECT_EQ(report.outcome, verdict::good) << lines_of(report);
    EXPECT_EQ(report.notes.size(), 1U);
    EXPECT_NE(lines_of(report).find("B counts"), std::string::npos) << lines_of(report);
    // If B counts, as after such a cut, the next header write begins with A, and may be cut short
    // again.
    std::swap_ranges(file.begin(), file.begin() + 4096, file.begin() + 4096);
    const auto again = examine(file, depth::deep);
    EXPECT_EQ(again.outcome, verdict::good) << lines_of(again);
    EXPECT_NE(lines_of(again).find("A counts"), std::string::npos) << lines_of(again);
    auto foreign = load<pool_header>(file, header_b_offset);
    foreign.uuid[0] ^= 1;
    foreign.checksum = header_checksum(foreign);
    store(file, header_b_offset, foreign);
    EXPECT_EQ(verdict_of(file), verdict::damaged);
}

TEST_F(Examine, SmallPoolTakesMicroseconds) {
    const bytes file = make_pool();
    const auto start = std::chrono::steady_clock::now();
    constexpr int rounds = 2000;
    for (int i = 0; i < rounds; ++i) ASSERT_EQ(verdict_of(file), verdict::good);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    RecordProperty("microseconds", std::to_string(took.count() / rounds));
    EXPECT_LT(took.count() / rounds, 1000) << "a generous bound: sanitizers run this too";
}

} // namespace
