// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the library asks of the file system, recorded. The files lie on tmpfs and pretend to lie on
// a disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hf::power_test {

struct file_event {
    enum kind : std::uint8_t { write, resize, sync, link, unlink, sync_directory } what;
    std::uint64_t inode = 0; // of the file; of a name, which file gets it
    std::uint64_t at = 0;    // of a write; of a resize, the new size
    std::vector<char> bytes;
    std::string name;
    std::uint64_t promised = 0; // updates promised before it
};

/// Events of this process from now on, until stop().
void record();
std::vector<file_event> stop();
/// From here on so many updates are promised.
void promise(std::uint64_t updates);

} // namespace hf::power_test
