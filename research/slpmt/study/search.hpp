// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Annotations that nobody wrote: stores that always go to memory which the same transaction has
// made are log-free (the paper's pattern 1, seen at run time); of the others each is tried as lazy
// and as log-free, and kept if no crash of the machine finds anything.
#pragma once

#include <slpmt/crash_proof.hpp>

#include <string>
#include <vector>

namespace hf::slpmt {

using annotation = std::pair<std::string, operands>;

struct search_result {
    std::vector<annotation> fresh; // one for each site
    std::vector<annotation> found; // one for each site
    std::uint64_t by_hand = 0;     // sites annotated by hand
    std::uint64_t fresh_of_hand = 0, found_of_hand = 0;
    std::vector<std::string> beyond_hand; // sites found that no hand has annotated
    std::uint64_t points = 0;             // crashes that decided it
};

search_result search(std::string_view workload, std::uint64_t seed);

} // namespace hf::slpmt
