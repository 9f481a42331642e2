// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How reports on pools are printed: lines for people, or JSON.
#pragma once

#include <verify/repair.hpp>

#include <holdfast/result.hpp>

#include <cstdint>
#include <map>
#include <span>
#include <string>

namespace hf::tools {

/// Blocks of one size.
struct blocks_of_size {
    std::uint64_t used = 0,
                  chunks = 0; // chunks: those that they lie in; 0 if a block has its own
    std::uint64_t free = 0;   // room for so many more in these chunks, for this size alone
};
/// Blocks by their size, and the memory outside of blocks, by the heap's tables.
struct space {
    std::map<std::uint64_t, blocks_of_size> sizes;
    std::uint64_t used_bytes = 0, free_bytes = 0, faults = 0;
    std::uint64_t free_chunks = 0; // without a block: for any size
    std::uint64_t disk_bytes = 0;  // taken by the file in the file system
};
/// The header copy that counts.
///
/// Errors:   not_a_pool, corrupt, and those of check_header.
result<pool_header> header_of(const std::string& path, std::span<const std::byte> file);
space space_of(const verify::pool_image& pool);
void print_info(const std::string& path, const verify::report& found, const space& blocks,
                bool json);
void print_verdict(const std::string& path, const verify::report& found, verify::depth how,
                   bool json);
void print_dump(std::span<const std::byte> file, const pool_header& header, bool json);
void print_repair(const std::string& path, const verify::repair_plan& plan,
                  const verify::report& found, bool json);

} // namespace hf::tools
