// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A log that an earlier open has left: lines that the pool's file may not have.
//
// (1) Batches of one salt follow each other by number, without a gap, through a segment and from
//     one segment to the other. The first batch that does not verify ends the log: it was being
//     written, and nothing of it was promised. A batch behind the end is impossible, because each
//     was durable before the next was written. If there is one, or a gap, that is damage, and is
//     refused.
// (2) A segment is overwritten only when the header says that the pool's file has it.
// (3) Nothing that is read is used as an offset, size or count before it is bounded.
#pragma once

#include <power/block_file.hpp>
#include <power/format.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hf::power {

/// A line of the log, and where it belongs.
struct logged_line {
    std::uint64_t number; // in lines from the pool's start
    const std::byte* bytes;
};

/// The pool of a log, and the numbers that its lines may have.
struct owner {
    std::uint8_t uuid[16];
    std::uint64_t generation;
    std::uint64_t salt; // of the newest log that the pool's header names
    std::uint64_t first_line, end_line;
};

enum class header_state : std::uint8_t { valid, damaged, foreign };
/// Reads both copies, and keeps the one that counts. 'foreign': the file is not a log.
result<header_state> read_header(const block_file& file, log_header& out);
/// Empty when the numbers are in their bounds; else which is not.
std::string numbers_wrong(const log_header& h, std::uint64_t size_bytes);

class found_log {
public:
    /// Reads and checks a log of 'whose', in a file of 'size_bytes'; writes nothing. 'name' is for
    /// messages.
    ///
    /// Errors:   not_a_pool (no log), wrong_version, corrupt, torn (the log of another pool, of its
    ///           copy, or of another open), truncated, io_error.
    static result<found_log> read(const std::string& name, const block_file& file,
                                  std::uint64_t size_bytes, const owner& whose);

    const log_header& header() const noexcept { return header_; }
    /// In the order in which they were logged.
    const std::vector<logged_line>& lines() const noexcept { return lines_; }
    /// The number of the newest batch; the largest possible 'applied'.
    std::uint64_t last() const noexcept { return last_; }

private:
    struct run {
        std::vector<std::byte> bytes;
        std::uint64_t first = 0, last = 0; // 0: empty
        std::uint64_t end = 0;             // of its last batch, in the segment
    };
    std::string read_run(const block_file& file, unsigned segment, const owner& whose, run& out);
    std::string put_together();

    log_header header_{};
    run runs_[segment_count];
    std::vector<logged_line> lines_;
    std::uint64_t last_ = 0;
};

/// The batch at the beginning of 'room'; nothing if none verifies.
std::optional<batch_head> verified(const std::byte* at, std::uint64_t room,
                                   const log_header& of) noexcept;
/// Calls 'visit' for each line of a verified batch.
template <class Visit>
void for_each_line(const std::byte* at, const batch_head& head, Visit&& visit) {
    const std::byte* const lines = at + sizeof head;
    const std::byte* const numbers = lines + head.lines * line_bytes;
    for (std::uint64_t i = 0; i < head.lines; ++i) {
        std::uint64_t number = 0;
        __builtin_memcpy(&number, numbers + i * sizeof number, sizeof number);
        visit(logged_line{number, lines + i * line_bytes});
    }
}

} // namespace hf::power
