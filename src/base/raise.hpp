// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Numbers that threads share and that only grow.
#pragma once

#include <atomic>

namespace hf {

/// Makes 'number', a std::atomic or std::atomic_ref, 'to' unless it is that or more; releases.
template <class Atomic> void raise(Atomic& number, typename Atomic::value_type to) noexcept {
    auto seen = number.load(std::memory_order_relaxed);
    while (seen < to && !number.compare_exchange_weak(seen, to, std::memory_order_release)) {}
}

} // namespace hf
