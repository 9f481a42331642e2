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
    /// keep_at, unless empty: a file that stays there instead.
    temporary_file(const std::string& directory, std::string_view what,
                   const std::string& keep_at = "")
        : keep_(!keep_at.empty()),
          path_(keep_ ? keep_at
                      : directory + "/holdfast-bench-" + std::string(what) + "." +
                            std::to_string(getpid())) {
        if (!keep_) remove();
    }
    temporary_file(const temporary_file&) = delete;
    temporary_file& operator=(const temporary_file&) = delete;
    ~temporary_file() {
        if (!keep_) remove();
    }
    const std::string& path() const { return path_; }
    /// For those that keep several files.
    void make_directory() const { std::filesystem::create_directory(path_); }

private:
    void remove() const {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
        std::filesystem::remove(path_ + "-lock", ignored);  // lmdb's
        std::filesystem::remove(path_ + "-power", ignored); // mode power's log
    }

    bool keep_;
    std::string path_;
};

/// A benchmark that cannot run says why and ends the process.
[[noreturn]] inline void give_up(const std::string& why) {
    std::fprintf(stderr, "holdfast: %s\n", why.c_str());
    std::exit(1);
}

} // namespace hf::bench
