// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A benchmark's file or directory name: unique to the process, removed at the end and before the
// start.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>

namespace hf::bench {

class temporary_file {
public:
    temporary_file(const std::string& directory, std::string_view what)
        : path_(directory + "/holdfast-bench-" + std::string(what) + "." +
                std::to_string(getpid())) {
        remove();
    }
    temporary_file(const temporary_file&) = delete;
    temporary_file& operator=(const temporary_file&) = delete;
    ~temporary_file() { remove(); }
    const std::string& path() const { return path_; }
    /// For those that keep several files.
    void make_directory() const { std::filesystem::create_directory(path_); }

private:
    void remove() const {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
        std::filesystem::remove(path_ + "-lock", ignored); // lmdb's
    }

    std::string path_;
};

/// A benchmark that cannot run says why and ends the process.
[[noreturn]] inline void give_up(const std::string& why) {
    std::fprintf(stderr, "holdfast: %s\n", why.c_str());
    std::exit(1);
}

} // namespace hf::bench
