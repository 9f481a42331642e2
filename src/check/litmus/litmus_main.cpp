// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The litmus tests as one JSON object, for `make crash-report`; the differences on standard error.
// Exit status 1 if there is one.
#include <check/litmus/litmus.hpp>

#include <fmt/format.h>

#include <cstdio>

int main() {
    const hf::check::litmus::litmus_result r = hf::check::litmus::run_litmus();
    fmt::print("{{\"tests\":{},\"differences\":{},\"expectations\":{},\"unmet\":{},"
               "\"outcomes\":{}}}\n",
               r.tests, r.differences, r.expectations, r.unmet, r.outcomes);
    fmt::print(stderr, "{}", r.text);
    return r.differences + r.unmet == 0 ? 0 : 1;
}
