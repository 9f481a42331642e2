// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The file of -P. It is opened while the process may still be root, because its folder often
// belongs to root. It contains a number only while that number is true.
#pragma once

#include <holdfast/result.hpp>

#include <string>

namespace hf::kv {

class pid_file {
public:
    pid_file() = default;
    pid_file(const pid_file&) = delete;
    pid_file& operator=(const pid_file&) = delete;
    /// Takes away a file that this object has made and never written, where this user may.
    ~pid_file();

    /// Opens or makes it, and leaves what is in it. An empty path: no file, here and below.
    status open(const std::string& path);
    /// Replaces what is in it by this process's number, with a line end.
    status write();
    /// Removes it; if the folder belongs to another user by now, empties it.
    void remove() noexcept;

private:
    std::string path_;
    int fd_ = -1;
    bool made_ = false;
};

} // namespace hf::kv
