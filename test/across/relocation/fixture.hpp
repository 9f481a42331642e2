// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two pools, in a directory of their own on tmpfs.
#pragma once

#include "content.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace relocation_test {

class Relocation : public testing::Test {
protected:
    void SetUp() override {
        std::string pattern = "/dev/shm/hf_relocation.XXXXXX";
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        directory = pattern;
        original = directory + "/original.hf";
        copy = directory + "/copy.hf";
    }
    void TearDown() override { std::filesystem::remove_all(directory); }

    static std::optional<hf::pool> open(const std::string& path,
                                        hf::relocation where = hf::relocation::never) {
        auto opened = try_open(path, where);
        if (opened) return std::move(*opened);
        ADD_FAILURE() << opened.error().what();
        return std::nullopt;
    }
    static hf::result<hf::pool> try_open(const std::string& path, hf::relocation where) {
        hf::open_options options = options_for(hf::mode::pmem);
        options.expert.relocate = where;
        return hf::pool::open(path, options);
    }
    void make_copy() const { std::filesystem::copy_file(original, copy); }

    /// Runs this program as a victim (relocation_test.cpp), which dies inside a call of 'section'.
    static void die_in(const char* section, const std::string& path, const char* where) {
        const std::string command = std::string("HOLDFAST_CRASH_AT=") + section + " exec " +
                                    std::filesystem::read_symlink("/proc/self/exe").string() +
                                    " die " + path + " " + where + " " + section;
        const int state = std::system(command.c_str());
        ASSERT_TRUE(WIFSIGNALED(state) && WTERMSIG(state) == SIGKILL) << "state " << state;
    }
    /// Runs code built without relocation on the pool, in its own process: returns 0, or why the
    /// pool does not open.
    static int ordinary_code(const std::string& path, std::uint64_t keys, std::uint64_t links) {
        const std::string command = std::string(RELOCATION_ORDINARY) + " " + path + " " +
                                    std::to_string(keys) + " " + std::to_string(links);
        const int state = std::system(command.c_str());
        return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
    }

    std::string directory, original, copy;
};

} // namespace relocation_test
