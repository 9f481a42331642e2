// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: the simulated machine gets exactly what the plugin's trace mode reports of plain code.
// Method: this file is built in trace mode; a hash table of src/structures lives in an arena, and
// the record, replayed in order, leaves the arena's bytes.
#include <slpmt/measure.hpp>
#include <slpmt/trace_mode.hpp>
#include <structures/hash_table.hpp>

#include <holdfast/author/staged.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <unistd.h>

namespace {

struct alignas(64) arena_bytes {
    std::byte bytes[256 << 10];
};
std::unique_ptr<arena_bytes> arena;
std::size_t used = 0;

} // namespace

extern "C" void* hf_alloc(std::size_t bytes) noexcept {
    void* block = arena->bytes + used;
    used += (bytes + 15) / 16 * 16;
    return block;
}
extern "C" void hf_free(void*) noexcept {}
extern "C" void hf_adopt(void*) noexcept {}

namespace {

using hf::slpmt::event;
using hf::slpmt::event_kind;
using hf::slpmt::recorded;
using hf::slpmt::trace_mode_recorder;
using hf::structures::hash_node;
using hf::structures::hash_table;

TEST(TraceMode, RecordsWhatPlainCodeDoes) {
    arena = std::make_unique<arena_bytes>();
    used = 0;
    recorded made;
    {
        auto* table = static_cast<hash_table*>(hf_alloc(sizeof(hash_table)));
        trace_mode_recorder recorder{arena->bytes};
        recorder.start();
        for (std::uint64_t i = 1; i <= 300; ++i) {
            recorder.begin();
            auto* node = static_cast<hash_node*>(hf_alloc(sizeof(hash_node)));
            node->hash = i * 0x9e3779b97f4a7c15;
            ASSERT_TRUE(hf::structures::link(table, node));
            recorder.commit();
        }
        made = recorder.take();
    }
    EXPECT_EQ(made.counts.transactions, 304U);
    EXPECT_GT(made.counts.loads, 300U);
    // 300 times hash, next, a link and the count, and what splits store.
    EXPECT_GE(made.counts.stores, 1200U);
    auto again = std::make_unique<arena_bytes>();
    for (const event& one : made.events)
        if (one.kind == event_kind::store)
            std::memcpy(again->bytes + (one.offset - made.where.heap()), &one.value, 8);
    EXPECT_EQ(0, std::memcmp(arena->bytes, again->bytes, sizeof again->bytes));
}

TEST(TraceMode, ItsTraceIsReadAndReplayed) {
    arena = std::make_unique<arena_bytes>();
    used = 0;
    auto* words = static_cast<std::uint64_t*>(hf_alloc(4096));
    trace_mode_recorder recorder{arena->bytes};
    recorder.start();
    for (std::uint64_t i = 0; i < 64; ++i) {
        recorder.begin();
        words[i * 8] = words[(i * 37) % 512] + 1;
        recorder.commit();
    }
    const recorded made = recorder.take();
    const std::string path = "/dev/shm/holdfast-trace-mode." + std::to_string(getpid());
    ASSERT_TRUE(hf::slpmt::write_trace(path, made).ok());
    const auto read = hf::slpmt::read_trace(path);
    std::remove(path.c_str());
    ASSERT_TRUE(read) << read.error().what();
    EXPECT_EQ(read->events, made.events);
    const hf::slpmt::measured got = hf::slpmt::replay(*read, hf::slpmt::fg, {});
    EXPECT_EQ(got.accesses, made.counts.loads + made.counts.stores);
    EXPECT_EQ(got.counts.data_lines, 64U); // each transaction stores to a line of its own
}

} // namespace
