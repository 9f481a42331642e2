// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Built without the plugin: the part of a program that opens pools, where another part has the
// sections.
#include <test/across/language/derived_tree.hpp>

namespace hf::derived_tree {
namespace {
void count_twice(tree& of) { hf::lazy(of.count) = of.count; }
using with_rest =
    derived::recovery<derived::links<&tree::top, &node::child>, derived::also<count_twice>>;
} // namespace

void (*found_elsewhere() noexcept)(pool&) { return recovery::rebuild; }
void (*rest_found_elsewhere() noexcept)(pool&) { return with_rest::rebuild; }

} // namespace hf::derived_tree
