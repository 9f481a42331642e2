// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a trace, replayed, is the run that it was recorded from, on any machine, by any technique.
// A file that is not whole, not a trace, or of another version is refused, whatever its bytes.
// Method: every figure of the study compared; files cut at every length, and changed with a
// checksum that fits.
#include <base/checksum.hpp>
#include <slpmt/measure.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <unistd.h>

namespace {

using namespace hf::slpmt;

struct file_of_test {
    std::string path = "/dev/shm/holdfast-trace." + std::to_string(getpid());
    ~file_of_test() { std::remove(path.c_str()); }
    std::string bytes() const {
        std::ifstream file(path, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    void write(const std::string& bytes) const {
        std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    }
};

void expect_same(const measured& a, const measured& b) {
    EXPECT_EQ(a.ns, b.ns);
    EXPECT_EQ(a.pm_lines, b.pm_lines);
    EXPECT_EQ(a.accesses, b.accesses);
    EXPECT_EQ(a.lazy_at_risk_max, b.lazy_at_risk_max);
    EXPECT_EQ(a.lazy_at_risk_mean, b.lazy_at_risk_mean);
    EXPECT_EQ(a.wear_max, b.wear_max);
    EXPECT_EQ(0, std::memcmp(&a.counts, &b.counts, sizeof a.counts));
    EXPECT_EQ(0, std::memcmp(&a.caches, &b.caches, sizeof a.caches));
}

TEST(Trace, ReplayedFromItsFileGivesTheSameFigures) {
    const file_of_test file;
    hf::sim::parameters slow; // a machine that differs from the recorded one
    slow.memory.write_ns = 2300;
    slow.core.reorder_buffer = 64;
    for (const char* name :
         {"hashtable", "rbtree", "heap", "avl", "kv-btree", "kv-ctree", "kv-rtree"}) {
        measured_case what{.workload = name, .insertions = 120, .value_bytes = 64};
        const recorded made = record(what);
        ASSERT_TRUE(write_trace(file.path, made).ok());
        const auto read = read_trace(file.path);
        ASSERT_TRUE(read) << read.error().what();
        EXPECT_EQ(read->events, made.events);
        for (const technique& how : {slpmt, fg, fg_lz, atom, ede, with_redo(slpmt, "redo")})
            for (const hf::sim::parameters& parts : {hf::sim::parameters{}, slow}) {
                SCOPED_TRACE(std::string(name) + ", " + std::string(how.name));
                what.how = how;
                what.parts = parts;
                expect_same(replay(*read, how, parts), measure(what));
            }
    }
}

TEST(Trace, ReadingRefusesEveryShorterFile) {
    const file_of_test file;
    ASSERT_TRUE(
        write_trace(file.path, record({.workload = "heap", .insertions = 2, .value_bytes = 16}))
            .ok());
    const std::string whole = file.bytes();
    for (std::size_t size = 0; size < whole.size(); ++size) {
        file.write(whole.substr(0, size));
        const auto read = read_trace(file.path);
        ASSERT_FALSE(read) << size;
        EXPECT_EQ(read.error().code(), hf::errc::truncated);
        EXPECT_NE(read.error().what().find("expected"), std::string::npos);
        EXPECT_NE(read.error().what().find("found " + std::to_string(size)), std::string::npos)
            << read.error().what();
    }
    file.write(whole + "x");
    EXPECT_EQ(read_trace(file.path).error().code(), hf::errc::corrupt);
}

/// The result of reading a file with this change, its checksum made to fit.
hf::status after(const std::function<void(trace_header&)>& change, const recorded& made) {
    const file_of_test file;
    EXPECT_TRUE(write_trace(file.path, made).ok());
    std::string bytes = file.bytes();
    trace_header head;
    std::memcpy(&head, bytes.data(), sizeof head);
    change(head);
    const std::uint64_t first = hf::checksum(&head, offsetof(trace_header, checksum), trace_magic);
    head.checksum = hf::checksum(bytes.data() + sizeof head, bytes.size() - sizeof head, first);
    std::memcpy(bytes.data(), &head, sizeof head);
    file.write(bytes);
    const auto read = read_trace(file.path);
    return read ? hf::status{} : read.error();
}

TEST(Trace, ReadingNamesWhatItExpectedAndFound) {
    const recorded made = record({.workload = "heap", .insertions = 2, .value_bytes = 16});
    const auto expect = [&](const std::function<void(trace_header&)>& change, hf::errc code,
                            const char* text) {
        const hf::status s = after(change, made);
        EXPECT_EQ(s.code(), code) << s.what();
        EXPECT_NE(s.what().find(text), std::string::npos) << s.what();
    };
    expect([](trace_header&) {}, hf::errc::ok, "");
    expect([](trace_header& h) { h.magic = 0x46; }, hf::errc::corrupt,
           "magic: expected 0x45434152544d4953, found 0x46");
    expect([](trace_header& h) { h.version = 7; }, hf::errc::wrong_version,
           "version: expected 1, found 7");
    expect([](trace_header& h) { h.header_bytes = 8; }, hf::errc::corrupt, "expected 80, found 8");
    expect([](trace_header& h) { ++h.counts.stores; }, hf::errc::corrupt,
           "events, loads, stores, transactions: expected");
    expect([](trace_header& h) { h.memory_bytes = 1ULL << 40; }, hf::errc::corrupt,
           "bytes of memory");
    expect([](trace_header& h) { h.log_lines = 1ULL << 60; }, hf::errc::corrupt, "a log of");
    expect([](trace_header& h) { h.log_lines = 8; }, hf::errc::corrupt, "stores in a transaction");
    expect([](trace_header& h) { h.file_bytes = 8; }, hf::errc::corrupt, "expected 8, found more");
    expect([](trace_header& h) { --h.file_bytes; }, hf::errc::corrupt, "found more");
    expect([](trace_header& h) { h.file_bytes = ~0ULL; }, hf::errc::truncated, "bytes of the file");
    EXPECT_EQ(read_trace("/dev/shm/no such file").error().code(), hf::errc::not_found);
}

TEST(Trace, ReadingRefusesWhatIsNoFile) {
    EXPECT_EQ(read_trace("/dev/shm").error().code(), hf::errc::io_error) << "a folder";
    EXPECT_EQ(read_trace("/dev/zero").error().code(), hf::errc::corrupt) << "has no end";
    EXPECT_EQ(read_trace("/dev/null").error().code(), hf::errc::truncated);
}

TEST(Trace, ReadingRefusesEventsThatNoMachineCouldTake) {
    const auto expect = [&](std::vector<event> events, const char* text) {
        recorded made{layout{}, {}, {}};
        for (const event& one : events) made.add(one);
        const hf::status s = after([](trace_header&) {}, made);
        EXPECT_EQ(s.code(), hf::errc::corrupt) << text;
        EXPECT_NE(s.what().find(text), std::string::npos) << s.what();
    };
    const std::uint64_t heap = layout{}.heap();
    expect({{event_kind::load, {}, heap - 8, 0}}, "expected an offset from");
    expect({{event_kind::store, {}, layout{}.bytes, 0}}, "expected an offset from");
    expect({{event_kind::store, {}, ~std::uint64_t{0}, 0}}, "expected an offset from");
    expect({{event_kind::load, {}, heap, 0}, {event_kind::load, {}, heap, 2}}, "found number 2");
    expect({{event_kind::commit}}, "commits where no transaction");
    expect({{event_kind::begin}, {event_kind::begin}}, "begins a transaction in another");
    expect({{event_kind::begin}}, "expected a commit at the end");
    expect({{event_kind::stop}}, "where it cannot");
    expect({{event_kind::compute, {}, 0, 1ULL << 40}}, "instructions");
    expect({{event_kind::compute, lazy_logged, 0, 1}}, "operands");
    expect({{static_cast<event_kind>(7)}}, "is none that is known");
}

TEST(Trace, ReadingStopsAtNoBytesWhatever) {
    const file_of_test file;
    ASSERT_TRUE(
        write_trace(file.path, record({.workload = "heap", .insertions = 2, .value_bytes = 16}))
            .ok());
    const std::string whole = file.bytes();
    std::uint64_t random = 1;
    const auto next = [&] { return random = random * 6364136223846793005 + 1442695040888963407; };
    for (int i = 0; i < 2000;
         ++i) { // the checksum is made to fit: what is read then need not be refused
        std::string bytes = whole;
        for (int changes = 0; changes < 3; ++changes)
            bytes[sizeof(trace_header) + (next() >> 33) % (bytes.size() - sizeof(trace_header))] =
                static_cast<char>(next() >> 40);
        trace_header head;
        std::memcpy(&head, bytes.data(), sizeof head);
        const std::uint64_t first =
            hf::checksum(&head, offsetof(trace_header, checksum), trace_magic);
        head.checksum = hf::checksum(bytes.data() + sizeof head, bytes.size() - sizeof head, first);
        std::memcpy(bytes.data(), &head, sizeof head);
        file.write(bytes);
        const auto read = read_trace(file.path);
        if (read && i % 20 == 0) replay(*read, slpmt, {});
    }
}

} // namespace
