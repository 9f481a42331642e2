// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Words in a pool's blocks that look like addresses and lead to no object: what a section stored
// that meant something to its own process only.
//
// (1) Types are not known. A word counts that lies at a multiple of its size, and whose value is in
//     the pool's own range of addresses, or where Linux puts the stacks, heaps, libraries and
//     code of programs that it places itself. A number may look like that.
// (2) An address of a byte of an allocated block, or of its end, leads there.
// (3) Blocks in which engines keep logs and frames are left out: those may name the process.
#pragma once

#include <verify/image.hpp>

#include <cstdint>
#include <vector>

namespace hf::verify {

struct stray_word {
    std::uint64_t offset; // from pool start
    block in;
    std::uint64_t word;
    const char* leads; // in words: "to no block of the pool"
};

/// Returns the first 'most' such words, in the order of their places.
std::vector<stray_word> find_stray_words(const pool_image& pool, std::size_t most);

} // namespace hf::verify
