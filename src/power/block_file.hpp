// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What mode power does to a file on a block device. The crash model is another one than the file
// system's (test/attacks/power).
#pragma once

#include <holdfast/result.hpp>

#include <cstddef>
#include <cstdint>

namespace hf::power {

class block_file {
public:
    virtual ~block_file() = default;
    /// Fills 'to' from the file; bytes behind its end read as zeros.
    virtual status read(std::uint64_t at, void* to, std::size_t bytes) const = 0;
    /// Writes all of it, or fails. Nothing of it is durable, and its sectors reach the device in
    /// any order.
    virtual status write(std::uint64_t at, const void* from, std::size_t bytes) = 0;
    /// The device may begin with the bytes that were written there. A hint: it promises nothing,
    /// and reports nothing.
    virtual void start(std::uint64_t at, std::size_t bytes) noexcept {
        (void)at;
        (void)bytes;
    }
    /// Makes earlier writes durable before it returns. After a failure it never reports success
    /// again: the kernel may have dropped what it could not write, and a second call would succeed
    /// without it.
    virtual status sync() = 0;
};

} // namespace hf::power
