// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A number in a file that outlives the process: how much a killed application had answered.
#pragma once

#include <cstdint>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace hf::apps {

/// The number in the file at 'path'; one that nobody sees for an empty path; null on an error.
inline std::uint64_t* open_journal(const std::string& path) {
    static std::uint64_t nowhere;
    if (path.empty()) return &nowhere;
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) return nullptr;
    const bool sized = ::ftruncate(file, sizeof(std::uint64_t)) == 0;
    void* const bytes =
        sized ? ::mmap(nullptr, sizeof(std::uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
              : MAP_FAILED;
    ::close(file);
    return bytes == MAP_FAILED ? nullptr : static_cast<std::uint64_t*>(bytes);
}

} // namespace hf::apps
