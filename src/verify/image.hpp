// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A pool seen as the bytes of its file, read as hostile input.
//
// (1) Nothing is read outside the given bytes: every place is bounded first, and bytes past the end
//     of a file that was cut read as zeros.
// (2) Every loop is bounded by the number of bytes given (logs: by twice that).
// (3) Nothing is written, mapped at the canonical address, recovered or executed.
#pragma once

#include <alloc/pool_image.hpp>
#include <log/word_log.hpp>
#include <pool/file_checks.hpp>
#include <pool/seal.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hf::verify {

/// The copies that a file starts with.
header_copies read_headers(std::span<const std::byte> file) noexcept;

/// Puts a header together from two damaged copies, word by word, where one of the combinations has
/// a right checksum. False when none has, or when they differ in too many words to try.
bool merge_headers(const header_copies& copies, pool_header& out) noexcept;

using hf::extent_image;
using hf::pool_image;
using hf::table_fault;
using hf::table_visitor;
using hf::walk_tables;

/// The start of the first record's check. Its complement marks a half that begins without a record.
inline constexpr std::uint64_t first_chain = 0x686f6c6466617374ULL;

/// One record of a lane's log. 'payload' lies in the file.
struct lane_record {
    record_kind kind;
    std::uint64_t at; // the record's place, from pool start
    std::uint64_t offset, bytes;
    std::span<const std::byte> payload;
};

/// A half of a lane, by its start.
struct half_image {
    std::uint64_t at = 0;    // from pool start
    std::uint64_t epoch = 0; // of the begin record there; 0: it has none
    bool damaged = false;    // neither a begin record nor the mark of none
};

struct lane_image {
    std::uint32_t lane = 0;
    std::uint64_t offset = 0; // of the lane
    std::uint64_t committed = 0;
    half_image halves[2];
    std::uint64_t newest = 0; // highest epoch of a valid begin record; 0: it has none
    bool pending = false;     // that one is above 'committed'
    begin_payload begin{};    // of the pending section
    std::uint64_t announced = 0;
    std::span<const std::byte> args;
    std::vector<lane_record> records; // of the pending section, begin excluded
    std::vector<lane_record> earlier; // of the one before it, which is replayed first; or none
    const char* damage = "";          // impossible after a mere kill
    std::uint64_t damaged_at = 0;     // and where, from pool start
};
/// Reads a lane as recovery would. 'budget_bytes', for all lanes of a pool together, shrinks by
/// what was read: logs that share segments, as only a forger writes them, are not read again and
/// again.
lane_image read_lane(const pool_image& pool, std::uint32_t lane, std::uint64_t& budget_bytes);
inline std::uint64_t log_budget(const pool_image& pool) noexcept { return 2 * pool.file().size(); }
/// The rule a pending record breaks, or "".
const char* record_fault(const pool_image& pool, const lane_record& record) noexcept;
const char* name_of(record_kind kind) noexcept;

} // namespace hf::verify
