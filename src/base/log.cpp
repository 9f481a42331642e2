// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/log.hpp>

#include <cstdio>
#include <mutex>

namespace hf {
namespace {

struct receiver {
    log_function to = nullptr;
    void* context = nullptr;
};
// One word's load would do for the function alone: it must not meet another's context.
std::mutex changing;
constinit receiver receives;

receiver current() noexcept {
    const std::scoped_lock held{changing};
    return receives;
}

} // namespace

void set_log(log_function to, void* context) noexcept {
    const std::scoped_lock held{changing};
    receives = {to, context};
}

void say(severity level, const char* message) noexcept {
    const receiver now = current();
    if (now.to != nullptr) return now.to(now.context, level, message);
    if (level >= severity::warning) std::fprintf(stderr, "holdfast: %s\n", message);
}

} // namespace hf
