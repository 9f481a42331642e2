// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Built without the plugin.
#include "indirect.hpp"

namespace language_test {

long no_body_here(cell* c, long by) { return c->value += by; }

} // namespace language_test
