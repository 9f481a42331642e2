// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Engine justdo's threads as docs/format/justdo.md describes them: which of them have an open
// section, and what is wrong in their blocks. It checks bounds, and nothing that only the program
// can know: which functions and kinds of locks there are. image.hpp (1) to (3) hold.
#pragma once

#include <justdo/format.hpp>
#include <verify/image.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace hf::verify {

/// Something that is not as it must be, in the superblock or in a thread's block.
struct justdo_fault {
    std::uint64_t offset; // from pool start
    std::string where;    // "engine justdo's thread 0x5000"
    std::string expected, found;
};

/// A section that the next open resumes.
struct resumable_section {
    std::uint64_t thread;                                // offset of its block
    std::uint64_t function_id = 0, function_version = 0; // of the outermost frame
    std::uint64_t depth = 0, point = 0;                  // frames; the resume point of the topmost
    std::uint64_t locks = 0;                             // that it owns
};

struct justdo_image {
    std::vector<resumable_section> open;
    std::vector<block>
        blocks; // that recovery settles: the engine's own, and those sections take or free
    std::vector<justdo_fault> faults;
};
justdo_image read_justdo(const pool_image& pool);

} // namespace hf::verify
