// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A benchmark's file name: unique to the process, removed at the end and before the start.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <unistd.h>

namespace hf::bench {

class temporary_file {
public:
    temporary_file(const std::string& directory, std::string_view what)
        : path_(directory + "/holdfast-bench-" + std::string(what) + "." +
                std::to_string(getpid())) {
        std::remove(path_.c_str());
    }
    temporary_file(const temporary_file&) = delete;
    temporary_file& operator=(const temporary_file&) = delete;
    ~temporary_file() {
        std::remove(path_.c_str());
        std::remove((path_ + "-lock").c_str()); // lmdb's
    }
    const std::string& path() const { return path_; }

private:
    std::string path_;
};

/// A benchmark that cannot run says why and ends the process.
[[noreturn]] inline void give_up(const std::string& why) {
    std::fprintf(stderr, "holdfast: %s\n", why.c_str());
    std::exit(1);
}

} // namespace hf::bench
