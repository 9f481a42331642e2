// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The bytes of a file to examine: opened read-only, mapped privately if there is room. Nothing is
// written, and nobody is kept from opening the pool for longer than the examination takes.
//
// A file that somebody cuts meanwhile raises SIGBUS when the lost bytes are read: a program that
// examines files of others handles that signal (the holdfast command does).
#pragma once

#include <holdfast/result.hpp>

#include <cstddef>
#include <span>
#include <string>

namespace hf::verify {

class read_file {
public:
    /// Errors:   not_found, permission, not_a_pool (no regular file), io_error.
    static result<read_file> open(const std::string& path);
    /// The same without a lock: for callers that look again and again, and must not hinder anybody.
    /// The bytes may change at any time.
    static result<read_file> look(const std::string& path);
    /// The same for a file that the caller has open and locked. Takes no lock and no ownership.
    static result<read_file> of_locked(const std::string& path, int descriptor);
    read_file(read_file&&) noexcept;
    read_file& operator=(read_file&&) = delete;
    ~read_file();

    std::span<const std::byte> bytes() const noexcept { return bytes_; }
    int descriptor() const noexcept { return fd_; }
    /// The same, to be changed for this reader alone: the file stays as it is.
    ///
    /// Errors:   io_error.
    result<std::span<std::byte>> own_bytes();
    /// True when a process has the pool open: its bytes change while they are read.
    bool in_use() const noexcept { return in_use_; }
    /// Which: "process 4711 (holdfast-kv)", as far as can be known.
    std::string user() const;

private:
    read_file() = default;
    static result<read_file> open(const std::string& path, int command);
    status map(const std::string& path, int descriptor);
    int fd_ = -1;
    bool in_use_ = false;
    std::span<const std::byte> bytes_;
};

} // namespace hf::verify
