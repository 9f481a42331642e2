// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names of functions for messages.
#pragma once

namespace hf {

/// The name of a failure-atomic function as its source spells it: "push(list*, unsigned long)"; for
/// a closure its place: "user(list*)::$_0". Any other name is returned unchanged, as is every name
/// when there is no memory. Valid until some sixty more have been asked for, on any thread: a
/// message may have several.
const char* readable_name(const char* linker_name) noexcept;
/// Whether it names a closure given to hf::tx: recovery passes it captures, not arguments.
bool is_closure(const char* linker_name) noexcept;

} // namespace hf
