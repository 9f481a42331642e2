// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: no block is handed out twice, none is lost, sizes waste little, and the durable state alone
// says what is allocated. Method: random reserve/publish/retract/release against a model, reopening
// the file in between.
#include <alloc/allocator.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <latch>
#include <map>
#include <random>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

namespace {

using namespace hf;

std::string fresh_path() {
    std::string path = "/dev/shm/hf_alloc_test." + std::to_string(::getpid());
    ::unlink(path.c_str());
    return path;
}

struct opened {
    std::unique_ptr<pool_file> file;
    std::unique_ptr<allocator> heap;
};

opened open_heap(const std::string& path, std::uint64_t bytes, std::uint64_t max_bytes) {
    file_options options;
    options.layout = "alloc_test/1";
    options.create_bytes = bytes;
    options.max_bytes = max_bytes;
    auto file = pool_file::open(path, options);
    if (!file) throw std::runtime_error(file.error().what());
    EXPECT_TRUE((*file)->mark_open().ok());
    auto heap = std::make_unique<allocator>(**file);
    return {std::move(*file), std::move(heap)};
}

const auto ignore_dirty = [](const void*) {};

class model {
public:
    void add(block b) {
        auto next = live_.lower_bound(b.offset);
        if (next != live_.end())
            ASSERT_LE(b.offset + b.bytes, next->first) << "overlaps its successor";
        if (next != live_.begin()) {
            auto before = std::prev(next);
            ASSERT_LE(before->first + before->second, b.offset) << "overlaps its predecessor";
        }
        live_[b.offset] = b.bytes;
    }
    block remove_any(std::mt19937_64& random) {
        auto it = live_.lower_bound(random() % (live_.rbegin()->first + 1));
        block b{it->first, it->second};
        live_.erase(it);
        return b;
    }
    bool empty() const { return live_.empty(); }
    void expect_equal(const heap& durable) const {
        std::map<std::uint64_t, std::uint64_t> found;
        durable.for_each([&](block b) { found[b.offset] = b.bytes; });
        EXPECT_EQ(found, live_);
    }

private:
    std::map<std::uint64_t, std::uint64_t> live_;
};

std::uint64_t some_size(std::mt19937_64& random) {
    switch (random() % 4) {
    case 0: return 1 + random() % 64;
    case 1: return 1 + random() % 1024;
    case 2: return 1 + random() % 40000;
    default: return 1 + random() % 400000;
    }
}

TEST(Allocator, RandomUseAgreesWithAModelOverReopening) {
    const std::string path = fresh_path();
    std::mt19937_64 random(7);
    model m;
    for (int round = 0; round < 6; ++round) {
        opened o = open_heap(path, 16_MiB, 256_MiB);
        m.expect_equal(o.heap->durable());
        thread_cache cache;
        for (int i = 0; i < 4000; ++i) {
            if (!m.empty() && random() % 2 == 0) {
                const block b = m.remove_any(random);
                const block found = o.heap->find(b.offset);
                ASSERT_EQ(found.bytes, b.bytes);
                o.heap->durable().retract(found, ignore_dirty);
                o.heap->release(cache, found);
            } else {
                const block b = o.heap->reserve(cache, some_size(random));
                ASSERT_NE(b.offset, 0U);
                if (random() % 8 == 0) { // an abandoned reservation leaves no trace
                    o.heap->release(cache, b);
                    continue;
                }
                o.heap->durable().publish(b, ignore_dirty);
                m.add(b);
            }
        }
        m.expect_equal(o.heap->durable());
    }
    ::unlink(path.c_str());
}

TEST(Allocator, BlocksOf272BytesFillChunksToOneTenthOverhead) {
    const std::string path = fresh_path();
    opened o = open_heap(path, 64_MiB, 256_MiB);
    thread_cache cache;
    std::uint64_t highest = 0;
    const std::uint64_t count = 100000;
    for (std::uint64_t i = 0; i < count; ++i) {
        const block b = o.heap->reserve(cache, 272);
        o.heap->durable().publish(b, ignore_dirty);
        highest = std::max(highest, b.offset + b.bytes);
    }
    EXPECT_LT(static_cast<double>(highest - o.file->extents()[0].offset_bytes),
              272.0 * count * 1.1);
    ::unlink(path.c_str());
}

TEST(Allocator, FullPoolSaysSoAndEveryByteComesBack) {
    const std::string path = fresh_path();
    opened o = open_heap(path, 1_MiB, 1_MiB);
    thread_cache cache;
    std::uint64_t first_count = 0;
    for (int round = 0; round < 3; ++round) {
        std::vector<block> blocks;
        for (std::uint64_t size : {48, 3000, 9000, 48})
            for (;;) {
                const block b = o.heap->reserve(cache, size);
                if (b.offset == 0) break;
                blocks.push_back(b);
            }
        if (round == 0) first_count = blocks.size();
        EXPECT_EQ(blocks.size(), first_count);
        for (block b : blocks) o.heap->release(cache, b);
        o.heap->release_all(cache);
    }
    EXPECT_EQ(o.heap->reserve(cache, 2_MiB).offset, 0U);
    EXPECT_EQ(o.heap->reserve(cache, ~std::uint64_t{0} / 2).offset, 0U);
    ::unlink(path.c_str());
}

/// After an opening, blocks may be freed before the first is asked for, and with it the free
/// chunks: they serve any size.
TEST(Allocator, ReopenedPoolThatIsEmptiedServesOtherSizes) {
    const std::string path = fresh_path();
    std::vector<block> blocks;
    {
        opened o = open_heap(path, 4_MiB, 4_MiB);
        thread_cache cache;
        for (block b = o.heap->reserve(cache, 272); b.offset != 0;
             b = o.heap->reserve(cache, 272)) {
            o.heap->durable().publish(b, ignore_dirty);
            blocks.push_back(b);
        }
    }
    opened o = open_heap(path, 4_MiB, 4_MiB);
    thread_cache cache;
    for (const block& b : blocks) {
        const block found = o.heap->find(b.offset);
        ASSERT_EQ(found.bytes, b.bytes);
        o.heap->durable().retract(found, ignore_dirty);
        o.heap->release(cache, found);
    }
    o.heap->release_all(cache);
    std::uint64_t bytes = 0;
    for (block b = o.heap->reserve(cache, 1000); b.offset != 0; b = o.heap->reserve(cache, 1000))
        bytes += b.bytes;
    EXPECT_GT(bytes, blocks.size() * 272 * 9 / 10);
    ::unlink(path.c_str());
}

/// Regression: a class that had kept a free chunk before the pool was full kept it for as long as
/// the pool was open.
TEST(Allocator, AFullPoolHasTheChunksThatClassesKept) {
    const std::string path = fresh_path();
    opened o = open_heap(path, 16_MiB, 16_MiB);
    const std::uint64_t chunk = o.heap->durable().chunk_bytes();
    thread_cache cache, other;
    std::vector<block> blocks;
    for (std::uint64_t size = 16; size <= 1024; size += 16)
        blocks.push_back(o.heap->reserve(cache, size));
    for (const block& b : blocks) o.heap->release(cache, b);
    o.heap->release_all(cache);
    EXPECT_NE(o.heap->reserve(other, 200 * chunk).offset, 0U) << "64 classes have kept one each";
    ::unlink(path.c_str());
}

/// Regression: as soon as a thread found a chunk, every thread kept blocks at hand again.
TEST(Allocator, AFullPoolLeavesNothingAtHandUntilMuchOfItIsFree) {
    const std::string path = fresh_path();
    opened o = open_heap(path, 16_MiB, 16_MiB);
    const std::uint64_t chunk = o.heap->durable().chunk_bytes();
    thread_cache cache;
    std::vector<block> chunks;
    for (block b = o.heap->reserve(cache, chunk); b.offset != 0; b = o.heap->reserve(cache, chunk))
        chunks.push_back(b);
    const auto release = [&](std::size_t count) {
        for (; count > 0; --count, chunks.pop_back()) o.heap->release(cache, chunks.back());
    };
    const auto at_hand = [&](std::uint64_t size) {
        const unsigned size_class = o.heap->durable().classes().class_of(size);
        EXPECT_NE(o.heap->reserve(cache, size).offset, 0U);
        return cache.blocks[size_class].size();
    };
    release(3);
    EXPECT_EQ(at_hand(64), 0U);
    EXPECT_EQ(at_hand(128), 0U) << "a chunk was found before";
    release(chunks.size() / 2);
    (void)at_hand(256); // finds out
    EXPECT_GT(at_hand(512), 0U);
    ::unlink(path.c_str());
}

/// Regression: threads of a pool that was reopened when it was full kept blocks at hand until one
/// found no room.
TEST(Allocator, AReopenedPoolAtItsEndLeavesNothingAtHandUntilAChunkIsFound) {
    const std::string path = fresh_path();
    {
        opened o = open_heap(path, 16_MiB, 16_MiB);
        thread_cache cache;
        std::vector<block> blocks;
        for (block b = o.heap->reserve(cache, 272); b.offset != 0;
             b = o.heap->reserve(cache, 272)) {
            o.heap->durable().publish(b, ignore_dirty);
            blocks.push_back(b);
        }
        for (std::size_t i = 0; i < blocks.size(); i += 10)
            o.heap->durable().retract(blocks[i], ignore_dirty);
    }
    opened o = open_heap(path, 16_MiB, 16_MiB);
    thread_cache cache;
    EXPECT_NE(o.heap->reserve(cache, 272).offset, 0U);
    EXPECT_TRUE(cache.blocks[o.heap->durable().classes().class_of(272)].empty());
    ::unlink(path.c_str());
}

// Regression: a refill once gave up after 4096 full chunks and grew the pool with every opening.
/// A limit below the pool's holds for data, in chunks that are there as in those that growth would
/// bring; not for logs.
TEST(Allocator, ALimitOfGrowthHoldsUntilItIsRaised) {
    const std::string path = fresh_path();
    opened o = open_heap(path, 16_MiB, 64_MiB);
    thread_cache cache;
    for (const std::uint64_t limit : {8_MiB, 24_MiB, 16_MiB, 64_MiB}) {
        o.heap->limit_growth(limit);
        EXPECT_EQ(o.heap->growth_limit(), limit);
        std::vector<block> had;
        for (const std::uint64_t bytes :
             {std::uint64_t{1_MiB}, std::uint64_t{64_KiB}, std::uint64_t{272}}) {
            for (block b = o.heap->reserve(cache, bytes); b.offset != 0;
                 b = o.heap->reserve(cache, bytes)) {
                ASSERT_LE(b.offset + b.bytes, limit);
                had.push_back(b);
            }
            if (bytes == 1_MiB) EXPECT_GT(had.size(), limit / 2_MiB) << "most of what it allows";
        }
        const block log = o.heap->reserve(cache, 64_KiB, purpose::log);
        EXPECT_GT(log.offset, 0U);
        if (limit < 32_MiB) EXPECT_GT(log.offset + log.bytes, limit);
        o.heap->release(cache, log);
        for (const block& b : had) o.heap->release(cache, b);
        o.heap->release_all(cache);
    }
    ::unlink(path.c_str());
}

/// Takes whole chunks until the pool is full.
void fill(allocator& heap, thread_cache& cache) {
    const std::uint64_t chunk = heap.durable().chunk_bytes();
    for (block b = heap.reserve(cache, chunk); b.offset != 0; b = heap.reserve(cache, chunk))
        heap.durable().publish(b, ignore_dirty);
}

/// Regression: a pool had 128 extents, and each growth took one. In steps of a chunk it ended at
/// 115 MiB of 256.
TEST(Allocator, ALimitThatRisesByAChunkEachTimeReachesThePoolsEndOverSeveralOpens) {
    const std::string path = fresh_path();
    constexpr std::uint64_t max = 24_MiB, chunk = 4_KiB;
    for (std::uint64_t limit = 64_KiB; limit < max;) {
        opened o = open_heap(path, 64_KiB, max);
        thread_cache cache;
        for (unsigned n = 0; n < 2048 && limit < max; ++n, limit += chunk) {
            ASSERT_TRUE(o.heap->limit_growth(limit));
            fill(*o.heap, cache);
            ASSERT_LE(o.file->size_bytes(), limit);
            ASSERT_GE(o.file->size_bytes() + 256_KiB, std::min(limit, max - 384_KiB)) << "tables";
        }
        EXPECT_LT(o.file->extents().size(), 64U);
    }
    opened o = open_heap(path, 64_KiB, max);
    thread_cache cache;
    fill(*o.heap, cache);
    EXPECT_NE(o.heap->why_full().what().find("open_options::max_bytes"), std::string::npos)
        << o.heap->why_full().what();
    while (o.heap->reserve(cache, chunk, purpose::log).offset != 0) {}
    EXPECT_EQ(o.file->size_bytes(), max) << "to its last chunk";
    ::unlink(path.c_str());
}

/// The same of a pool that is opened with a little more each time, and is filled to the end, logs
/// too.
TEST(Allocator, AMaximumThatRisesByAChunkWithEachOpenLeavesExtentsForTheFormatsLimit) {
    const std::string path = fresh_path();
    constexpr std::uint64_t chunk = 4_KiB;
    std::uint64_t max = 1_MiB;
    for (unsigned n = 0; n < 400; ++n, max += chunk) {
        opened o = open_heap(path, 1_MiB, max);
        thread_cache cache;
        fill(*o.heap, cache);
        while (o.heap->reserve(cache, chunk, purpose::log).offset != 0) {}
        ASSERT_TRUE(o.heap->limit_growth(max));
        ASSERT_LT(o.file->extents().size(), 90U);
    }
    opened o = open_heap(path, 1_MiB, 64_MiB); // the addresses behind a small pool may be taken
    const auto left = static_cast<std::uint32_t>(extents_max - 1 - o.file->extents().size());
    EXPECT_LE(least_step(o.file->size_bytes(), left), o.file->size_bytes()) << "double at most";
    thread_cache cache;
    EXPECT_NE(o.heap->reserve(cache, 8_MiB).offset, 0U);
    ::unlink(path.c_str());
}

/// As a disk that has a chunk more each time.
TEST(Allocator, AFileLimitThatRisesByAChunkTakesNoExtentEach) {
    const std::string path = fresh_path();
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    opened o = open_heap(path, 1_MiB, 1_GiB);
    thread_cache cache;
    const std::uint64_t first = o.file->size_bytes();
    const auto restrict_to = [&](std::uint64_t bytes) {
        const rlimit now{bytes, before.rlim_max};
        EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &now), 0);
    };
    for (std::uint64_t allowed = first; allowed < first + 8_MiB; allowed += 4_KiB) {
        restrict_to(allowed);
        fill(*o.heap, cache);
        EXPECT_LE(o.file->size_bytes(), allowed);
        EXPECT_GE(o.file->size_bytes() + 128_KiB, allowed);
    }
    const status why = o.heap->why_full();
    EXPECT_EQ(why.code(), errc::pool_full);
    EXPECT_NE(why.what().find("(ulimit -f)"), std::string::npos) << why.what();
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_LT(o.file->extents().size(), 30U);
    EXPECT_NE(o.heap->reserve(cache, 1_MiB).offset, 0U);
    EXPECT_TRUE(o.heap->why_full().ok()) << "it has grown";
    ::unlink(path.c_str());
}

/// Blocks run over what was lengthened, and the tables say the same to the next open.
TEST(Allocator, ALargeBlockLiesAcrossTheStepsOfAnExtent) {
    const std::string path = fresh_path();
    std::vector<block> had;
    {
        opened o = open_heap(path, 1_MiB, 64_MiB);
        thread_cache cache;
        o.heap->limit_growth(1_MiB);
        fill(*o.heap, cache);
        for (std::uint64_t limit = 1_MiB; had.size() < 16; limit += 4_KiB) {
            o.heap->limit_growth(limit);
            const block b = o.heap->reserve(cache, 4_KiB);
            if (b.offset != 0) had.push_back(b);
        }
        EXPECT_EQ(o.file->extents().size(), 2U);
        for (const block& b : had) o.heap->release(cache, b);
        had = {o.heap->reserve(cache, 64_KiB)}; // without any growth
        ASSERT_NE(had[0].offset, 0U);
        o.heap->durable().publish(had[0], ignore_dirty);
    }
    opened o = open_heap(path, 1_MiB, 64_MiB);
    EXPECT_EQ(o.heap->durable().allocated_at(had[0].offset).bytes, 64_KiB);
    ::unlink(path.c_str());
}

TEST(Allocator, ReopenedPoolIsSearchedToItsFreeChunksBeforeItGrows) {
    const std::string path = fresh_path();
    {
        opened o = open_heap(path, 320_MiB, 1_GiB);
        thread_cache cache;
        for (int i = 0; i < 9000; ++i)
            o.heap->durable().publish(o.heap->reserve(cache, 32_KiB), ignore_dirty);
    }
    opened o = open_heap(path, 320_MiB, 1_GiB);
    const std::uint64_t size = o.file->size_bytes();
    thread_cache cache;
    EXPECT_NE(o.heap->reserve(cache, 272).offset, 0U);
    EXPECT_EQ(o.file->size_bytes(), size);
    ::unlink(path.c_str());
}

TEST(Allocator, GrowsToGigabyteBlocks) {
    const std::string path = fresh_path();
    opened o = open_heap(path, 16_MiB, 4_GiB);
    thread_cache cache;
    const block b = o.heap->reserve(cache, 1_GiB);
    ASSERT_NE(b.offset, 0U);
    o.heap->durable().publish(b, ignore_dirty);
    o.file->base()[b.offset + 1_GiB - 1] = std::byte{1};
    EXPECT_EQ(o.heap->find(b.offset).bytes, 1_GiB);
    o.file.reset();
    ::unlink(path.c_str());
}

TEST(Allocator, ClaimedBlocksAreNotHandedOut) {
    const std::string path = fresh_path();
    std::vector<block> named;
    {
        opened o = open_heap(path, 1_MiB, 1_MiB);
        thread_cache cache;
        for (std::uint64_t size : {16, 272, 272, 5000, 20000})
            named.push_back(o.heap->reserve(cache, size));
    }
    opened o = open_heap(path, 1_MiB, 1_MiB);
    for (block b : named) ASSERT_TRUE(o.heap->claim(b));
    model m;
    for (block b : named) m.add(b);
    thread_cache cache;
    for (std::uint64_t size : {16, 272, 5000, 20000})
        for (;;) {
            const block b = o.heap->reserve(cache, size);
            if (b.offset == 0) break;
            m.add(b);
        }
    EXPECT_FALSE(o.heap->claim({named[0].offset + 8, 16}));
    EXPECT_FALSE(o.heap->claim({~std::uint64_t{0} - 16, 16}));
    ::unlink(path.c_str());
}

/// The bits of 64 blocks are in one word. A lone thread changes it without a lock. Of two neither
/// loses what the other has set.
TEST(Allocator, ThreadsThatChangeOneWordLoseNoBit) {
    const std::string path = fresh_path();
    opened o = open_heap(path, 16_MiB, 16_MiB);
    heap& durable = o.heap->durable();
    thread_cache cache;
    std::vector<block> blocks;
    for (unsigned i = 0; i < 1024; ++i) {
        blocks.push_back(o.heap->reserve(cache, 16));
        durable.publish(blocks.back(), ignore_dirty);
    }
    std::atomic<std::uint64_t> lost{0};
    std::latch together{2};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 2; ++t)
        threads.emplace_back([&, t] {
            EXPECT_FALSE(is_alone());
            together.arrive_and_wait();
            for (unsigned turn = 0; turn < 500; ++turn)
                for (std::size_t i = t; i < blocks.size(); i += 2) {
                    if (!durable.bit(blocks[i].offset)) ++lost;
                    durable.retract(blocks[i], ignore_dirty);
                    durable.publish(blocks[i], ignore_dirty);
                }
        });
    for (auto& t : threads) t.join();
    EXPECT_EQ(lost, 0U);
    model m;
    for (std::size_t i = 0; i < blocks.size(); ++i)
        if (i % 3 == 0) durable.retract(blocks[i], ignore_dirty);
        else m.add(blocks[i]);
    m.expect_equal(durable);
    ::unlink(path.c_str());
}

/// Where order is kept, a chunk's entry says what blocks it has before one of them is allocated.
TEST(Allocator, AChunkIsNamedBeforeItsFirstBlockIsHandedOut) {
    const std::string path = fresh_path();
    opened o = open_heap(path, 16_MiB, 16_MiB);
    thread_cache cache;
    for (const std::uint64_t bytes : {16, 272, 5000}) {
        const block b = o.heap->reserve(cache, bytes);
        ASSERT_NE(b.offset, 0U);
        ASSERT_TRUE(o.heap->durable().allocates_here(b));
        o.heap->durable().publish_in_order(b, ignore_dirty);
        EXPECT_EQ(o.heap->find(b.offset).bytes, b.bytes);
    }
    const block large = o.heap->reserve(cache, 1_MiB);
    o.heap->durable().publish_in_order(large, ignore_dirty);
    EXPECT_EQ(o.heap->find(large.offset).bytes, large.bytes);
    ::unlink(path.c_str());
}

TEST(Allocator, ThreadsNeverShareABlock) {
    const std::string path = fresh_path();
    opened o = open_heap(path, 16_MiB, 256_MiB);
    std::vector<std::vector<block>> live(4);
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            std::mt19937_64 random(t);
            thread_cache cache;
            for (int i = 0; i < 20000; ++i) {
                if (!live[t].empty() && random() % 5 < 2) {
                    const block b = o.heap->find(live[t].back().offset);
                    live[t].pop_back();
                    o.heap->durable().retract(b, ignore_dirty);
                    o.heap->release(cache, b);
                } else {
                    const block b = o.heap->reserve(cache, some_size(random) / 16);
                    ASSERT_NE(b.offset, 0U);
                    o.heap->durable().publish(b, ignore_dirty);
                    live[t].push_back(b);
                }
            }
            o.heap->release_all(cache);
        });
    for (auto& t : threads) t.join();
    model m;
    for (auto& blocks : live)
        for (block b : blocks) m.add(b);
    m.expect_equal(o.heap->durable());
    ::unlink(path.c_str());
}

} // namespace
