// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/checksum.hpp>
#include <check/judge.hpp>
#include <section/pool_impl.hpp>

#include <fmt/format.h>

#include <algorithm>

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

/// Empty when the allocated blocks are exactly the root and the objects that were named.
std::string judge::compare_blocks(pool& p, const state& seen) {
    pool::impl& pool = p.internals();
    std::vector<std::uint64_t> named;
    if (const root_words* words = pool.file->roots(); words->root_offset != 0)
        named.push_back(words->root_offset);
    for (const void* o : seen.objects_) named.push_back(pool.offset_of(o));
    std::ranges::sort(named);
    if (const auto twice = std::ranges::adjacent_find(named); twice != named.end())
        return fmt::format("the object at offset {:#x} is reached twice", *twice);
    std::size_t next = 0;
    std::uint64_t blocks = 0;
    std::string wrong;
    pool.blocks.durable().for_each([&](block b) {
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
    if (wrong.empty() && pool.blocks.durable().bits_set() != blocks)
        wrong = "the allocator's table has a bit that is no block: room lost for good";
    if (wrong.empty() && next < named.size())
        wrong = fmt::format("the object at offset {:#x} is not allocated", named[next]);
    return wrong;
}

hf::check::verdict judge::look(pool& p, program& given,
                               const std::map<hf::check::outcome, std::string>& known) {
    state seen;
    given.describe(p, seen);
    if (seen.wrong_.empty()) seen.wrong_ = compare_blocks(p, seen);
    if (!seen.wrong_.empty()) return {false, 0, seen.wrong_ + "; state " + seen.text()};
    const hf::check::outcome state = seen.digest();
    const auto found = known.find(state);
    return {true, state, found == known.end() ? seen.text() : found->second};
}

} // namespace hf::crash
