// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cli/command.hpp>

#include <gtest/gtest.h>

#include <limits>

namespace hf::cli {
namespace {

/// What a program with one option of each kind makes of its words; the status it ends with, if it
/// does.
struct read_words {
    explicit read_words(std::vector<std::string> words) {
        const program app("a test", "test");
        app.last_value_counts();
        app.choice("--fruit", fruit, {"apple", "pear", "plum"}, "which");
        app.value("--long", number, "a number").between(0L, std::numeric_limits<long>::max());
        app.value("--many", many, "texts").separated_by(',');
        words.insert(words.begin(), "test");
        std::vector<char*> argv;
        for (std::string& word : words) argv.push_back(word.data());
        ended = app.read_or_say(static_cast<int>(argv.size()), argv.data());
    }

    unsigned fruit = 0;
    long number = 0;
    std::vector<std::string> many;
    std::optional<int> ended;
};

TEST(Command, AChoiceIsOneOfItsWords) {
    EXPECT_EQ(read_words({"--fruit", "plum"}).fruit, 2U);
    EXPECT_EQ(read_words({}).fruit, 0U);
    for (const char* wrong : {"1", "3", "-1", "cherry", "", "plums"})
        EXPECT_EQ(read_words({"--fruit", wrong}).ended, 2) << wrong;
}

TEST(Command, ANumberIsWithinItsBounds) {
    EXPECT_EQ(read_words({"--long", "9223372036854775807"}).number,
              std::numeric_limits<long>::max());
    for (const char* wrong : {"-1", "x", "", "1e99"})
        EXPECT_EQ(read_words({"--long", wrong}).ended, 2) << wrong;
}

TEST(Command, TheLastValueCountsAndManyAreTakenTogether) {
    const read_words read({"--long", "1", "--long", "2", "--many", "a,b", "--many", "c"});
    EXPECT_FALSE(read.ended);
    EXPECT_EQ(read.number, 2);
    EXPECT_EQ(read.many, (std::vector<std::string>{"a", "b", "c"}));
}

} // namespace
} // namespace hf::cli
