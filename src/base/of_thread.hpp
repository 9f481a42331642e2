// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a thread has of its own until it ends, and has again when it is asked for later still: by destructors of
// thread_local objects that were made before, by those of pthread keys, and, of the thread that ends the process, by
// functions given to atexit and by destructors of static objects.
#pragma once

#include <memory>
#include <pthread.h>
#include <utility>

namespace hf {

/// One T for each thread and each T. What is made for the end of the process stays.
template <class T> class of_thread {
public:
    /// Made when it is first asked for. Throws what T's constructor throws, and std::bad_alloc.
    static T& get() { return mine_ != nullptr ? *mine_ : make(); }
    /// Null before that.
    static T* look() noexcept { return mine_; }

private:
    struct at_end {
        ~at_end() {
            ended_ = true;
            drop();
        }
    };
    static T& make() {
        auto made = std::make_unique<T>();
        // Where those of thread_local objects have run, the destructors of keys do still, once more for what they
        // themselves make.
        static const late_key late;
        if (late.known) (void)::pthread_setspecific(late.key, made.get());
        if (!ended_) {
            static thread_local const at_end watching;
            (void)&watching;
        }
        return *(mine_ = made.release());
    }
    static void drop() noexcept { delete std::exchange(mine_, nullptr); }

    struct late_key {
        pthread_key_t key{};
        const bool known = ::pthread_key_create(&key, [](void*) { drop(); }) == 0;
    };
    static inline constinit thread_local T* mine_ = nullptr;
    static inline constinit thread_local bool ended_ = false;
};

} // namespace hf
