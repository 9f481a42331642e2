// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lines on their way into the log: each once, as it was taken last. A batch is in the log whole or
// not at all, so an older version of a line would never be seen.
//
// Full blocks of a long batch may be written before it is sealed, so that the device works while
// the rest comes together. The head is written last. Without it such blocks look like a write that
// a failure has torn. A line that comes again in such a block makes the block one to write again.
#pragma once

#include <power/format.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace hf::power {

class batch {
public:
    /// Throws std::bad_alloc.
    explicit batch(std::uint64_t bytes_max);

    /// Empties it.
    void start(std::uint64_t sequence) noexcept;
    std::uint64_t sequence() const noexcept { return sequence_; }
    bool empty() const noexcept { return lines_ == 0; }
    /// The longest batch has so many lines.
    std::uint64_t lines_max() const noexcept { return lines_max_; }
    /// So many more lines fit for certain.
    std::uint64_t room() const noexcept { return lines_max_ - lines_; }
    /// Size of the batch in the file.
    std::uint64_t bytes() const noexcept { return batch_bytes(lines_); }
    /// Takes the line as it is now, into the place of an older version; false, and nothing is
    /// taken: full.
    bool take(std::uint64_t line, const std::byte* from) noexcept;
    /// Part of the batch in the file, and its place there.
    struct part {
        std::uint64_t at;
        std::span<const std::byte> bytes;
    };
    /// Full blocks that no call has returned before; empty while they are fewer than 'bytes_min'
    /// bytes. The caller writes them before anything more is taken.
    part early(std::uint64_t bytes_min) noexcept;
    /// Completes it: nothing more is taken.
    void seal(std::uint64_t salt) noexcept;
    /// For a sealed batch: the first part at or behind 'from' that the file does not have yet;
    /// empty if the file has all.
    part to_write(std::uint64_t from) const noexcept;

private:
    struct free_bytes {
        void operator()(std::byte* bytes) const noexcept;
    };
    using index = std::uint16_t; // of a line in the batch, plus one; 0: of none
    std::uint64_t place_of(std::uint64_t line) const noexcept;
    void resize_places(std::uint64_t count) noexcept;

    std::uint64_t lines_max_, lines_ = 0, sequence_ = 0;
    std::uint64_t early_end_ = 0; // blocks from the second to here were written early
    std::vector<bool> stale_;     // of those: it has changed since
    std::unique_ptr<std::byte, free_bytes> bytes_; // as in the file, except the numbers
    std::unique_ptr<std::uint64_t[]> numbers_;
    // The place of each line: open addressing, at most half full. It is as small as this batch
    // allows: a table that does not fit into a processor's cache beside everything else takes
    // longer than the lines do.
    std::unique_ptr<index[]> places_;
    std::uint64_t places_mask_ = 0;
};

} // namespace hf::power
