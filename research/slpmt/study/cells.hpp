// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the study measures: a cell is one workload on one machine; a figure compares cells.
#pragma once

#include <slpmt/measure.hpp>

#include <string>
#include <vector>

namespace hf::slpmt {

struct cell {
    std::string figure;
    std::string annotations = "by hand";
    measured_case what;
};

/// All cells but those of Fig. 13's found annotations, in a fixed order.
std::vector<cell> cells(std::uint64_t seed);

} // namespace hf::slpmt
