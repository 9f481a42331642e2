// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

namespace hf::tools {

/// Which process works on an open pool whose file was removed, where that may be the pool of this
/// path: it is on the same file system, and has the uuid of the pool that has the path now, if
/// there is one. A sentence; empty: nobody is seen to.
std::string working_on_removed(const std::string& path);

} // namespace hf::tools
