// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a section sees what it stored, whatever the sizes and places of its accesses; nothing is in
//           place
// before its commit, everything after it, for two ordering points; logs that are whole are
// replayed, others have changed nothing, damaged ones are refused; a section that aborts leaves
// nothing. Method: sections instrumented by hand, random accesses against an array of bytes; logs
// written by hand.
#include <log/lane.hpp>
#include <open/pool_impl.hpp>
#include <redo/store_filter.hpp>
#include <redo/write_buffer.hpp>

#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/alloc.hpp>
#include <holdfast/author/blocks.hpp>
#include <holdfast/author/persist.hpp>
#include <holdfast/author/staged.hpp>
#include <holdfast/pool.hpp>
#include <holdfast/redo.hpp>
#include <holdfast/txfunc.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace hf;

constexpr std::size_t area_bytes = 400;
struct root {
    std::byte area[area_bytes];
    std::uint64_t* block;
};
const hf_txfunc described{HF_ABI_VERSION, 0, 2301, 1, "redo", "here", nullptr, 0, nullptr};

class Redo : public ::testing::TestWithParam<mode> {
protected:
    ~Redo() override { ::unlink(path_.c_str()); }
    result<pool> try_open() {
        open_options o;
        o.layout = "redo_test/1";
        o.create_bytes = 256_KiB;
        o.max_bytes = 16_MiB;
        o.mode = GetParam();
        o.engines = {redo::engine()};
        return pool::open(path_, o);
    }
    pool open() {
        auto p = try_open();
        if (!p) std::fprintf(stderr, "%s\n", p.error().what().c_str()), std::abort();
        return std::move(*p);
    }
    template <class Body> static void section(Body&& body) {
        hf_redo_begin(&described, nullptr);
        body();
        hf_redo_commit();
    }
    static std::uint64_t seen(const std::uint64_t* at) {
        std::uint64_t value = 0;
        std::memcpy(&value, hf_redo_read(at, 8), 8);
        return value;
    }
    static void store(std::uint64_t* to, std::uint64_t value) {
        std::memcpy(hf_redo_write(to, 8), &value, 8);
    }
    const std::string path_ = "/dev/shm/hf_redo_test." + std::to_string(::getpid());
};

/// What a compiled load asks before it asks the buffer.
bool filter_says(const void* address) {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    return (hf_redo_filter[at / 1024 % HF_REDO_FILTER_WORDS] >> at / 16 % 64 & 1) != 0;
}

/// Stores, copies and fills at random places, and the same to a model.
void change(std::mt19937_64& random, std::byte* area, std::vector<std::byte>& model) {
    const auto below = [&](std::uint64_t n) { return random() % n; };
    const std::size_t bytes = 1 + below(below(4) == 0 ? 100 : 20);
    const std::size_t to = below(area_bytes - bytes), from = below(area_bytes - bytes);
    switch (below(4)) {
    case 0: {
        const std::size_t size = std::size_t{1} << below(5), at = to / size * size;
        std::vector<std::byte> value(size, static_cast<std::byte>(random()));
        std::memcpy(hf_redo_write(area + at, size), value.data(), size);
        std::memcpy(model.data() + at, value.data(), size);
        break;
    }
    case 1: {
        std::vector<std::byte> value(bytes, static_cast<std::byte>(random()));
        hf_redo_put(area + to, value.data(), bytes);
        std::memcpy(model.data() + to, value.data(), bytes);
        break;
    }
    case 2:
        hf_redo_copy(area + to, area + from, bytes);
        std::memmove(model.data() + to, model.data() + from, bytes);
        break;
    default:
        hf_redo_fill(area + to, static_cast<int>(bytes), bytes);
        std::memset(model.data() + to, static_cast<int>(bytes), bytes);
    }
    const std::size_t many = 1 + below(area_bytes), at = below(area_bytes - many + 1);
    ASSERT_EQ(std::memcmp(hf_redo_read(area + at, many), model.data() + at, many), 0);
    // Each of several reads stays valid beside the others.
    const void* reads[HF_REDO_READS];
    for (std::size_t i = 0; i < HF_REDO_READS; ++i) reads[i] = hf_redo_read(area + i * 7, 30);
    for (std::size_t i = 0; i < HF_REDO_READS; ++i)
        ASSERT_EQ(std::memcmp(reads[i], model.data() + i * 7, 30), 0);
}

TEST_P(Redo, ASectionSeesWhatItStoredAndOthersOnlyWhatIsCommitted) {
    pool p = open();
    std::byte* const area = p.root<root>()->area;
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
        std::mt19937_64 random(seed);
        const std::vector<std::byte> before(area, area + area_bytes);
        std::vector<std::byte> model = before;
        section([&] {
            for (std::uint64_t i = 0; i < 1 + seed % 40; ++i) {
                ASSERT_NO_FATAL_FAILURE(change(random, area, model)) << "seed " << seed;
                ASSERT_EQ(std::memcmp(area, before.data(), area_bytes), 0) << "seed " << seed;
            }
        });
        ASSERT_EQ(std::memcmp(area, model.data(), area_bytes), 0) << "seed " << seed;
    }
}

TEST_P(Redo, OverlappingBytesMoveWhole) {
    pool p = open();
    std::byte* const area = p.root<root>()->area;
    for (std::size_t from = 0; from < 40; ++from)
        for (std::size_t to = 0; to < 40; ++to)
            for (std::size_t bytes = 0; bytes <= 36; ++bytes)
                section([&] {
                    std::vector<std::byte> model(80);
                    for (std::size_t i = 0; i < model.size(); ++i) model[i] = std::byte(i + 1);
                    hf_redo_put(area, model.data(), model.size());
                    hf_redo_copy(area + to, area + from, bytes);
                    std::memmove(model.data() + to, model.data() + from, bytes);
                    ASSERT_EQ(std::memcmp(hf_redo_read(area, 80), model.data(), 80), 0)
                        << from << ' ' << to << ' ' << bytes;
                });
}

TEST_P(Redo, StoresAndLoadsNeedNoAlignment) {
    pool p = open();
    root* const r = p.root<root>();
    for (std::size_t at = 0; at < 140; ++at)
        for (const std::size_t size : {2U, 4U, 8U, 16U}) {
            std::vector<std::byte> model(r->area, r->area + area_bytes);
            section([&] {
                hf_redo_fill(r->area + 160, static_cast<int>(at), 8); // not lost by it
                std::memset(model.data() + 160, static_cast<int>(at), 8);
                void* const place = hf_redo_write(r->area + at, size);
                std::memset(place, static_cast<int>(at + size), size);
                std::memset(model.data() + at, static_cast<int>(at + size), size);
                const std::size_t near = at < 16 ? 0 : at - 16;
                for (std::size_t from = near; from < at + 16;
                     ++from) { // before any of them is read
                    const bool meets = from < at + size && at < from + 16;
                    ASSERT_TRUE(!meets || filter_says(r->area + from));
                }
                for (std::size_t from = near; from < at + 16; ++from) {
                    ASSERT_EQ(
                        std::memcmp(hf_redo_read(r->area + from, 16), model.data() + from, 16), 0);
                }
            });
            ASSERT_EQ(std::memcmp(r->area, model.data(), area_bytes), 0) << at << ' ' << size;
        }
}

/// What a compiled load of at most 16 bytes asks.
bool says(const redo::store_filter& filter, const std::byte* address) {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    return (filter.words()[at / 1024 % HF_REDO_FILTER_WORDS] >> at / 16 % 64 & 1) != 0;
}
bool is_clear(const std::uint64_t* words) {
    return std::all_of(words, words + HF_REDO_FILTER_WORDS, [](auto word) { return word == 0; });
}
std::byte* address(std::uintptr_t number) { return reinterpret_cast<std::byte*>(number); }

TEST(RedoFilter, SaysSoOfEachLoadThatMeetsWhatWasNoted) {
    constexpr std::uintptr_t base = 0x7000'0000'0000;
    std::mt19937_64 random(1);
    for (int i = 0; i < 2000; ++i) {
        redo::store_filter filter;
        const std::uintptr_t at = base + random() % 5000;
        const std::uint64_t bytes = 1 + random() % (i % 2 == 0 ? 16 : 3000);
        if (bytes <= 16 && at % 16 + bytes <= 16) filter.note_granule(address(at / 16 * 16));
        else filter.note(address(at), bytes);
        for (std::uintptr_t from = at - 40; from < at + bytes + 40; from += 1 + random() % 7) {
            const bool meets = from < at + bytes && at < from + 16;
            // A granule before the first that was noted, or behind the last: nothing.
            const bool far = from / 16 + 1 < at / 16 || from / 16 > (at + bytes - 1) / 16;
            ASSERT_TRUE(!meets || says(filter, address(from))) << at << ' ' << bytes << ' ' << from;
            ASSERT_TRUE(!far || !says(filter, address(from))) << at << ' ' << bytes << ' ' << from;
            const std::uint64_t more = 1 + random() % 2000;
            const bool waits = redo::store_filter::may_wait(filter.words(), address(from), more);
            ASSERT_TRUE(waits || from >= at + bytes || from + more <= at);
            ASSERT_TRUE(!waits || from + more > at / 16 * 16 - 16);
        }
    }
}

TEST(RedoFilter, ForgetsByLinesAllThatWasNoted) {
    std::mt19937_64 random(2);
    for (int i = 0; i < 300; ++i) {
        redo::store_filter filter;
        for (const std::uintptr_t at : {random() >> 17, random() >> 17}) {
            const std::uint64_t bytes = 1 + random() % 4000;
            filter.note(address(at), bytes);
            filter.note_granule(address(at / 16 * 16));
            for (std::uintptr_t line = at / 64 * 64; line < at + bytes; line += 64)
                filter.forget_line(address(line));
            ASSERT_TRUE(is_clear(filter.words())) << at << ' ' << bytes;
        }
        filter.note(address(random() >> 17), 1 << 20); // more than it has bits for
        ASSERT_TRUE(redo::store_filter::may_wait(filter.words(), address(16), 1));
        filter.forget_all();
        ASSERT_TRUE(is_clear(filter.words()));
    }
}

TEST(RedoBuffer, HasEachLineOnceAndItsRunsAreAllThatWaits) {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        std::mt19937_64 random(seed);
        redo::write_buffer buffer;
        for (int twice = 0; twice < 2; ++twice) { // and again when it was cleared
            std::vector<int> model((seed * 50 + 100) * 64, -1), seen = model; // -1: does not wait
            for (std::uint64_t i = 0; i < seed * 10; ++i) {
                const std::uint64_t line = random() % (seed * 50) * 64;
                const std::uint64_t most = 1 + random() % 100;
                std::uint64_t free_lines = 0;
                while (free_lines < most && buffer.find(line + free_lines * 64).is == nullptr)
                    ++free_lines;
                const int value = static_cast<int>(random() % 256);
                if (free_lines > 1 && i % 5 == 0) {
                    const auto made = buffer.add_whole(line, free_lines);
                    ASSERT_TRUE(made.lines > 0 && made.lines <= free_lines);
                    std::memset(made.bytes, value, made.lines * 64);
                    std::fill_n(model.begin() + line, made.lines * 64, value);
                    continue;
                }
                const std::uint64_t first = random() % 64, bytes = 1 + random() % (64 - first);
                const redo::buffered_line at = buffer.at(line);
                ASSERT_EQ(at.is->offset, line);
                ASSERT_EQ(buffer.find(line).bytes, at.bytes);
                std::memset(at.bytes + first, value, bytes);
                at.is->mask |= redo::mask_of(first, bytes);
                std::fill_n(model.begin() + line + first, bytes, value);
            }
            redo::write_buffer::runs all(buffer);
            for (redo::buffered_run r; all.next(r);) {
                ASSERT_TRUE(r.granules == 1 || r.mask == redo::whole_granule);
                for (std::uint64_t b = 0; b < r.granules * granule_bytes; ++b) {
                    if ((r.mask >> b % 16 & 1) == 0) continue;
                    ASSERT_EQ(seen[r.offset + b], -1) << "twice";
                    seen[r.offset + b] = static_cast<int>(r.bytes[b]);
                }
            }
            ASSERT_TRUE(seen == model) << "seed " << seed;
            buffer.clear();
            for (std::uint64_t line = 0; line < model.size(); line += 64)
                ASSERT_EQ(buffer.find(line).is, nullptr);
        }
    }
}

/// Long moves, copies and fills over lines that a section may have stored to before.
TEST_P(Redo, LongMovesAreSeenAndCommittedOrTakenBack) {
    constexpr std::size_t block_bytes = 24'000;
    pool p = open();
    root* const r = p.root<root>();
    section([&] {
        void* own = hf_alloc(block_bytes);
        hf_note_store(own, block_bytes);
        std::memset(own, 0, block_bytes);
        std::memcpy(hf_redo_write(&r->block, 8), &own, 8);
    });
    auto* const area = reinterpret_cast<std::byte*>(r->block);
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        std::mt19937_64 random(seed);
        const std::vector<std::byte> before(area, area + block_bytes);
        std::vector<std::byte> model = before;
        hf_redo_begin(&described, nullptr);
        ASSERT_TRUE(is_clear(hf_redo_filter)) << "what the section before has stored is forgotten";
        for (std::uint64_t i = 0; i < 1 + seed % 9; ++i) {
            const std::size_t bytes = 1 + random() % (block_bytes / 2);
            const std::size_t to = random() % (block_bytes - bytes);
            const std::size_t from = random() % (block_bytes - bytes);
            const std::size_t at = random() % (block_bytes - 16);
            std::memset(hf_redo_write(area + at, 8), static_cast<int>(i), 8);
            std::memset(model.data() + at, static_cast<int>(i), 8);
            if (i % 3 == 2) {
                hf_redo_fill(area + to, static_cast<int>(seed), bytes);
                std::memset(model.data() + to, static_cast<int>(seed), bytes);
            } else if (i % 3 == 1) {
                hf_redo_copy(area + to, area + from, bytes);
                std::memmove(model.data() + to, model.data() + from, bytes);
            } else {
                std::vector<std::byte> fresh(bytes);
                for (std::byte& each : fresh) each = static_cast<std::byte>(random());
                hf_redo_put(area + to, fresh.data(), bytes);
                std::memcpy(model.data() + to, fresh.data(), bytes);
            }
            const std::size_t many = 1 + random() % (block_bytes - at);
            ASSERT_EQ(std::memcmp(hf_redo_read(area + at, many), model.data() + at, many), 0);
            ASSERT_EQ(std::memcmp(area, before.data(), block_bytes), 0) << "seed " << seed;
        }
        if (seed % 4 == 0) {
            if (seed % 8 == 0) hf_redo_write(area + 12, 8); // the last: across granules
            hf_redo_abort();
            model = before;
        } else {
            hf_redo_commit();
        }
        ASSERT_EQ(std::memcmp(area, model.data(), block_bytes), 0) << "seed " << seed;
    }
}

TEST(RedoCallees, EndWithTheModuleThatToldOfThem) {
    const auto one = [] {};
    const auto other = [] {};
    static const char function = 0;
    const hf_callees_row fit{&function, &one, "f", nullptr};
    const hf_callees_row as_fit{&function, &other, "f", nullptr};
    const hf_callees_row unfit{&function, nullptr, "f", "it prints"};
    hf_redo_register_callees(&unfit, 1);
    hf_redo_register_callees(&fit, 1);
    hf_redo_register_callees(&as_fit, 1);
    EXPECT_NE(hf_redo_callee(&function, "here"), nullptr);
    hf_redo_forget_callees(&fit, 1);
    EXPECT_EQ(hf_redo_callee(&function, "here"), &other)
        << "which another module has told of as well";
    hf_redo_forget_callees(&as_fit, 1);
    EXPECT_DEATH(hf_redo_callee(&function, "here"),
                 "here: a section calls f by its address.*it prints");
    hf_redo_forget_callees(&unfit, 1);
    EXPECT_DEATH(hf_redo_callee(&function, "here"), "expected a version of it for sections");
}

TEST_P(Redo, StringsEndWhereTheSectionEndedThem) {
    pool p = open();
    std::byte* const area = p.root<root>()->area;
    section([&] { hf_redo_fill(area, 'a', 64); });
    section([&] {
        EXPECT_EQ(std::strlen(static_cast<const char*>(hf_redo_read_string(area))), 64U);
        hf_redo_fill(area + 40, 0, 1);
        EXPECT_EQ(std::strlen(static_cast<const char*>(hf_redo_read_string(area + 3))), 37U);
        EXPECT_EQ(std::strlen(static_cast<const char*>(hf_redo_read_string(area + 41))), 23U);
    });
}

TEST_P(Redo, VolatileMemoryAndItsOwnAreStoredToAtOnce) {
    pool p = open();
    root* const r = p.root<root>();
    std::uint64_t local = 1;
    section([&] {
        store(&local, 2);
        EXPECT_EQ(local, 2U);
        auto* own = static_cast<std::uint64_t*>(hf_alloc(64));
        store(own, 3);
        EXPECT_EQ(*own, 3U);
        EXPECT_EQ(seen(own), 3U);
        std::memcpy(hf_redo_write(&r->block, 8), &own, 8);
        EXPECT_EQ(r->block, nullptr);
    });
    EXPECT_EQ(*r->block, 3U);
    EXPECT_EQ(account(p).blocks, 2U);
}

TEST_P(Redo, ASectionWaitsOnceOneThatStoresNothingNever) {
    pool p = open();
    root* const r = p.root<root>();
    section([&] { hf_redo_fill(r->area, 1, 1); });
    const auto points = [](auto&& body) {
        const std::uint64_t before = persist::thread_counters().ordering_points;
        section(body);
        return persist::thread_counters().ordering_points - before;
    };
    const std::uint64_t once = GetParam() == mode::process ? 2 : 1; // there a fence costs nothing
    EXPECT_EQ(points([&] { hf_redo_fill(r->area, 2, 100); }), once);
    EXPECT_EQ(points([&] {
                  auto* own = static_cast<std::uint64_t*>(hf_alloc(64));
                  store(own, 3);
                  std::memcpy(hf_redo_write(&r->block, 8), &own, 8);
              }),
              once);
    EXPECT_EQ(points([&] { (void)seen(reinterpret_cast<std::uint64_t*>(r->area)); }), 0U);
}

TEST_P(Redo, AnotherThreadsSectionWaitsTwiceMoreOnlyWhereItGoesOnFromThisOnes) {
    if (GetParam() == mode::process) return; // no fence there
    pool p = open();
    root* const r = p.root<root>();
    const auto points = [&](std::byte* at, std::uint64_t bytes) {
        const std::uint64_t before = persist::thread_counters().ordering_points;
        section([&] { hf_redo_fill(at, 3, bytes); });
        return persist::thread_counters().ordering_points - before;
    };
    (void)points(r->area, 8);
    std::thread([&] {
        EXPECT_EQ(points(r->area + 128, 8), 1U + 1U); // and one for the lane, which it takes
        EXPECT_EQ(points(r->area + 128, 8), 1U);
        EXPECT_EQ(points(r->area + 4, 8), 3U);
        EXPECT_EQ(points(r->area + 4, 8), 1U); // that mark is durable
    }).join();
    EXPECT_EQ(points(r->area, 8), 1U); // a thread that has left has no mark due
    std::uint64_t* own[6];             // more than left_stores names one by one
    section([&] {
        for (std::uint64_t*& each : own) each = static_cast<std::uint64_t*>(hf_alloc(64));
    });
    std::thread([&] {
        EXPECT_EQ(points(r->area + 128, 8), 1U);
        section([&] {
            const std::uint64_t before = persist::thread_counters().ordering_points;
            hf_free(own[5]);
            EXPECT_EQ(persist::thread_counters().ordering_points, before); // nothing happens yet
        });
        EXPECT_EQ(points(reinterpret_cast<std::byte*>(own[0]), 8), 1U); // durable with the other
    }).join();
}

TEST_P(Redo, WhatWasFreedIsNotHandedOutWhileThatMayBeReplayed) {
    constexpr std::uint64_t taken = 4;
    for (const bool much : {false, true}) { // memory of the last section's own: one fence more
        EXPECT_EXIT(
            {
                pool p = open();
                root* const r = p.root<root>();
                std::uint64_t* own = nullptr;
                section([&] {
                    own = static_cast<std::uint64_t*>(hf_alloc(64));
                    std::memcpy(hf_redo_write(&r->block, 8), &own, 8);
                });
                section([&] {
                    std::memset(hf_redo_write(&r->block, 8), 0, 8);
                    hf_free(own);
                });
                section([&] {
                    hf_redo_fill(r->area, 1, 1);
                    if (much) (void)hf_alloc(100'000);
                });
                for (std::uint64_t i = 0; i < taken; ++i) (void)hf_alloc(64); // outside of sections
                ::_exit(0);
            },
            ::testing::ExitedWithCode(0), "");
        {
            pool p = open();
            EXPECT_EQ(account(p).blocks, 1 + taken + (much ? 1 : 0));
        }
        ::unlink(path_.c_str());
    }
}

TEST_P(Redo, ASectionThatStoresToManyLinesDoesNotLeaveThemToTheNext) {
    if (GetParam() == mode::process) return; // no fence there
    pool p = open();
    root* const r = p.root<root>();
    constexpr std::uint64_t many = 4096;
    section([&] {
        void* own = hf_alloc(many);
        std::memcpy(hf_redo_write(&r->block, 8), &own, 8);
    });
    const std::uint64_t before = persist::thread_counters().ordering_points;
    section([&] { hf_redo_fill(r->block, 2, many); });
    EXPECT_EQ(persist::thread_counters().ordering_points - before, 3U);
}

/// A section's log as a kill leaves it behind its last record: one store, to 'offset'.
void leave_log(pool& p, std::uint64_t offset, std::uint64_t value, bool whole,
               std::uint64_t cut = 0) {
    pool_file& file = *p.internals().file;
    const std::uint64_t epoch = p.internals().lanes[0].epoch + 1;
    start_lane(file, 0, epoch - 1);
    const begin_payload head{epoch, described.id, described.version, engine_redo, 0, 0};
    const deferred_store where{offset << 16 | 0xff};
    std::byte store[16];
    std::memcpy(store, &where, 8);
    std::memcpy(store + 8, &value, 8);
    as_its_kind(file.medium(), [&](auto pm) {
        lane_writer_in log(pm);
        log.start(lane_start(file, 0, epoch));
        log.append(record_kind::begin, log.begin_bits, sizeof head, &head, sizeof head);
        log.append(record_kind::new_bytes, whole, sizeof store - cut, store, sizeof store - cut);
    });
    file.medium().fence();
}

TEST_P(Redo, AWholeLogIsReplayedAnyOtherHasChangedNothing) {
    for (const bool whole : {true, false}) {
        {
            pool p = open();
            auto* at = reinterpret_cast<std::uint64_t*>(p.root<root>()->area);
            section([&] { store(at, 1); });
            leave_log(p, p.offset_of(at), 2, whole);
            pool::impl::abandon(std::move(p));
        }
        pool p = open();
        EXPECT_EQ(*reinterpret_cast<std::uint64_t*>(p.root<root>()->area), whole ? 2U : 1U);
        EXPECT_EQ(p.recovered().replayed, whole ? 1U : 0U);
        EXPECT_EQ(p.recovered().discarded, whole ? 0U : 1U);
    }
}

TEST_P(Redo, ALogThatLeadsElsewhereIsRefused) {
    std::uint64_t inside = 0;
    {
        pool p = open();
        inside = p.offset_of(p.root<root>()->area);
    }
    struct log {
        std::uint64_t offset, cut;
    };
    for (const log l : {log{64, 0}, {inside + 8, 0}, {inside, 4}, {inside, 12}, {1ULL << 47, 0}}) {
        {
            pool p = open();
            leave_log(p, l.offset, 2, true, l.cut);
            pool::impl::abandon(std::move(p));
        }
        const auto p = try_open();
        ASSERT_FALSE(p) << l.offset << ' ' << l.cut;
        EXPECT_EQ(p.error().code(), errc::corrupt) << p.error().what();
        ::unlink(path_.c_str());
        (void)open();
    }
}

/// A log that goes on in the heap, with what 'forge' appends there.
template <class Forge> void leave_forged(pool& p, Forge&& forge) {
    pool_file& file = *p.internals().file;
    const std::uint64_t epoch = p.internals().lanes[0].epoch + 1;
    start_lane(file, 0, epoch - 1);
    thread_cache cache;
    const block segment = p.internals().blocks.reserve(cache, segment_bytes_min(file));
    const begin_payload head{epoch, described.id, described.version, engine_redo, 0, 0};
    as_its_kind(file.medium(), [&](auto pm) {
        lane_writer_in log(pm);
        log.start(lane_start(file, 0, epoch));
        log.append(record_kind::begin, log.begin_bits, sizeof head, &head, sizeof head);
        log.continue_in(file.base() + segment.offset, segment.offset, segment.bytes);
        forge(log, segment);
        const deferred_store none{};
        log.append(record_kind::new_bytes, 1, 0, &none, 0);
    });
    file.medium().fence();
}

TEST_P(Redo, ARunThatLeadsElsewhereIsRefused) {
    std::uint64_t inside = 0, end = 0;
    {
        pool p = open();
        inside = p.offset_of(p.root<root>()->area);
        end = p.size_bytes();
    }
    inside -= inside % granule_bytes;
    struct run {
        std::uint64_t offset, granules, bytes;
    };
    for (const run r : {run{inside, 0, 32},
                        {inside, 3, 32},
                        {inside, ~0ULL / 16, 32},
                        {inside, 2, 24},
                        {inside, 0, 0},
                        {inside + 8, 2, 32},
                        {end - 16, 2, 32},
                        {64, 2, 32}}) {
        {
            pool p = open();
            leave_forged(p, [&](auto& log, block) {
                std::uint64_t stores[6] = {r.offset << 16, r.granules, 1, 2, 3, 4};
                log.append(record_kind::new_bytes, 0, 16 + r.bytes, stores, 16 + r.bytes);
            });
            pool::impl::abandon(std::move(p));
        }
        const auto p = try_open();
        ASSERT_FALSE(p) << r.offset << ' ' << r.granules;
        EXPECT_EQ(p.error().code(), errc::corrupt) << p.error().what();
        ::unlink(path_.c_str());
        (void)open();
    }
}

TEST_P(Redo, ALogThatStoresOverItselfIsRefused) {
    {
        pool p = open();
        leave_forged(p, [](auto& log, block segment) {
            const std::uint64_t store[] = {(segment.offset + 64) << 16 | 0xff, 0};
            log.append(record_kind::new_bytes, 0, sizeof store, store, sizeof store);
        });
        pool::impl::abandon(std::move(p));
    }
    const auto p = try_open();
    ASSERT_FALSE(p);
    EXPECT_EQ(p.error().code(), errc::corrupt) << p.error().what();
}

TEST_P(Redo, ALogThatFreesABlockTwiceIsRefused) {
    {
        pool p = open();
        root* const r = p.root<root>();
        section([&] {
            auto* own = static_cast<std::uint64_t*>(hf_alloc(64));
            std::memcpy(hf_redo_write(&r->block, 8), &own, 8);
        });
        leave_forged(p, [&](auto& log, block) {
            for (int twice = 0; twice < 2; ++twice)
                log.append(record_kind::free, p.offset_of(r->block), 64, nullptr, 0);
        });
        pool::impl::abandon(std::move(p));
    }
    const auto p = try_open();
    ASSERT_FALSE(p);
    EXPECT_EQ(p.error().code(), errc::corrupt) << p.error().what();
}

TEST_P(Redo, ManyBlocksAreReplayed) {
    constexpr std::uint64_t many = 20'000;
    {
        pool p = open();
        root* const r = p.root<root>();
        hf_redo_begin(&described, nullptr);
        for (std::uint64_t i = 0; i < many; ++i) {
            auto* own = static_cast<std::uint64_t*>(hf_alloc(16));
            hf_note_store(own, 8);
            *own = i;
            if (i % 2 == 1) hf_free(own);
            else if (i == 0) std::memcpy(hf_redo_write(&r->block, 8), &own, 8);
        }
        hf_redo_commit();
        EXPECT_EQ(account(p).blocks, 1 + many / 2);
    }
    pool p = open();
    EXPECT_EQ(account(p).blocks, 1 + many / 2);
}

/// What a section that ends as if it had never begun must not leave behind: it stores, allocates,
/// frees, adopts, and frees what it has allocated and adopted.
void do_everything(root* r, void* staged, void* also_staged) {
    hf_redo_fill(r->area, 0xab, area_bytes);
    hf_adopt(staged);
    hf_redo_fill(staged, 0xcd, 64);
    hf_adopt(also_staged);
    hf_free(also_staged);
    for (const std::size_t bytes : {16U, 64U, 5000U}) {
        void* const own = hf_alloc(bytes);
        hf_note_store(own, 16);
        std::memset(own, 0xef, 16);
        std::memcpy(hf_redo_write(&r->block, 8), &own, 8);
        hf_free(hf_alloc(bytes));
    }
}

/// A pool with one block that can be freed, and two that are staged.
struct ready {
    explicit ready(pool& in)
        : p(in), r(in.root<root>()), staged(staged::in(in, 64)->release()),
          also_staged(staged::in(in, 64)->release()) {
        hf_redo_begin(&described, nullptr);
        auto* own = static_cast<std::uint64_t*>(hf_alloc(64));
        hf_note_store(own, 8);
        *own = 7;
        std::memcpy(hf_redo_write(&r->block, 8), &own, 8);
        hf_redo_commit();
        std::memset(staged, 3, 64);
        const auto* const whole = reinterpret_cast<const std::byte*>(r);
        before.assign(whole, whole + sizeof *r);
        blocks = account(in).blocks;
    }
    void expect_as_it_was() const {
        EXPECT_EQ(std::memcmp(r, before.data(), sizeof(root)), 0);
        EXPECT_EQ(account(p).blocks, blocks);
        EXPECT_EQ(*r->block, 7U);
        EXPECT_EQ(*static_cast<const unsigned char*>(staged), 3U);
    }
    pool& p;
    root* r;
    void* staged;
    void* also_staged;
    std::vector<std::byte> before;
    std::uint64_t blocks = 0;
};

TEST_P(Redo, ASectionThatAbortsSeesItsStoresAndHasNotHappened) {
    pool p = open();
    const ready all(p);
    section([&] {
        EXPECT_EQ(hf_redo_begin(&described, nullptr), 0) << "joins it";
        hf_abort_section();
        do_everything(all.r, all.staged, all.also_staged);
        hf_free(all.r->block);
        EXPECT_EQ(*static_cast<const unsigned char*>(hf_redo_read(all.r->area, 1)), 0xab);
    });
    EXPECT_FALSE(filter_says(all.r->area)) << "of a thread in no section";
    all.expect_as_it_was();
    section([&] { // what it has given back can be used again
        hf_free(all.r->block);
        hf_adopt(all.staged);
        hf_adopt(all.also_staged);
        std::memcpy(hf_redo_write(&all.r->block, 8), &all.staged, 8);
    });
    EXPECT_EQ(account(p).blocks, all.blocks + 1);
}

TEST_P(Redo, ASectionThatIsLeftByAnExceptionHasNotHappened) {
    pool p = open();
    const ready all(p);
    hf_redo_begin(&described, nullptr);
    do_everything(all.r, all.staged, all.also_staged);
    hf_free(all.r->block);
    hf_redo_abort();
    all.expect_as_it_was();
    section(
        [&] { EXPECT_EQ(*static_cast<const unsigned char*>(hf_redo_read(all.r->area, 1)), 0U); });
}

TEST_P(Redo, AKillAfterAnAbortFindsWhatWasThereBefore) {
    for (const bool goes_on : {false, true}) {
        {
            pool p = open();
            const ready all(p);
            hf_redo_begin(&described, nullptr);
            do_everything(all.r, all.staged, all.also_staged);
            hf_free(all.r->block);
            hf_redo_abort();
            if (goes_on) // with the blocks that it had taken
                section([&] { do_everything(all.r, all.staged, all.also_staged); });
            pool::impl::abandon(std::move(p));
        }
        {
            pool p = open();
            root* const r = p.root<root>();
            EXPECT_EQ(r->area[0], goes_on ? std::byte{0xab} : std::byte{0});
            EXPECT_EQ(account(p).blocks, goes_on ? 2U + 4U : 2U);
        }
        ::unlink(path_.c_str());
    }
}

TEST_P(Redo, ASectionThatAbortsWaitsForNothing) {
    pool p = open();
    const ready all(p);
    const std::uint64_t before = persist::thread_counters().ordering_points;
    section([&] {
        hf_abort_section();
        do_everything(all.r, all.staged, all.also_staged);
        hf_free(all.r->block);
    });
    EXPECT_EQ(persist::thread_counters().ordering_points, before);
}

TEST_P(Redo, SectionsThatAbortLoseNoBlocks) {
    pool p = open();
    root* const r = p.root<root>();
    section([&] {
        void* const own = hf_alloc(64);
        std::memcpy(hf_redo_write(&r->block, 8), &own, 8);
    });
    for (int i = 0; i < 20'000; ++i) {
        hf_redo_begin(&described, nullptr);
        void* const own = hf_alloc(4000);
        ASSERT_NE(own, nullptr) << i;
        hf_redo_put(&r->area, &own, 8);
        hf_free(r->block);
        if (i % 2 == 0) hf_redo_abort();
        else hf_abort_section(), hf_redo_commit();
    }
    EXPECT_EQ(account(p).blocks, 2U);
}

TEST_P(Redo, ASectionWhoseLogFindsNoRoomHasNotHappened) {
    constexpr std::size_t large = 4 << 20; // more than is kept for logs
    std::byte* target = nullptr;
    {
        pool p = open();
        root* const r = p.root<root>();
        const auto take_all = [&](std::size_t bytes) {
            for (void* own = &own; own != nullptr;)
                section([&] {
                    own = hf_alloc(bytes);
                    if (own != nullptr) std::memcpy(hf_redo_write(&r->block, 8), &own, 8);
                });
        };
        take_all(large);
        target = reinterpret_cast<std::byte*>(r->block);
        for (std::size_t rest = 1 << 20; rest >= 16; rest /= 2) take_all(rest);
        const std::uint64_t blocks = account(p).blocks;
        hf_redo_begin(&described, nullptr);
        hf_redo_fill(r->area, 1, 1);
        hf_redo_fill(target, 5, large);
        EXPECT_THROW(hf_redo_commit_or_throw(), std::bad_alloc);
        EXPECT_EQ(r->area[0], std::byte{0});
        EXPECT_EQ(target[0], std::byte{0});
        EXPECT_EQ(account(p).blocks, blocks);
        section([&] { hf_redo_fill(r->area, 2, 1); }); // the log's reserve is there again
        section([&] { hf_redo_fill(target, 6, 64 << 10); });
        EXPECT_EQ(target[0], std::byte{6});
        section([&] { // no error: the section asked for the abort
            hf_abort_section();
            hf_redo_fill(target, 7, large);
        });
    }
    // In a process of its own; the file is mapped where it was.
    EXPECT_DEATH(
        {
            pool p = open();
            section([&] { hf_redo_fill(target, 7, large); });
        },
        "no room for the log of redo .* nothing of the section has happened");
    pool p = open();
    EXPECT_EQ(p.root<root>()->area[0], std::byte{2});
    EXPECT_EQ(target[0], std::byte{6});
}

TEST_P(Redo, OutsideASectionThereIsNothingToTakeBack) {
    pool p = open();
    EXPECT_DEATH(hf_abort_section(), "no section is open on this thread");
}

INSTANTIATE_TEST_SUITE_P(Modes, Redo, ::testing::Values(mode::process, mode::pmem),
                         [](const auto& info) {
                             return info.param == mode::process ? "process" : "pmem";
                         });

} // namespace
