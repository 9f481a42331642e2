// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How reports on pools are printed: lines for people, or JSON.
#pragma once

#include <verify/repair.hpp>

#include <string>

namespace hf::tools {

void print_info(const std::string& path, const verify::report& found, bool json);
void print_verdict(const std::string& path, const verify::report& found, verify::depth how,
                   bool json);
void print_dump(std::span<const std::byte> file, const pool_header& header, bool json);
void print_repair(const std::string& path, const verify::repair_plan& plan,
                  const verify::report& found, bool json);

} // namespace hf::tools
