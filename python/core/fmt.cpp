// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// {fmt} for the whole module, which links no shared library of it. The other sources see its
// declarations alone: compiled in each of them its functions took two fifths of the build.
#define FMT_HEADER_ONLY
#include <fmt/format.h>

#include <string>

namespace {

// What fmt::format calls; built without optimisation (CMakeLists.txt), all that it calls is there
// for others, too.
[[gnu::used]] std::string (*const kept)(fmt::string_view, fmt::format_args) = &fmt::vformat;

} // namespace
