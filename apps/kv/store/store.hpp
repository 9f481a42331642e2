// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The store of this build, chosen here alone (CMakeLists.txt): holdfast-kv's keeps items by
// sections, holdfast-kv-mod's by functional shadowing.
#pragma once

#include "item_store.hpp"

#ifdef HF_KV_MOD
#include "mod_store.hpp"
namespace hf::kv {
using store = mod_store;
}
#else
#include "section_store.hpp"
namespace hf::kv {
using store = section_store;
}
#endif
