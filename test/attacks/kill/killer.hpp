// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makes the kill come when the seed says. Otherwise the killer, once awake, waits for a processor
// until one of its victims enters the kernel, and victims die between system calls only.
#pragma once

#include <sched.h>
#include <sys/prctl.h>

namespace kill_test {

/// For the calling thread, not for those it starts. Without the privilege kills merely come later.
inline void kill_on_time() {
    ::prctl(PR_SET_TIMERSLACK, 1UL);
    sched_param first{};
    first.sched_priority = 1;
    (void)::sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first);
}

} // namespace kill_test
