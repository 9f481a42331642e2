// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The skip list, built once per engine. Heights come from the keys' hashes: 4, 5 and 11 stand on
// two levels, 56 and 61 on three, 1, 2 and 9 on one.
#include "ordered_map_program.hpp"
#include <structures/skip_list.hpp>

namespace hf::structures {
namespace {

using list = skip_list<std::uint64_t, std::uint64_t>;
using steps = std::vector<map_step>;

void add(const char* what, steps before, std::vector<steps> of_threads) {
    add_program<list>("skip_list", what, std::move(before), std::move(of_threads));
}

[[maybe_unused]] const bool added = [] {
    const steps some{{1, 1}, {4, 2}, {5, 3}, {9, 4}, {56, 5}};
    add("insert", {}, {{{1, 1}, {4, 2}, {5, 3}, {2, 4}}});
    add("insert high", some, {{{61, 6}, {11, 7}}});
    add("assign", some, {{{4, 7}, {9, 8}}});
    add("erase", some, {{{4, erased}, {1, erased}, {56, erased}}});
    add("reuse", some, {{{4, erased}, {11, 7}, {5, erased}, {4, 8}}}); // in memory just freed
    add("erase all", {{4, 1}}, {{{4, erased}, {4, 2}}});
    add("two threads", {{1, 1}}, {{{4, 7}}, {{5, 8}}}); // neighbours on both levels
    add("two threads, one erases", {{4, 1}, {5, 2}}, {{{5, erased}}, {{4, 8}}});
    return true;
}();

} // namespace
} // namespace hf::structures
