// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// This program again, in a fresh process.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace hf::bench {

using environment = std::vector<std::pair<std::string, std::string>>;

/// Runs this program with other arguments and more environment; returns what it printed. Ends the
/// process with a message when the child fails.
std::string output_of_self(const std::vector<std::string>& arguments, const environment& added);

/// Starts this program again with the same arguments when 'wanted' is not in the environment yet.
void become_with(const environment& wanted, char** arguments);

} // namespace hf::bench
