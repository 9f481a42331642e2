// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a word of a block that leads out of the pool, or into it and to no block, is found; what
// leads to a block, or is a number, is not. Method: such words in every place of one block.
#include <verify/pointers.hpp>
#include <verify/test_pools.hpp>

namespace {

using namespace hf;
using namespace hf::test;
using verify::find_stray_words;

class Pointers : public Pools, verify::table_visitor {
protected:
    void SetUp() override {
        Pools::SetUp();
        file = make_pool();
        header = load<pool_header>(file, 0);
        base = header.base_address;
        verify::walk_tables(verify::pool_image(file, header), *this);
        at = blocks.front();
    }
    void on_block(block b) override { blocks.push_back(b); }
    void on_fault(const verify::table_fault&) override { ADD_FAILURE(); }
    /// The words found when 'word' stands at a place in the first block; of no other block.
    std::size_t found_at(std::uint64_t place, std::uint64_t word) {
        bytes changed = file;
        store(changed, at.offset + place, word);
        const auto words = find_stray_words(verify::pool_image(changed, header), 10);
        for (const auto& w : words) {
            EXPECT_EQ(w.offset, at.offset + place);
            EXPECT_EQ(w.word, word);
            EXPECT_EQ(w.in.offset, at.offset);
        }
        return words.size();
    }
    bytes file;
    pool_header header{};
    std::vector<block> blocks;
    block at{};
    std::uint64_t base = 0;
};

TEST_F(Pointers, ASoundPoolHasNone) {
    EXPECT_TRUE(find_stray_words(verify::pool_image(file, header), 10).empty());
}

TEST_F(Pointers, AddressesOfAProcessAreFoundAtEachPlace) {
    for (std::uint64_t place = 0; place < at.bytes; place += 8)
        for (const std::uint64_t word :
             {0x5567'89ab'cde0ULL, 0x7ffd'1234'5678ULL, 0x7f12'3456'7890ULL})
            EXPECT_EQ(found_at(place, word), 1U);
}

TEST_F(Pointers, AddressesInThePoolMustLeadToABlock) {
    for (const block b : blocks)
        for (const std::uint64_t offset : {b.offset, b.offset + b.bytes - 1, b.offset + b.bytes})
            EXPECT_EQ(found_at(0, base + offset), 0U);
    EXPECT_EQ(found_at(0, base), 1U);
    EXPECT_EQ(found_at(8, base + root_words_offset), 1U);
}

TEST_F(Pointers, NumbersAreNone) {
    for (const std::uint64_t word :
         {0ULL, 1ULL, 1'700'000'000'000'000'000ULL, ~0ULL, 0x3fb9'9999'9999'999aULL})
        EXPECT_EQ(found_at(0, word), 0U);
}

TEST_F(Pointers, NoMoreAreReturnedThanAskedFor) {
    bytes changed = file;
    for (std::uint64_t place = 0; place < at.bytes; place += 8)
        store(changed, at.offset + place, 0x7ffd'1234'5678ULL);
    EXPECT_EQ(find_stray_words(verify::pool_image(changed, header), 1).size(), 1U);
}

} // namespace
