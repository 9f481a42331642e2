// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where Holdfast's own log lines go. They report what no call can return, because it happens while
// a pool closes, in a section, or as the process is ended. Without a callback, warnings and worse
// go to stderr, as "holdfast: …".
#pragma once

#include <cstdint>

namespace hf {

enum class severity : std::uint8_t {
    note,    // what an operator may want to see: a pool was opened, and what recovery did
    warning, // what pool::warnings() has, and what somebody should look at
    error,   // something failed, and no caller learns of it otherwise
    fatal,   // the process ends when the callback returns
};

/// One line, without a line end. 'message' is valid during the call.
using log_function = void (*)(void* context, severity level, const char* message);

/// Sends the log lines of this process to 'to'; null: back to stderr. 'to' gets 'context'.
///
/// Requires: 'to' makes no call of Holdfast, and returns.
/// Threads:  any; a call under way may still use the previous function.
void set_log(log_function to, void* context = nullptr) noexcept;

} // namespace hf
