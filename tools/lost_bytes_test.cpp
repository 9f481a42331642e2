// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A mapped file is cut: what was cut off reads as zeroes where that was asked for, and ends the
// program elsewhere.
#include "lost_bytes.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <sys/mman.h>
#include <unistd.h>

namespace hf::tools {
namespace {

struct mapped {
    mapped() {
        EXPECT_EQ(::ftruncate(::fileno(file), static_cast<off_t>(bytes)), 0);
        EXPECT_EQ(::pwrite(::fileno(file), "x", 1, 0), 1);
        void* const at = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, ::fileno(file), 0);
        EXPECT_NE(at, MAP_FAILED);
        first = static_cast<const volatile char*>(at);
    }
    ~mapped() {
        ::munmap(const_cast<char*>(first), bytes);
        std::fclose(file);
    }
    void cut() const { EXPECT_EQ(::ftruncate(::fileno(file), static_cast<off_t>(page)), 0); }
    std::span<const std::byte> range() const {
        return {reinterpret_cast<const std::byte*>(const_cast<const char*>(first)), bytes};
    }
    const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t bytes = 7 * page + 100; // the last page is not whole
    std::FILE* const file = std::tmpfile();
    const volatile char* first = nullptr;
};

TEST(LostBytes, ReadAsZeroesAndAreKnown) {
    answer_lost_bytes();
    for (int again = 0; again < 2; ++again) {
        const mapped file;
        const lost_as_zeroes lost(file.range());
        EXPECT_EQ(file.first[3 * file.page], 0);
        EXPECT_FALSE(lost.any());
        file.cut();
        EXPECT_EQ(file.first[4 * file.page + 5], 0);
        EXPECT_TRUE(lost.any());
        EXPECT_EQ(file.first[2 * file.page], 0);
        EXPECT_EQ(file.first[file.bytes - 1], 0);
        EXPECT_EQ(file.first[0], 'x');
    }
}

TEST(LostBytes, OfOtherFilesEndTheProgram) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const mapped file, other;
    const auto read_lost = [&] {
        answer_lost_bytes();
        { const lost_as_zeroes before(other.range()); }
        const lost_as_zeroes lost(file.range());
        other.cut();
        (void)other.first[2 * other.page];
    };
    EXPECT_EXIT(read_lost(), testing::ExitedWithCode(2), "the file was cut, or its disk failed");
}

} // namespace
} // namespace hf::tools
