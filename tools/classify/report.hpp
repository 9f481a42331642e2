// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "lint.hpp"
#include "verdict.hpp"

#include <string>
#include <vector>

namespace hf::classify {

struct classified {
    const clang::CXXRecordDecl* of;
    std::string name; // "queue<int, 8>"
    place at;
    std::vector<verdict> functions;
};

/// A line a function, and beneath it a line a reason.
void print(const std::vector<classified>& classes);
void print(const std::vector<complaint>& complaints);
/// {"classes": [{"name", "file", "line", "functions": [{"name", "signature", "file", "line",
/// "type", "repeatable", "reasons": [{"kind", "text", "file", "line", "what", "cause": {…},
/// "through": [{"file", "line", "function"}]}]}]}],
///  "complaints": [{"file", "line", "what", "reasons"}]}
void print_json(const std::vector<classified>& classes, const std::vector<complaint>& complaints);

} // namespace hf::classify
