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
#pragma once

#include <justdo/thread.hpp>

#include <functional>
#include <span>
#include <vector>

namespace hf::justdo {

/// Returns when every section has ended, and all that it did is durable.
/// Requires: take_up() of all of them. Errors: what stopped them; they can be resumed again.
status resume_all(pool::impl& in, std::span<thread* const> sections);

/// Permutes sections that take turns before they are resumed: for tests. Null: no change.
inline std::function<void(std::vector<thread*>&)> resume_order;

} // namespace hf::justdo
