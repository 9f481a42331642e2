// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/environment.hpp>
#include <base/log.hpp>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace hf {

bool environment_switch::is_on() noexcept {
    const char* const found = std::getenv(variable_);
    if (found == nullptr || std::string_view(found) == "0") return false;
    if (std::string_view(found) == "1") return true;
    if (!said_.exchange(true)) {
        char text[256];
        std::snprintf(text, sizeof text, "%s: expected 1 or 0, found '%.100s': it is off",
                      variable_, found);
        say(severity::warning, text);
    }
    return false;
}

} // namespace hf
