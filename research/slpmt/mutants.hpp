// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Proof cases with one fault each, of the machine (a hole of the paper's text left open) or of one
// annotation: the crash proof must find a violation in every one, or it proves nothing of the cases
// without.
#pragma once

#include <slpmt/crash_proof.hpp>

#include <string>
#include <vector>

namespace hf::slpmt {

struct mutant {
    std::string name;
    proof_case what;
};

std::vector<mutant> mutants(std::uint64_t seed);

} // namespace hf::slpmt
