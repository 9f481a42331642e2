// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names of functions for messages.
#pragma once

namespace hf {

/// The name of a failure-atomic function as its source spells it: "push(list*, unsigned long)"; of
/// a closure the place it stands in: "user(list*)::$_0". A name that is none of C++'s comes back as
/// it is, as does any when there is no memory. Valid until this thread's next call.
const char* readable_name(const char* linker_name) noexcept;
/// Whether that is a closure given to hf::tx: what recovery hands it are captures, not arguments.
bool is_closure(const char* linker_name) noexcept;

} // namespace hf
