// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What sections call by address, and do not see: it is in a file without sections.
#pragma once

namespace language_test {

struct cell {
    long value, count;
};

/// Changes a cell, and returns what is in it then.
using change = long (*)(cell*, long);
extern const change add_to;
extern const change prints; ///< which no section may do
extern const change throws; ///< when it has changed the cell
long no_body_here(cell* c, long by);

class visitor {
public:
    virtual ~visitor() = default;
    virtual void visit(cell* c) = 0;
};
visitor& counter() noexcept;

} // namespace language_test
