// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// expert_options::check_pointers: a section that is about to keep an address of this process ends
// it, and has not happened. In every mode, for words stored in place, ranges and fresh blocks.
#include "support.hpp"

#include <holdfast/alloc.hpp>
#include <holdfast/tx.hpp>
#include <holdfast/txfunc.hpp>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace language_test {
namespace {

struct node {
    node* next;
    const void* extra;
};
struct table {
    node* first;
    std::uint64_t words[40];
};

/// The compiler cannot see where these come from.
std::uint64_t number_of(const void* address) noexcept {
    std::uint64_t number = reinterpret_cast<std::uintptr_t>(address);
    asm("" : "+r"(number));
    return number;
}

void keep_word(const hf::pool& pool, table* t, std::uint64_t word) {
    hf::tx(pool, [=] { t->words[3] = word; });
}
void keep_range(const hf::pool& pool, table* t, std::uint64_t word) {
    hf::tx(pool, [=] {
        std::uint64_t words[40] = {};
        words[31] = word;
        std::memcpy(t->words, words, sizeof words);
    });
}
void keep_in_block(const hf::pool& pool, table* t, std::uint64_t word) {
    hf::tx(pool, [=] {
        node* const made = hf::make<node>();
        made->next = t->first;
        std::memcpy(&made->extra, &word, sizeof word);
        t->first = made;
    });
}

class pointers : public pools, public testing::WithParamInterface<hf::mode> {
protected:
    hf::pool open_checked(bool check = true) {
        hf::open_options o;
        o.layout = "language/1";
        o.create_bytes = o.max_bytes = 1 << 20;
        o.mode = GetParam();
        o.engines = hf::engines_of_build();
        o.expert.check_pointers = check;
        auto opened = hf::pool::open(first, o);
        if (!opened) std::fprintf(stderr, "%s\n", opened.error().what().c_str()), std::exit(1);
        return std::move(*opened);
    }
    /// Each way to keep the word ends the process, and nothing of it is there.
    void is_refused(std::uint64_t word, const char* where) {
        for (const auto keep : {keep_word, keep_range, keep_in_block}) {
            EXPECT_DEATH(
                {
                    hf::pool pool = open_checked();
                    table* const t = pool.root<table>();
                    keep_word(pool, t, 5);
                    keep(pool, t, word);
                },
                where);
            hf::pool pool = open_checked();
            const table& t = *pool.root<table>();
            EXPECT_EQ(t.first, nullptr);
            EXPECT_EQ(t.words[3], GetParam() == hf::mode::power ? t.words[3] : 5U);
            EXPECT_NE(t.words[3], word);
            EXPECT_EQ(t.words[31], 0U);
        }
    }
};

INSTANTIATE_TEST_SUITE_P(EachMode, pointers,
                         testing::Values(hf::mode::process, hf::mode::pmem, hf::mode::power),
                         [](const auto& of) {
                             return of.param == hf::mode::process ? "process"
                                    : of.param == hf::mode::pmem  ? "pmem"
                                                                  : "power";
                         });

int global;

TEST_P(pointers, AnAddressOfTheStackIsRefused) {
    int local = 0;
    is_refused(number_of(&local), "is an address in \\[stack\\]");
}
TEST_P(pointers, AnAddressOfTheHeapIsRefused) {
    const auto on_heap = std::make_unique<int>(1);
    is_refused(number_of(on_heap.get()), "is an address in "); // of the heap, or a sanitizer's
}
TEST_P(pointers, AnAddressOfTheProgramIsRefused) {
    is_refused(number_of(&global), "about to keep 0x[0-9a-f]+ at byte [0-9]+ of the pool");
    is_refused(number_of("a literal"), "is an address in .*language_pointers_test");
    is_refused(number_of(reinterpret_cast<const void*>(&keep_word)),
               "is an address in .*language_pointers_test");
}

TEST_P(pointers, NumbersAndAddressesInThePoolAreKept) {
    hf::pool pool = open_checked();
    table* const t = pool.root<table>();
    const std::uint64_t words[] = {
        0,
        1,
        4198400,
        number_of(t),
        number_of(&t->words[7]),
        ~std::uint64_t{0},
        1'700'000'000'000'000'000,
        std::bit_cast<std::uint64_t>(0.1),
        0x0000'6665'6463'6261,
    };
    for (const std::uint64_t word : words)
        for (const auto keep : {keep_word, keep_range, keep_in_block}) keep(pool, t, word);
    EXPECT_NE(t->first, nullptr);
}

TEST_P(pointers, WithoutTheCheckTheyPass) {
    int local = 0;
    hf::pool pool = open_checked(false);
    table* const t = pool.root<table>();
    keep_word(pool, t, number_of(&local));
    EXPECT_EQ(t->words[3], number_of(&local));
}

HF_TXFUNC void abort_with(table* t, std::uint64_t word) {
    t->words[3] = word;
    hf_abort_section();
}

TEST_P(pointers, ASectionThatIsTakenBackKeepsNothing) {
    int local = 0;
    hf::pool pool = open_checked();
    table* const t = pool.root<table>();
    abort_with(t, number_of(&local));
    EXPECT_EQ(t->words[3], 0U);
}

} // namespace
} // namespace language_test
