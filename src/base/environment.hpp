// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Switches in the environment.
#pragma once

#include <atomic>

namespace hf {

/// "1" is on; "0", and no such variable, is off. Any other value is off as well, and the log says
/// once what was expected and found, because a variable that does nothing is a mistake.
class environment_switch {
public:
    constexpr explicit environment_switch(const char* variable) noexcept : variable_(variable) {}
    bool is_on() noexcept;

private:
    const char* const variable_;
    std::atomic<bool> said_{false};
};

} // namespace hf
