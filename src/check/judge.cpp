// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/checksum.hpp>
#include <base/line.hpp>
#include <check/judge.hpp>
#include <justdo/inspect.hpp>
#include <open/pool_impl.hpp>
#include <pool/believed.hpp>
#include <pool/creation.hpp>
#include <pool/file_checks.hpp>
#include <pool/seal.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace hf::crash {

void state::add(std::uint64_t value) { values_.push_back(value); }

void state::add(std::string_view text) {
    values_.push_back(text.size());
    for (std::size_t i = 0; i < text.size(); i += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, text.data() + i, std::min<std::size_t>(8, text.size() - i));
        values_.push_back(word);
    }
}

void state::object(const void* block) { objects_.push_back(block); }

void state::expect(bool holds, std::string_view what) {
    if (!holds && wrong_.empty()) wrong_ = what;
}

std::string state::text() const { return fmt::format("[{}]", fmt::join(values_, " ")); }

std::uint64_t state::digest() const noexcept {
    return checksum(values_.data(), values_.size() * sizeof values_[0], 0);
}

namespace {

std::uint64_t words_of_chunk(const heap& blocks) {
    return blocks.chunk_bytes() / granule_bytes / 64;
}

std::uint64_t bits_of(const heap& blocks, const heap_extent& e, std::uint64_t chunk) {
    std::uint64_t count = 0;
    const std::uint64_t words = words_of_chunk(blocks);
    for (std::uint64_t w = chunk * words; w < (chunk + 1) * words; ++w)
        count += static_cast<unsigned>(std::popcount(e.bits[w]));
    return count;
}

/// Blocks that start in the chunk; of how many chunks it is the first.
template <class Visit>
std::uint64_t visit_chunk(const heap& blocks, const heap_extent& e, std::uint64_t chunk,
                          Visit&& visit) {
    const chunk_entry what = blocks.entry(e, chunk);
    const std::uint64_t start = e.data_offset + chunk * blocks.chunk_bytes();
    if (what.kind() == chunk_kind::large && blocks.bit(start)) {
        const std::uint64_t run = what.run_chunks();
        if (run == 0 || run > e.chunks - chunk) return 1;
        visit(block{start, run * blocks.chunk_bytes()});
        return run;
    }
    if (what.kind() != chunk_kind::slab || what.size_class() >= blocks.classes().count()) return 1;
    const std::uint64_t size = blocks.classes().block_bytes(what.size_class());
    blocks.for_each_slot(start, size,
                         [&](std::uint64_t slot) { visit(block{start + slot * size, size}); });
    return 1;
}

/// Every allocated block, in address order; the number of bits that are set.
template <class Visit>
std::uint64_t visit_blocks(const heap& blocks, const used_chunks* used, Visit&& visit) {
    if (used == nullptr) {
        blocks.for_each(visit);
        return blocks.bits_set();
    }
    std::uint64_t bits = 0;
    std::pair<unsigned, std::uint64_t> next{0, 0}; // not inside a block that has been visited
    for (const auto& [extent, chunk] : used->all()) {
        if (extent >= blocks.extent_count()) break;
        const heap_extent& e = blocks.extent_at(extent);
        bits += bits_of(blocks, e, chunk);
        if (std::pair(extent, chunk) >= next)
            next = {extent, chunk + visit_chunk(blocks, e, chunk, visit)};
    }
    return bits;
}

} // namespace

used_chunks::used_chunks(pool& p) {
    const heap& blocks = p.internals().blocks.durable();
    for (unsigned i = 0; i < blocks.extent_count(); ++i)
        for (std::uint64_t c = 0; c < blocks.extent_at(i).chunks; ++c)
            if (blocks.entry(blocks.extent_at(i), c).word != 0 ||
                bits_of(blocks, blocks.extent_at(i), c) != 0)
                chunks_.emplace(i, c);
}

void used_chunks::add_changed(pool& p, std::span<const std::size_t> lines) {
    const heap& blocks = p.internals().blocks.durable();
    std::uint64_t chunks = 0;
    for (unsigned i = 0; i < blocks.extent_count(); ++i) chunks += blocks.extent_at(i).chunks;
    if (chunks > chunks_there_) lines_seen_ = 0; // some are in the tables of the new ones
    chunks_there_ = std::max(chunks_there_, chunks);
    for (; lines_seen_ < lines.size(); ++lines_seen_)
        add_changed(blocks, p.internals().file->base(), lines[lines_seen_]);
}

void used_chunks::add_changed(const heap& blocks, const std::byte* base, std::size_t line) {
    const auto* first = reinterpret_cast<const std::uint64_t*>(base + line * line_bytes);
    for (unsigned i = 0; i < blocks.extent_count(); ++i) {
        const heap_extent& e = blocks.extent_at(i);
        for (const std::uint64_t* word = first; word < first + line_bytes / word_bytes; ++word) {
            const auto entry = static_cast<std::uint64_t>(word - e.entries);
            const auto bits = static_cast<std::uint64_t>(word - e.bits) / words_of_chunk(blocks);
            if (word >= e.entries && entry < e.chunks) chunks_.emplace(i, entry);
            if (word >= e.bits && bits < e.chunks) chunks_.emplace(i, bits);
        }
    }
}

/// Names the blocks of engine justdo's logs, if the program has not.
static void name_logs(const pool::impl& pool, std::vector<std::uint64_t>& named) {
    justdo::superblock* const super = justdo::superblock_of(*pool.file);
    if (super == nullptr) return;
    const auto add = [&](std::uint64_t offset) {
        if (offset != 0 && std::ranges::find(named, offset) == named.end()) named.push_back(offset);
    };
    add(pool.offset_of(super));
    for (const std::uint64_t offset : justdo::thread_words(*super)) add(offset);
}

/// Empty when the allocated blocks are exactly the root, the objects that were named, and logs.
std::string judge::compare_blocks(pool& p, const state& seen, const used_chunks* used) {
    pool::impl& pool = p.internals();
    std::vector<std::uint64_t> named;
    if (const root_words* words = pool.file->roots(); words->root_offset != 0)
        named.push_back(words->root_offset);
    for (const void* o : seen.objects_) named.push_back(pool.offset_of(o));
    name_logs(pool, named);
    std::ranges::sort(named);
    if (const auto twice = std::ranges::adjacent_find(named); twice != named.end())
        return fmt::format("the object at offset {:#x} is reached twice", *twice);
    std::size_t next = 0;
    std::uint64_t blocks = 0;
    std::string wrong;
    const std::uint64_t bits = visit_blocks(pool.blocks.durable(), used, [&](block b) {
        ++blocks;
        if (!wrong.empty()) return;
        if (next < named.size() && named[next] == b.offset) ++next;
        else if (next < named.size() && named[next] < b.offset)
            wrong = fmt::format("the object at offset {:#x} is not allocated", named[next]);
        else
            wrong = fmt::format("leak: the block at offset {:#x}, {} bytes, is allocated and not "
                                "reached",
                                b.offset, b.bytes);
    });
    if (wrong.empty() && bits != blocks)
        wrong = "the allocator's table has a bit that is no block: room lost for good";
    if (wrong.empty() && next < named.size())
        wrong = fmt::format("the object at offset {:#x} is not allocated", named[next]);
    return wrong;
}

namespace {

/// A promise of the seal about a lane, or a block, that does not hold; empty: all hold.
std::string broken_promise(std::span<const std::byte> memory, const pool_header& header,
                           const seal_found& seal) {
    for (std::uint32_t l = 0; l < header.lane_count; ++l) {
        std::uint64_t committed = 0;
        std::memcpy(&committed,
                    memory.data() + header.lanes_offset + l * header.lane_bytes +
                        offsetof(lane_header, committed),
                    sizeof committed);
        if (committed != seal.lane_word(l))
            return fmt::format("lane {} is sealed as committed up to {:#x}, and shows {:#x}", l,
                               seal.lane_word(l), committed);
    }
    for (std::uint64_t i = 0; i < seal.block_count(); ++i) {
        const sealed_block b = seal.block(i);
        trace::announce(believed::checked, memory.data() + b.offset, b.bytes);
        if (checksum(memory.data() + b.offset, b.bytes, 0) != b.checksum)
            return fmt::format("the block at offset {:#x}, {} bytes, is not as it was sealed",
                               b.offset, b.bytes);
    }
    return {};
}

} // namespace

std::string judge::broken_seal(std::span<const std::byte> memory) {
    header_bytes_read read;
    read.file_bytes = memory.size();
    for (const auto& [copy, page] :
         {std::pair{header_a_offset, read.page_a}, std::pair{header_b_offset, read.page_b}}) {
        trace::announce(believed::checked, memory.data() + copy, sizeof(pool_header));
        std::memcpy(page, memory.data() + copy, sizeof(pool_header));
    }
    const auto chosen = choose_header("the image", read);
    if (!chosen) return chosen.error().what();
    const pool_header& header = chosen->header;
    if (header.open != 0) return {}; // the open will report it
    const extent& last = header.extents[header.extent_count - 1];
    const seal_found seal = find_seal(memory, last.offset_bytes + last.size_bytes, header, true);
    if (seal.state != seal_state::intact)
        return fmt::format("it was closed without a seal that holds: {}",
                           *seal.why == 0 ? "there is none of this header" : seal.why);
    if (std::memcmp(&seal.head.roots, memory.data() + root_words_offset, sizeof seal.head.roots) !=
        0)
        return "the root words are not as they were sealed";
    return broken_promise(memory, header, seal);
}

hf::check::verdict judge::look(pool& p, program& given,
                               const std::map<hf::check::outcome, std::string>& known,
                               const used_chunks* used) {
    state seen;
    given.describe(p, seen);
    if (seen.wrong_.empty()) {
        seen.wrong_ = compare_blocks(p, seen, used);
        // The description may itself have taken blocks (a root that it asks for first).
        if (!seen.wrong_.empty() && used != nullptr) seen.wrong_ = compare_blocks(p, seen, nullptr);
    }
    if (!seen.wrong_.empty()) return {false, 0, seen.wrong_ + "; state " + seen.text()};
    const hf::check::outcome state = seen.digest();
    const auto found = known.find(state);
    return {true, state, found == known.end() ? seen.text() : found->second};
}

} // namespace hf::crash
