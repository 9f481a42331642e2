// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stops another process at one instruction of each of its threads, and lets it go on.
//
// (1) It is traced, not sent SIGSTOP: neither it nor its parent notices, calls in which it waits
//     are restarted, and when the process that stopped it dies, the kernel lets it go. No copier
//     that is killed leaves a server stopped.
// (2) Nothing here allocates, locks or throws: it runs in a child that was made beside other
//     threads.
#pragma once

#include <array>
#include <cstddef>
#include <sys/types.h>

namespace hf {

class frozen_process {
public:
    enum class outcome { frozen, gone, refused, too_slow, too_many };
    frozen_process() = default;
    frozen_process(const frozen_process&) = delete;
    frozen_process& operator=(const frozen_process&) = delete;
    ~frozen_process() { thaw(); }

    /// Stops every thread of the process. frozen: they are stopped until thaw. gone: there is no
    /// such process. refused: the system does not let this one be stopped (another user's, a
    /// debugger's, ptrace is off). too_slow: a thread did not stop within a second. In the last
    /// three cases everything that had been stopped runs again.
    outcome freeze(pid_t process) noexcept;
    void thaw() noexcept;

private:
    struct thread {
        pid_t id;
        int signal;   // that was on its way when it stopped: delivered when it goes on
        bool stopped; // and here, not gone
    };
    enum class seized { nothing_new, some, refused, too_many };
    seized seize_new(pid_t process) noexcept;
    bool wait_for_all() noexcept;
    bool knows(pid_t thread) const noexcept;

    static constexpr std::size_t threads_max = 4096;
    std::array<thread, threads_max> threads_;
    std::size_t count_ = 0;
};

} // namespace hf
