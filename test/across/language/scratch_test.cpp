// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a section that never runs again may take and give back memory outside of the pool, as code
// outside of sections does: nothing of it is logged, and the pool has what the section made of it.
// Method: sections of ordinary C++ with scratch containers; the same in a process that dies in the
// middle, and with a heap that is empty.
#include "support.hpp"

#include <holdfast/alloc.hpp>
#include <holdfast/txfunc.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <typeinfo>
#include <unordered_map>
#include <vector>

namespace language_test {
namespace {

struct record {
    char text[96];
    long numbers[16];
    long result;
};

// [scratch]
HF_TXFUNC void write_text(record* r, const char* name) {
    std::string text = "a text that is too long for the object itself: ";
    text += name;
    text += ", number " + std::to_string(r->numbers[3]);
    std::memcpy(r->text, text.c_str(), text.size() + 1);
    r->result = static_cast<long>(text.size());
}
// [/scratch]

HF_TXFUNC void sort_backwards(record* r) {
    std::vector<long> sorted;
    for (const long n : r->numbers) sorted.push_back(n);
    std::sort(sorted.begin(), sorted.end());
    std::copy(sorted.rbegin(), sorted.rend(), r->numbers);
}

HF_TXFUNC void count_kinds(record* r) {
    std::unordered_map<std::string, long> seen;
    for (const long n : r->numbers) seen["a key of some length, " + std::to_string(n % 5)] += n;
    r->result = static_cast<long>(seen.size());
    for (const auto& [key, sum] : seen) r->numbers[std::size_t(key.back() - '0')] = sum;
}

HF_TXFUNC void as_c_does(record* r) {
    auto* words = static_cast<long*>(std::malloc(16 * sizeof(long)));
    std::memcpy(words, r->numbers, sizeof r->numbers);
    words = static_cast<long*>(std::realloc(words, 32 * sizeof(long)));
    std::memcpy(words + 16, r->numbers, sizeof r->numbers);
    for (int i = 0; i < 16; ++i) r->numbers[i] = words[i] + words[31 - i];
    std::free(words);
    char* const copy = strdup(r->text);
    r->result = static_cast<long>(std::strlen(copy));
    std::free(copy);
}

struct shape {
    virtual ~shape() = default;
    long side = 2;
};
struct box final : shape {
    long depth = 5;
};
HF_TXFUNC void asks_for_the_type(record* r, bool deep) {
    std::unique_ptr<shape> it;
    if (deep) it = std::make_unique<box>();
    else it = std::make_unique<shape>();
    const auto* const its = dynamic_cast<const box*>(it.get());
    volatile long result = its == nullptr ? it->side : its->depth;
    result = result + 1;
    const shape& same = *it;
    r->result = typeid(same) == typeid(box) ? result : -result;
}

HF_TXFUNC void dies(record* r) {
    const std::string text(r->numbers[0] + 60, 'x');
    std::memcpy(r->text, text.c_str(), text.size() + 1);
    r->result = 7;
    if (r->numbers[0] >= 0) std::abort();
}

HF_TXFUNC void takes_all_there_is(record* r) {
    r->result = 7;
    const std::string none(static_cast<std::size_t>(r->numbers[0]) << 54, 'x');
    std::strcpy(r->text, none.c_str());
}

class scratch : public pools {
protected:
    scratch() {
        open_again();
        for (int i = 0; i < 16; ++i) r->numbers[i] = 10 + 7 * i;
        std::strcpy(r->text, "before");
    }
    void open_again() {
        pool.reset();
        pool.emplace(open(first));
        r = pool->root<record>();
    }
    /// A process that opens the pool and calls this dies, and the pool is opened again.
    void dies_in(void (*what)(record*)) {
        pool.reset();
        EXPECT_DEATH(
            {
                open_again();
                what(r);
            },
            "");
        open_again();
    }
    std::optional<hf::pool> pool;
    record* r = nullptr;
};

TEST_F(scratch, StringsAreMadeAndKeptAsText) {
    write_text(r, "somebody");
    EXPECT_STREQ(r->text, "a text that is too long for the object itself: somebody, number 31");
    EXPECT_EQ(r->result, static_cast<long>(std::strlen(r->text)));
}

TEST_F(scratch, AVectorSortsWhatThePoolHas) {
    sort_backwards(r);
    EXPECT_TRUE(std::is_sorted(std::rbegin(r->numbers), std::rend(r->numbers)));
    EXPECT_EQ(r->numbers[0], 115);
    EXPECT_EQ(r->numbers[15], 10);
}

TEST_F(scratch, AMapOfStringsCounts) {
    count_kinds(r);
    EXPECT_EQ(r->result, 5);
    EXPECT_EQ(r->numbers[0], 10 + 45 + 80 + 115);
    EXPECT_EQ(r->numbers[4], 24 + 59 + 94);
}

TEST_F(scratch, MemoryOfTheCLibraryGrowsAndEnds) {
    as_c_does(r);
    for (const long n : r->numbers) EXPECT_EQ(n, 125);
    EXPECT_EQ(r->result, 6);
}

TEST_F(scratch, TypesAreAskedFor) {
    asks_for_the_type(r, true);
    EXPECT_EQ(r->result, 6);
    asks_for_the_type(r, false);
    EXPECT_EQ(r->result, -3);
}

TEST_F(scratch, AfterACrashNothingOfTheSectionIsThere) {
    write_text(r, "somebody");
    const record before = *r;
    dies_in(dies);
    EXPECT_EQ(std::memcmp(r, &before, sizeof before), 0);
    write_text(r, "anybody");
    EXPECT_GT(r->result, 60);
}

TEST_F(scratch, WithoutMemoryNothingOfTheSectionIsThere) {
    if (takes_back()) EXPECT_ANY_THROW(takes_all_there_is(r));
    else dies_in(takes_all_there_is);
    EXPECT_EQ(r->result, 0);
    EXPECT_STREQ(r->text, "before");
    sort_backwards(r);
    EXPECT_EQ(r->numbers[0], 115);
}

} // namespace
} // namespace language_test
