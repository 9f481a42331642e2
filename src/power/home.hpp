// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pool's file, home of the lines that the log holds: a checkpoint brings them there, and
// recovery does the same. Lines are written whole, so repeating it changes nothing, and repairs
// what a failure leaves.
//
// A page with a line to bring home is written whole, with the bytes that home has around its lines:
// a few long writes instead of one for each line, and the kernel need not read a page to change a
// part of it. Nobody else may write to such a page meanwhile: the pool's headers, which others
// write, are in pages of their own.
#pragma once

#include <power/block_file.hpp>
#include <power/found_log.hpp>

#include <functional>
#include <vector>

namespace hf::power {

/// The memory that bringing lines home takes, kept from one time to the next.
class way_home {
public:
    /// Called before the first and behind each of so many pieces: how many are durable.
    using progress = std::function<void(std::size_t pieces_home, std::size_t pieces)>;

    /// Writes the lines, of each number the last; durable when it returns. It syncs piece by piece,
    /// so that little waits in the device's queue before a sync of the log. Throws std::bad_alloc.
    status bring(block_file& home, const std::vector<logged_line>& lines,
                 const progress& tell = {});

    /// Bytes written to home so far.
    std::uint64_t bytes_written() const noexcept { return bytes_written_; }

private:
    void sort_lines(const std::vector<logged_line>& lines);
    status write_run(block_file& home, std::size_t first, std::size_t end);

    std::vector<logged_line> sorted_, scratch_; // by number, and of one number in the order given
    std::vector<std::byte> run_;
    std::uint64_t bytes_written_ = 0;
};

/// The same, once, with what was found in a log: that is durable before. A process that was killed
/// may have left batches that no sync has covered, and a failure of the machine must not take from
/// the log what home has a part of.
status bring_home(block_file& log, block_file& home, const std::vector<logged_line>& lines);

} // namespace hf::power
