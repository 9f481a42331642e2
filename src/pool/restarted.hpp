// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cerrno>

namespace hf {

/// Repeats a system call that a signal cut short.
template <class Call> auto restarted(Call&& call) noexcept {
    for (;;) {
        const auto value = call();
        if (value != -1 || errno != EINTR) return value;
    }
}

} // namespace hf
