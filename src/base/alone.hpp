// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether the process has one thread.
#pragma once

#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#endif

namespace hf {

/// Whether the calling thread is the only one of its process. Until it makes another, a load and a
/// store of a shared word do what a locked operation does. False where the C library does not say.
inline bool is_alone() noexcept {
#if __has_include(<sys/single_threaded.h>)
    return __libc_single_threaded != 0;
#else
    return false;
#endif
}

} // namespace hf
