// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a batch has each line once, as it was taken last, whatever lines come together. Method:
// drawn lines, beside a map; patterns that crowd one part of the table of places.
#include <power/batch.hpp>
#include <power/found_log.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <map>
#include <random>

namespace {

using namespace hf;
using namespace hf::power;

constexpr std::uint64_t salt = 7;

struct alignas(line_bytes) one_line {
    std::array<std::uint64_t, line_bytes / word_bytes> words;
};

std::map<std::uint64_t, std::uint64_t> content_of(batch& full) {
    full.seal(salt);
    const batch::part all = full.to_write(0); // nothing of it was written early
    log_header h{};
    h.salt = salt;
    h.batch_bytes_max = all.bytes.size();
    const auto head = verified(all.bytes.data(), all.bytes.size(), h);
    std::map<std::uint64_t, std::uint64_t> found;
    if (!head) {
        ADD_FAILURE() << "the batch does not verify";
        return found;
    }
    for_each_line(all.bytes.data(), *head, [&](const logged_line& line) {
        std::uint64_t word = 0;
        std::memcpy(&word, line.bytes, sizeof word);
        EXPECT_TRUE(found.emplace(line.number, word).second) << line.number << " is there twice";
    });
    return found;
}

/// Batches of up to 'count' takes each, of lines that 'draw' gives, until one is full.
template <class Draw> void compare(std::uint64_t bytes_max, std::size_t count, Draw&& draw) {
    batch taken(bytes_max);
    std::uint64_t stored = 0;
    for (std::uint64_t sequence = 1; sequence <= 12; ++sequence) {
        taken.start(sequence);
        EXPECT_TRUE(taken.empty());
        std::map<std::uint64_t, std::uint64_t> expected;
        // Long and short ones in turns: the table of places grows and shrinks.
        for (std::size_t i = 0; i < (sequence % 4 == 0 ? count : 1 + count / 50); ++i) {
            const std::uint64_t line = draw();
            const one_line bytes{{++stored}};
            if (taken.take(line, reinterpret_cast<const std::byte*>(&bytes)))
                expected[line] = stored;
            else EXPECT_EQ(expected.size(), lines_in(bytes_max));
        }
        ASSERT_EQ(content_of(taken), expected);
    }
}

TEST(Batch, DrawnLinesAreThereOnce) {
    std::mt19937_64 random(1);
    ASSERT_NO_FATAL_FAILURE(compare(64 * block_bytes, 20000, [&] { return random() % 3000; }));
    ASSERT_NO_FATAL_FAILURE(compare(64 * block_bytes, 20000, [&] { return random() >> 7; }));
}
TEST(Batch, LinesInARow) {
    std::uint64_t next = 0;
    ASSERT_NO_FATAL_FAILURE(compare(64 * block_bytes, 20000, [&] { return next++; }));
}
// Takes only one line of each group of neighbours.
TEST(Batch, LinesFarApart) {
    std::uint64_t next = 0;
    ASSERT_NO_FATAL_FAILURE(compare(64 * block_bytes, 20000, [&] { return 8 * next++; }));
    ASSERT_NO_FATAL_FAILURE(compare(64 * block_bytes, 20000, [&] { return next++ << 36; }));
}
TEST(Batch, OfOneBlock) {
    std::mt19937_64 random(2);
    ASSERT_NO_FATAL_FAILURE(compare(block_bytes, 300, [&] { return random() % 100; }));
}
// More lines than a place's number can name: it is full before.
TEST(Batch, LongestOne) {
    constexpr std::uint64_t bytes_max = 2048 * block_bytes, lines_max = 65535;
    static_assert(lines_in(bytes_max) > lines_max);
    batch taken(bytes_max);
    taken.start(1);
    const one_line bytes{{9}};
    std::uint64_t line = 0;
    while (taken.take(line, reinterpret_cast<const std::byte*>(&bytes))) ++line;
    EXPECT_EQ(line, lines_max);
    EXPECT_TRUE(taken.take(0, reinterpret_cast<const std::byte*>(&bytes))); // it is there
    EXPECT_EQ(content_of(taken).size(), lines_max);
}

} // namespace
