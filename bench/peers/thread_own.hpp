// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a thread keeps for a map: a pointer that is null at first. One map at a time; another one in
// the same process (tests) starts anew.
#pragma once

#include <atomic>
#include <cstdint>

namespace hf::bench {

template <class T> class thread_own {
public:
    T*& get() const noexcept {
        thread_local kept mine{};
        if (mine.serial != serial_) mine = {serial_, nullptr};
        return mine.value;
    }

private:
    struct kept {
        std::uint64_t serial;
        T* value;
    };
    static inline std::atomic<std::uint64_t> last_{0};
    std::uint64_t serial_ = ++last_;
};

} // namespace hf::bench
