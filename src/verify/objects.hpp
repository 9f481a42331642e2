// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Persistent objects as docs/format/simpo.md describes them: the objects, the parts that only their
// logs have, and their faults. Functions are the program's: whether they can be called again is not
// checked. image.hpp (1) to (3) hold.
#pragma once

#include <simpo/format.hpp>
#include <verify/image.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace hf::verify {

/// Something that is not as it must be, in the superblock or in an object's block.
struct object_fault {
    std::uint64_t offset; // from pool start
    std::string where;    // "object \"rows\""
    std::string expected, found;
};

struct persistent_object {
    std::uint64_t offset; // of its block
    std::string name, class_text;
    std::uint32_t class_version = 0, callers = 0;
    std::uint64_t object_bytes = 0, log_bytes = 0;
    // That no copy has: the next open makes these calls again. 0 in a pool that was closed cleanly.
    std::uint64_t groups = 0, calls = 0;
    bool swapped_out = false; // its copy is in a file that the pool does not have
};

struct objects_image {
    std::vector<persistent_object> all;
    std::vector<block> blocks; // that recovery settles
    std::vector<object_fault> faults;
};
/// 'copies': whether the copy of each object that counts is read, too, and compared with its check.
objects_image read_objects(const pool_image& pool, bool copies);

} // namespace hf::verify
