// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sections that a crash cut short go on, all at a time.  JUSTDO §5.5
//
// (1) Nobody goes on before everybody has the locks that its section owned: what they guard may be
//     half done. From then on the locks are right, and any thread may work.
// (2) One may wait for a lock that another one holds. So all of them run side by side, however
//     many: a thread for each. Where one thread is all there may be, for the crash checker, they
//     take turns on it.
// (3) What stops one stops all of them: the others would wait for its locks for ever.
#pragma once

#include <justdo/thread.hpp>

#include <functional>
#include <span>
#include <vector>

namespace hf::justdo {

/// Returns when every section has ended, and all that it did is durable.
/// Requires: take_up() of all of them. Errors: what stopped them; they can be resumed again.
status resume_all(pool::impl& in, std::span<thread* const> sections);

/// Permutes sections before they are resumed, where they take turns: for tests. Null: none.
inline std::function<void(std::vector<thread*>&)> resume_order;

} // namespace hf::justdo
