// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How reports on pools are printed: lines for people, or JSON.
#pragma once

#include <verify/repair.hpp>

#include <cstdint>
#include <map>
#include <span>
#include <string>

namespace hf::tools {

/// Blocks by their size, and what is in none, as the heap's tables have it.
struct space {
    std::map<std::uint64_t, std::uint64_t> blocks_by_bytes;
    std::uint64_t used_bytes = 0, free_bytes = 0, faults = 0;
};
space space_of(const verify::pool_image& pool);
void print_info(const std::string& path, const verify::report& found, const space& blocks,
                bool json);
void print_verdict(const std::string& path, const verify::report& found, verify::depth how,
                   bool json);
void print_dump(std::span<const std::byte> file, const pool_header& header, bool json);
void print_repair(const std::string& path, const verify::repair_plan& plan,
                  const verify::report& found, bool json);

} // namespace hf::tools
