// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <base/log.hpp>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace hf {
namespace {

std::atomic<void (*)(const char*)> fatal_handler{nullptr};
using message_handler = void (*)(const char*);
constinit thread_local message_handler thread_fatal_handler = nullptr;

[[noreturn]] void give_up(const char* message) {
    if (thread_fatal_handler != nullptr) thread_fatal_handler(message);
    if (auto* handler = fatal_handler.load()) handler(message);
    else say(severity::fatal, message);
    std::abort();
}

} // namespace

void set_fatal_handler(void (*handler)(const char* message)) noexcept {
    fatal_handler.store(handler);
}

void set_thread_fatal_handler(void (*handler)(const char* message)) noexcept {
    thread_fatal_handler = handler;
}

void contract_broken(const char* condition, const char* file, int line) noexcept {
    fatal("%s:%d: contract broken: %s", file, line, condition);
}

void fatal(const char* format, ...) noexcept {
    char message[2048];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    give_up(message);
}

} // namespace hf
