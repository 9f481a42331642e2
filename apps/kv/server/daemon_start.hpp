// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// -d: a server in the background. The process that was started waits until clients can connect and
// then ends well, or ends as the server does that refused; what that has to say, it says before.
#pragma once

#include <holdfast/result.hpp>

namespace hf::kv {

class daemon_start {
public:
    daemon_start() = default;
    daemon_start(const daemon_start&) = delete;
    daemon_start& operator=(const daemon_start&) = delete;

    /// Goes on in a child, the head of a session of its own.
    ///
    /// Requires: no thread was started, no pool is open.
    status begin();
    /// Ends the waiting, when there is some. What the server says from now on goes nowhere;
    /// 'keep_stderr': but for that.
    void serves(bool keep_stderr);

private:
    int told_ = -1; // where the one that waits is told
};

} // namespace hf::kv
