// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lost_bytes.hpp"

#include <verify/examine.hpp>

#include <csignal>
#include <unistd.h>

namespace hf::tools {

void answer_lost_bytes() {
    struct sigaction action{};
    action.sa_handler = [](int) {
        constexpr char text[] =
            "holdfast: the file was cut, or its disk failed, while it was read\n";
        (void)!::write(STDERR_FILENO, text, sizeof text - 1);
        ::_exit(static_cast<int>(verify::verdict::unreadable));
    };
    ::sigaction(SIGBUS, &action, nullptr);
}

} // namespace hf::tools
