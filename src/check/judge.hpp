// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Looks at a recovered pool as the program shows it, and compares its blocks with the allocator's.
#pragma once

#include <check/explorer.hpp>

#include <holdfast/crash.hpp>

#include <map>

namespace hf::crash {

class judge {
public:
    /// What the program shows of 'p', or what is wrong with it.
    static hf::check::verdict look(pool& p, program& given,
                                   const std::map<hf::check::outcome, std::string>& known);

private:
    static std::string compare_blocks(pool& p, const state& seen);
};

} // namespace hf::crash
