// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A thread's own data until the thread ends, and again if it is asked for later still: by
// destructors of thread_local objects that were made before, by those of pthread keys, and, on the
// thread that ends the process, by functions given to atexit and by destructors of static objects.
#pragma once

#include <atomic>
#include <memory>
#include <pthread.h>
#include <utility>

namespace hf {

/// One T for each thread and each T. A T made at the end of the process stays.
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
            note_in_key(nullptr); // from here on this thread keeps no library loaded
        }
    };
    static T& make() {
        auto made = std::make_unique<T>();
        // When the destructors of thread_local objects have run, those of keys still run; once more
        // for what they themselves make.
        static const late_key late;
        note_in_key(made.get());
        if (!ended_) {
            static thread_local const at_end watching;
            (void)&watching;
        }
        return *(mine_ = made.release());
    }
    static void drop() noexcept { delete std::exchange(mine_, nullptr); }
    static void note_in_key(const T* made) noexcept {
        if (has_key_) (void)::pthread_setspecific(key_, made);
    }

    /// Deletes the key with its library: a thread that ends later must not be sent there, and keys
    /// are few.
    struct late_key {
        late_key() noexcept {
            has_key_ = ::pthread_key_create(&key_, [](void*) { drop(); }) == 0;
        }
        ~late_key() {
            if (has_key_.exchange(false)) (void)::pthread_key_delete(key_);
        }
    };
    static inline constinit pthread_key_t key_{};
    static inline constinit std::atomic<bool> has_key_{false};
    static inline constinit thread_local T* mine_ = nullptr;
    static inline constinit thread_local bool ended_ = false;
};

} // namespace hf
