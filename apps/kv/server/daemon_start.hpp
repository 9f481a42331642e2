// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// -d: a server in the background. The process that was started waits until clients can connect, and
// then ends well. If the server refuses, it ends as the server does, and prints the server's
// messages before.
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
    /// Ends the parent's waiting, if it waits. From now on the server's messages go nowhere; with
    /// 'keep_stderr' stderr stays.
    void serves(bool keep_stderr);

private:
    int told_ = -1; // reports to the parent that waits
};

} // namespace hf::kv
