// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Looks at a recovered pool as the program shows it, and compares its blocks with the allocator's.
#pragma once

#include <alloc/heap.hpp>
#include <check/explorer.hpp>

#include <holdfast/author/crash.hpp>

#include <map>
#include <set>
#include <span>
#include <utility>

namespace hf::crash {

/// Chunks that may have blocks: of all others the allocator's tables were empty from the start.
/// Looking at these alone, a judgement costs as much in a large pool as in a small one.
class used_chunks {
public:
    /// The chunks that have blocks.
    explicit used_chunks(pool& p);
    /// Takes in those whose entries or bits lie on lines (of the pool) that were changed.
    void add_changed(pool& p, std::span<const std::size_t> lines);

    const std::set<std::pair<unsigned, std::uint64_t>>& all() const noexcept { return chunks_; }

private:
    void add_changed(const heap& blocks, const std::byte* base, std::size_t line);

    std::set<std::pair<unsigned, std::uint64_t>> chunks_; // extent, number in it
    std::size_t lines_seen_ = 0;
    std::uint64_t chunks_there_ = 0;
};

class judge {
public:
    /// The state that the program shows of 'p', or the fault. Looks for blocks in 'used', or
    /// everywhere.
    static hf::check::verdict look(pool& p, program& given,
                                   const std::map<hf::check::outcome, std::string>& known,
                                   const used_chunks* used = nullptr);

    /// Empty when the pool in 'memory', which has been closed and not opened since, has a seal that
    /// holds: of this header, these lanes, these blocks.
    static std::string broken_seal(std::span<const std::byte> memory);

private:
    static std::string compare_blocks(pool& p, const state& seen, const used_chunks* used);
};

} // namespace hf::crash
