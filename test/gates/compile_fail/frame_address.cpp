// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <holdfast/txfunc.hpp>

HF_TXFUNC void note(unsigned long* where) noexcept {
    where[0] = reinterpret_cast<unsigned long>(__builtin_frame_address(0));   // error: address of a frame
    where[1] = reinterpret_cast<unsigned long>(__builtin_return_address(0));  // error: address of a frame
    where[2] = reinterpret_cast<unsigned long>(__builtin_thread_pointer());   // error: address of a frame
}
