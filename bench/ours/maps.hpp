// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Our structures by build. A build is an engine, or an engine with a part of it left out (Clobber
// §5.3, §5.7); the sources in this folder are compiled once for each.
#pragma once

#include "../map_under_test.hpp"

#include <memory>

namespace hf::bench {

using make_ours = std::unique_ptr<map_under_test>(const map_options& options);
make_ours make_map_none, make_map_undo, make_map_clobber, make_map_redo, make_map_auto,
    make_map_selective, make_map_justdo, make_map_ido;
// Not failure-atomic: they show the cost of the halves of engine clobber.
make_ours make_map_vlog_only, make_map_clobberlog_only;
// Engine clobber without the refinement of its analysis.
make_ours make_map_clobber_unrefined;
// Containers; not compiled by the plugin.
make_ours make_map_mod;

} // namespace hf::bench
