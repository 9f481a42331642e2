// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <verify/objects.hpp>
#include <verify/pointers.hpp>
#include <verify/resumable.hpp>

#include <algorithm>
#include <cstring>

namespace hf::verify {
namespace {

class all_blocks final : public table_visitor {
public:
    void on_block(block b) override { found.push_back(b); }
    void on_fault(const table_fault&) override {}
    std::vector<block> found; // in the order of their places
};

/// Position-independent programs and their heaps; mapped files, libraries and stacks.
bool of_a_process(std::uint64_t word) noexcept {
    constexpr std::uint64_t programs = 0x5500'0000'0000, after_programs = 0x5700'0000'0000,
                            mappings = 0x7f00'0000'0000, end = 0x8000'0000'0000;
    return (word >= programs && word < after_programs) || (word >= mappings && word < end);
}

/// Whether the place lies in one of them or at its end.
bool is_in(const std::vector<block>& blocks, std::uint64_t offset) noexcept {
    const auto next = std::ranges::upper_bound(blocks, offset, {}, &block::offset);
    if (next == blocks.begin()) return false;
    const block before = *std::prev(next);
    return offset - before.offset <= before.bytes;
}

} // namespace

std::vector<stray_word> find_stray_words(const pool_image& pool, std::size_t most) {
    all_blocks all;
    walk_tables(pool, all);
    std::vector<block> engines = read_justdo(pool).blocks;
    const objects_image objects = read_objects(pool, /*copies=*/false);
    engines.insert(engines.end(), objects.blocks.begin(), objects.blocks.end());
    std::ranges::sort(engines, {}, &block::offset);
    const std::uint64_t base = pool.header().base_address, bytes = pool.header().max_bytes;
    std::vector<stray_word> found;
    for (const block b : all.found) {
        if (!pool.has(b.offset, b.bytes) ||
            std::ranges::binary_search(engines, b.offset, {}, &block::offset))
            continue;
        for (std::uint64_t at = b.offset; at < b.offset + b.bytes; at += word_bytes) {
            const std::uint64_t word = pool.word(at);
            const bool inside = word >= base && word - base <= bytes;
            if (inside ? is_in(all.found, word - base) : !of_a_process(word)) continue;
            if (found.size() == most) return found;
            found.push_back({at, b, word, inside ? "to no block of the pool" : "out of the pool"});
        }
    }
    return found;
}

} // namespace hf::verify
