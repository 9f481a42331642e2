// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The verdict on the bytes of a pool's file, for `holdfast info`, `check` and `verify`.
//
// (1) Good means: everything that was asked for was examined, all of it, and holds. With
//     depth::deep that includes every byte of every allocated block, so only a sealed pool can be
//     good.
// (2) Pure. The same bytes get the same report; image.hpp (1) to (3) hold.
#pragma once

#include <verify/image.hpp>
#include <verify/objects.hpp>
#include <verify/resumable.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hf::verify {

enum class depth : std::uint8_t {
    header,    // both header copies and the file's length
    structure, // and root words, lanes, the seal's head, persistent objects' heads and logs
    tables, // and the allocator's tables, against the seal where there is one; persistent objects' copies
    deep // and every allocated block against the seal
};

/// In the order of what it costs to be wrong; the value is the command's exit status.
enum class verdict : std::uint8_t {
    good = 0,
    damaged = 1,       // the findings say where
    unreadable = 2,    // no pool, or of a version unknown to this build
    not_verifiable = 3 // nothing wrong was found, but not everything could be looked at
};
std::string_view name_of(verdict v) noexcept;

/// Something that is not as it must be.
struct finding {
    std::uint64_t offset; // in the file
    std::string where;    // "header copy B", "lane 3", "block 0x5000"
    std::string expected, found;
};

struct lane_summary {
    std::uint32_t lane;
    begin_payload begin;
    std::uint64_t records;
};

struct report {
    verdict outcome = verdict::good;
    std::vector<finding> findings; // the first 1000
    std::uint64_t findings_left_out = 0;
    std::vector<std::string> notes; // why not_verifiable or unreadable, and what is odd but legal

    bool has_header = false;
    pool_header header{}; // the copy that counts, when has_header
    std::uint64_t file_bytes = 0;
    seal_state seal = seal_state::absent;
    std::vector<lane_summary> pending;
    std::vector<resumable_section> resumable; // of engine justdo
    std::vector<persistent_object> objects;
    // From depth::tables on:
    std::uint64_t blocks = 0, block_bytes = 0, large_blocks = 0, heap_bytes = 0, metadata_bytes = 0;
    // With depth::deep:
    std::uint64_t blocks_verified = 0, blocks_damaged = 0;
};

/// Examines a pool's file, all of whose bytes are given.
///
/// Cost:     bounded by the file's size; a 64 KiB pool takes some ten microseconds.
/// Errors:   none; see verdict.
/// Threads:  any number at once.
report examine(std::span<const std::byte> file, depth how);

} // namespace hf::verify
