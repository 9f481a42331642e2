// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The library interface, as far as it is no template (holdfast/author/justdo/routine.hpp).
#include <base/assert.hpp>
#include <justdo/threads.hpp>

#include <holdfast/author/justdo/routine.hpp>
#include <holdfast/pool.hpp>

namespace hf::justdo {

void detail::broken_routine(const char* name, const char* what) noexcept {
    fatal("routine %s %s", name, what);
}

result<root> root::in(pool& in) {
    if (status s = check_usable(in.internals()); !s.ok()) return s;
    return root(in);
}

result<object> root::new_object() const {
    pool::impl& in = pool_->internals();
    if (const result<thread*> mine = lease_thread(in); !mine) return mine.error();
    return object(in.file->base());
}

} // namespace hf::justdo
