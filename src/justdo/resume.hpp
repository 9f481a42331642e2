// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Resumes the sections that a crash cut short, all at once.  JUSTDO §5.5
//
// (1) No section resumes before all sections have the locks that they owned: what the locks guard
//     may be half done. From then on the locks are right, and any thread may work.
// (2) One section may wait for a lock that another one holds. So all of them run side by side,
//     however many: a thread for each. If there may only be one thread, as for the crash checker,
//     they take turns on it.
// (3) A section that must stop stops all of them: the others would wait for its locks for ever.
//     Beside new work it ends the process, as a fault in any section does.
// (4) A section that has begun without a lock works without one before it takes its first lock, and
//     behind its last one. Nothing keeps new work from that, so open waits until it has ended.
#pragma once

#include <justdo/thread.hpp>

#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace hf::justdo {

class resumption {
public:
    /// 'ended' is called for each section at its end, on any thread.
    /// Requires: take_up() of all of them.
    resumption(pool::impl& in, std::vector<thread*> sections, std::function<void(thread*)> ended);
    /// Stops them where they are, as a crash would.
    ~resumption();
    resumption(const resumption&) = delete;
    resumption& operator=(const resumption&) = delete;

    /// Takes their locks. They go no further before go_on() or finish(). Errors, here as below:
    /// what stopped them; they can be resumed again.
    status own_again();
    /// Lets them go on beside new work. Waits for (4).
    /// Requires: own_again().
    status go_on();
    /// Returns when every section has ended, and all that it did is durable.
    /// Requires: own_again(); nobody else works in the pool.
    status finish();
    /// The same beside new work.
    void wait() noexcept;

private:
    struct common;
    class runner;
    class threaded;
    class turn_taker;
    void start_threads();
    void take_turns();
    void join() noexcept;
    status refused() const;

    std::unique_ptr<common> with_;
    std::vector<std::unique_ptr<threaded>> runners_;
    std::vector<std::thread> threads_;
};

/// Permutes sections that take turns before they are resumed: for tests. Null: no change.
inline std::function<void(std::vector<thread*>&)> resume_order;

} // namespace hf::justdo
