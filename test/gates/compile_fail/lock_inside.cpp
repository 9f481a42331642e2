// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <holdfast/lock.hpp>
#include <holdfast/txfunc.hpp>

#include <mutex>

// [bad]
struct counter { hf::mutex lock; long value; };

HF_TXFUNC void count(counter* c) noexcept {
    std::scoped_lock held{c->lock};   // error in a header: synchronisation by 'hf::shared_mutex::lock()'
    c->value += 1;
}
// [/bad]
