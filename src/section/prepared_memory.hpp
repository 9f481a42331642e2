// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a thread makes for its next section: blocks that it stages, bytes that it fills in.
//
// (1) A section's log names each staged block, or a failure would lose it. It also has the sum of
//     bytes that share the fence of its first records: recovery compares them, as they were, with
//     their sum.
// (2) So the section logs bytes with a sum before it changes them; between sections nothing else
//     may change them. Debug builds and the crash checker look.
#pragma once

#include <alloc/allocator.hpp>
#include <base/assert.hpp>
#include <log/lane.hpp>
#include <pool/pool_file.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace hf {

/// A block that a thread has staged: when its last section was of this epoch.
struct staged_block : block {
    std::uint64_t after = 0;
};

struct filled_bytes {
    std::uint64_t offset;
    filled_payload what;
    std::uint64_t fences; // of this thread before: after the next one it needs no sum

    bool touches(std::uint64_t other, std::uint64_t bytes) const noexcept {
        return other < offset + what.bytes && offset < other + bytes;
    }
    bool lies_in(block b) const noexcept { return offset - b.offset < b.bytes; }
    /// Whether they are all that is of use in the block.
    bool fill(const heap& blocks, block b) const noexcept {
        return offset == b.offset && blocks.rounded(what.bytes) == b.bytes;
    }
};

class prepared_memory {
public:
    std::vector<staged_block>& staged() noexcept { return staged_; }
    const std::vector<staged_block>& staged() const noexcept { return staged_; }
    std::span<const filled_bytes> filled() const noexcept { return filled_; }
    /// Whether the bytes lie in a block that was staged behind the section of that epoch.
    bool staged_since(std::uint64_t epoch, std::uint64_t offset,
                      std::uint64_t bytes) const noexcept {
        return std::ranges::any_of(staged_, [&](const staged_block& b) {
            const std::uint64_t at = offset - b.offset;
            return b.after == epoch && at < b.bytes && bytes <= b.bytes - at;
        });
    }
    /// The block that starts there; staged().end(): none does.
    auto find(std::uint64_t offset) noexcept {
        return std::ranges::find(staged_, offset, &staged_block::offset);
    }
    /// Whether some of these bytes have a sum.
    bool in_filled(std::uint64_t offset, std::uint64_t bytes) const noexcept {
        for (const filled_bytes& f : filled_)
            if (f.touches(offset, bytes)) return true;
        return false;
    }
    /// 'bytes' bytes with this sum were copied there, not yet fenced. An ordering point, where
    /// others have no room, or would lose their meaning.
    void note_filled(hf::medium pm, std::uint64_t offset, std::uint64_t bytes, std::uint64_t sum);
    /// The same of an earlier run's, as its log has them.
    void add_logged(std::uint64_t offset, filled_payload what) {
        filled_.push_back({offset, what, 0});
    }
    /// Forgets what was noted inside a block that is given back, or is durable already.
    void forget_filled(block inside) noexcept;
    void forget_filled() noexcept { filled_.clear(); }
    /// Forgets what a fence of this thread since then has made durable.
    void forget_durable();
    /// Ends the process where (2) does not hold.
    void check(const pool_file& file) const noexcept;

private:
    std::vector<staged_block> staged_;
    std::vector<filled_bytes> filled_;
};

} // namespace hf
