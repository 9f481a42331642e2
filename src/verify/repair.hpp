// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Repair: which bytes of a damaged pool can be put right, and from what.
//
// (1) No byte of an object is ever changed, and no block that is readable before is lost: tables
//     are changed only to what an intact seal says they were.
// (2) A rebuilt part comes from something that verifies: the other header copy, the seal, or the
//     lanes of a pool that its header says was closed. Without such a source nothing is guessed.
// (3) A pool that was not closed cleanly keeps its lanes and tables: recovery needs them as they
//     are.
// (4) Planning is pure, and separate from doing: every change is known, and backed up, before the
//     first is made.
#pragma once

#include <verify/examine.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hf::verify {

/// Bytes to be written at one place.
struct change {
    std::uint64_t offset;
    std::vector<std::byte> bytes;
};

struct repair_plan {
    bool possible = false;         // there is, or can be made, a header
    std::uint64_t file_bytes = 0;  // afterwards; more than now when the file was cut
    std::vector<change> changes;   // in no particular order, disjoint
    std::vector<std::string> done; // what the changes do, a line each
    std::vector<std::string> lost; // what cannot be put right, a line each
    bool nothing_to_do() const noexcept { return possible && changes.empty() && grown_bytes == 0; }
    std::uint64_t grown_bytes = 0; // zeros to be added
};

repair_plan plan_repair(std::span<const std::byte> file);

} // namespace hf::verify
