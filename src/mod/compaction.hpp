// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A MOD pool moved together into a new file that replaces the old one.
//
// (1) The old file is locked against everybody, from before it is read until the new one has its
//     name. It is never written, so an interruption leaves it as it was.
// (2) The new file has no name before it is complete, checked and on the disk. Then it gets the old
//     one's name in one step.
// (3) A word of a node is a ref if and only if the node's kind visits another node when the word is
//     changed. The kind is asked again about the moved node: it visits the new places of the same
//     nodes, in the same order.
#pragma once

#include <pool/copying.hpp>

#include <holdfast/mod/compact.hpp>

namespace hf::mod {

/// compact(), with a last look at the new file before it has a name.
result<compact_report> compact_pool(const std::string& path, const open_options& options,
                                    const copy_check& check);

} // namespace hf::mod
