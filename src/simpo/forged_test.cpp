// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: with any bytes in the place of SIMPO's state, open returns or refuses, and a pool that it
// returns can be used.
// Method: a pool that was left with groups pending; each word of its superblock, heads and logs is
// replaced by values that are likely to hurt, with the checksums over it unchanged, and made to fit
// again.
#include <pool/header.hpp>
#include <simpo/test_support.hpp>

#include <holdfast/simpo/caller.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace hf::simpo {
namespace {

using test::digits;

class SimpoForged : public ::testing::TestWithParam<mode> {
protected:
    void SetUp() override {
        in_.how.mode = GetParam();
        in_.open();
        auto first = in_.make<digits>(with_callers);
        auto second = *object<digits>::create(in_.pool(), "second", with_callers);
        auto by = *caller<digits>::of(first, 5);
        first.checkpoint(); // copies with a table in them
        (void)by.call<&digits::append_and_get>(1, 1U);
        for (unsigned n = 0; n < 3; ++n) { // too few for a checkpoint
            by.defer<&digits::append>(n + 2, n);
            if (n == 1) first.sync();
            (void)second.call<&digits::append_and_get>(n);
        }
        const hf::pool& pool = in_.pool();
        super_ = pool.offset_of(superblock_of(*pool.internals().file));
        heads_ = {pool.offset_of(&first.internals().head()),
                  pool.offset_of(&second.internals().head())};
        in_.let_go();
        std::ifstream file(in_.path(), std::ios::binary);
        whole_ = {std::istreambuf_iterator<char>(file), {}};
    }
    std::uint64_t word(std::uint64_t at) const {
        std::uint64_t found = 0;
        std::memcpy(&found, whole_.data() + at, word_bytes);
        return found;
    }
    static void put(std::string& to, std::uint64_t at, std::uint64_t value) {
        std::memcpy(to.data() + at, &value, word_bytes);
    }
    /// Sums over heads and records hold again.
    void sum(std::string& forged) const {
        for (const std::uint64_t at : heads_) {
            object_head head;
            std::memcpy(&head, forged.data() + at, sizeof head);
            head.check = head_check(head);
            for (const unsigned copy : {0U, 1U})
                head.copy_checks[copy] = copy_check(
                    head, forged.data() + at + layout.copy_offset(copy), layout.copy_bytes);
            std::memcpy(forged.data() + at, &head, sizeof head);
            const std::uint64_t log = at + layout.log_offset;
            for (std::uint64_t line = 0; line < 16; ++line) {
                record r{};
                std::memcpy(&r, forged.data() + log + line * line_bytes, line_bytes);
                if (r.words() > 4) continue; // of more than one line, or none
                r.head.check = r.sum(head.salt);
                std::memcpy(forged.data() + log + line * line_bytes, &r, sizeof r.head);
            }
        }
    }
    void try_with(const std::string& forged) {
        std::ofstream(in_.path(), std::ios::binary | std::ios::trunc)
            .write(forged.data(), forged.size());
        for (const auto policy : {recovery_policy::complete, recovery_policy::roll_back}) {
            in_.how.recovery = policy;
            const status opened = in_.try_open();
            if (!opened.ok()) {
                ++refused_;
                EXPECT_FALSE(opened.what().empty());
                continue;
            }
            ++accepted_;
            for (const char* name : {"it", "second"}) {
                auto found = object<digits>::find(in_.pool(), name);
                if (!found) continue;
                found->defer<&digits::append>(1);
                (void)found->call<&digits::number>();
                if (auto by = caller<digits>::of(*found, 5)) {
                    (void)by->last();
                    (void)by->call<&digits::append_and_get>(1, 1U);
                    (void)by->call<&digits::append_and_get>(9, 1U);
                    by->defer<&digits::append>(10, 1);
                }
                found->checkpoint();
            }
            (void)object<digits>::create(in_.pool(), "third");
            (void)object<digits>::destroy(in_.pool(), "second");
            in_.close();
            return; // the file is another one now
        }
    }
    /// Every word of [from, to).
    void forge(std::uint64_t from, std::uint64_t to) {
        for (std::uint64_t at = from; at < to; at += word_bytes) {
            const std::uint64_t was = word(at);
            for (const std::uint64_t value :
                 {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}, was ^ 1, was + line_bytes,
                  was * 2, was | 1UL << 40, was | 1UL << 63, heads_[1], super_}) {
                if (value == was) continue;
                for (const bool summed : {false, true}) {
                    std::string forged = whole_;
                    put(forged, at, value);
                    if (summed) sum(forged);
                    try_with(forged);
                }
            }
        }
    }

    static constexpr object_options with_callers{
        .log_bytes = 1_KiB, .callers = 2, .results = 2, .result_bytes = 8};
    static constexpr object_layout layout = layout_of(sizeof(digits), 16, {2, 2, 1});
    test::test_pool in_;
    std::string whole_;
    std::uint64_t super_ = 0;
    std::vector<std::uint64_t> heads_;
    std::uint64_t refused_ = 0, accepted_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Modes, SimpoForged, ::testing::Values(mode::process, mode::pmem),
                         [](const auto& each) { return std::string(name(each.param)); });

TEST_P(SimpoForged, WordsOfTheSuperblock) {
    forge(super_, super_ + sizeof(superblock) + 3 * word_bytes);
    const std::uint64_t named = root_words_offset + root_words::place_of_anchor(engine_simpo);
    forge(named, named + word_bytes);
    EXPECT_GT(refused_, 0U);
    EXPECT_GT(accepted_, 0U);
}

TEST_P(SimpoForged, WordsOfAHead) {
    forge(heads_[0], heads_[0] + sizeof(object_head));
    EXPECT_GT(refused_, 0U);
    EXPECT_GT(accepted_, 0U);
}

TEST_P(SimpoForged, WordsOfALog) {
    const std::uint64_t log = heads_[0] + layout.log_offset;
    forge(log, log + 16 * line_bytes);
    EXPECT_GT(refused_, 0U);
    EXPECT_GT(accepted_, 0U);
}

TEST_P(SimpoForged, WordsOfATableOfCallers) {
    for (const unsigned copy : {0U, 1U}) {
        const std::uint64_t table = heads_[0] + layout.copy_offset(copy) + layout.table_offset;
        forge(table, table + 2 * sizeof(caller_entry) + 2 * 24);
    }
    EXPECT_GT(accepted_, 0U);
}

} // namespace
} // namespace hf::simpo
