// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A core's log in persistent memory: its place, the packing of records into lines, and recovery's
// reading. The paper says how long records are (Fig. 6). It does not say how recovery finds the
// log's end, and records that cross lines may be torn.
//
// (1) Lines are written whole, and a batch's first line last: if that line is there, the batch is.
// (2) A record's address word carries the transaction's tag and, on the first record of a batch, a
//     mark. No record of an earlier transaction carries the tag.
// (3) Batches follow each other from where the last resolved transaction's ended, as the newest
//     mark of resolution says. The first line that does not begin a batch of the tag ends the log.
// (4) Marks of resolution lie in slots of different banks, and the newest one counts: a transaction
//     is committed, or its abort is complete, when its mark is accepted.
#pragma once

#include <slpmt/log_buffer.hpp>

#include <holdfast/result.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hf::slpmt {

using line_image = std::array<std::byte, 64>;

struct log_layout {
    static constexpr std::uint64_t slots = 16, slot_bytes = 256;
    std::uint64_t at = 0; // of the slots of marks; the records' lines follow
    std::uint64_t lines = 0;

    std::uint64_t slot_line(std::uint64_t tag) const {
        return (at + tag % slots * slot_bytes) / 64;
    }
    /// A place in the log goes on growing; the log's lines are used in a circle.
    std::uint64_t line_at(std::uint64_t place) const {
        return (at + slots * slot_bytes) / 64 + place % lines;
    }
    std::uint64_t bytes() const { return slots * slot_bytes + lines * 64; }
};

/// Marks a transaction as resolved.
struct resolution {
    std::uint64_t tag = 0;   // 0: none ever was
    std::uint64_t start = 0; // place where its log begins; redo replays from there
    std::uint64_t next = 0;  // where the next transaction's will

    line_image image() const;
};

/// A record as it is read back.
struct logged {
    record what;
    bool old; // restores the old value although the log is a redo log
};

/// Records packed into lines, address words in front of the values.
std::vector<line_image> pack(std::span<const record> records, std::uint64_t tag, bool old);

/// The newest mark of resolution in an image.
resolution newest(std::span<const std::byte> image, const log_layout& where);
/// A transaction's records from a place on, in the order in which they were written; or their
/// fault.
result<std::vector<logged>> read_log(std::span<const std::byte> image, const log_layout& where,
                                     std::uint64_t place, std::uint64_t tag);

} // namespace hf::slpmt
