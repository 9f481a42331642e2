// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The threads of an open pool that use engine justdo: which thread has which block, and which has
// none yet.
//
// (1) A thread of this process has one block in a pool as long as it lives; then another may have
//     it.
#pragma once

#include <justdo/inspect.hpp>
#include <justdo/resume.hpp>
#include <justdo/thread.hpp>
#include <open/engine.hpp>
#include <open/registry.hpp>

#include <memory>
#include <mutex>
#include <vector>

namespace hf::justdo {

class threads final : public engine_state {
public:
    explicit threads(pool::impl& in) : pool_(&in) {}

    status go_on() override { return resuming_ ? resuming_->go_on() : status(); }
    void end_own_work(bool stop) noexcept override;
    void settle_for_close() noexcept override {}
    bool in_section() noexcept override;
    void wait_for_own_work() noexcept override {
        if (resuming_) resuming_->wait();
    }

    /// A block for the calling thread. Errors: pool_full, limit_reached.
    result<thread*> lease();
    /// The thread has ended. One that ended in a section keeps its block: the next open resumes it.
    void give_back(thread* mine) noexcept;

    /// The rest of the recovery: the blocks as the crash left them, and their sections, with their
    /// locks, to where go_on() lets them go on; or to the end.
    status recover(engine_recovery& done, bool to_the_end);
    /// Makes the locks free that it took. Requires: it has failed.
    void free_locks() noexcept;

private:
    superblock* make_superblock();

    pool::impl* pool_;
    std::mutex lock_;
    std::vector<std::unique_ptr<thread>> all_;
    std::vector<thread*> idle_; // of 'all_'
    std::unique_ptr<resumption> resuming_;
};

/// The calling thread's own one in the process's only pool; 0: nobody has looked yet.
struct thread_at_hand {
    std::uint64_t instance = 0;
    thread* mine = nullptr;
};
extern constinit thread_local thread_at_hand at_hand __attribute__((tls_model("initial-exec")));

thread& find_calling_thread(const void* in, const char* what);
/// The thread that calls 'what'. If functions of a resumed section run on it, that section's
/// thread. Else the calling thread's own, of the pool that 'in' lies in, or of the only pool; its
/// first use leases it. Ends the process with a message if there is no such pool.
inline thread& calling_thread(const void* in, const char* what) {
    if (current == nullptr && at_hand.instance == registry::only_instance() &&
        at_hand.mine != nullptr && at_hand.mine->contains(in)) [[likely]]
        return *(current = at_hand.mine);
    return find_calling_thread(in, what);
}
/// Whether threads can have blocks in the pool. Errors: missing_engine, permission (read-only).
status check_usable(const pool::impl& in);
/// The calling thread's own block in the pool, made when it is first asked for. Errors: those,
/// pool_full, limit_reached.
result<thread*> lease_thread(pool::impl& in);

} // namespace hf::justdo
