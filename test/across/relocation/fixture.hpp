// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two pools, in a directory of their own on tmpfs: of mode pmem, or of each mode in which sections
// of the build have a form of their own.
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

class Pools : public testing::Test {
protected:
    explicit Pools(hf::mode of = hf::mode::pmem) : mode(of) {}
    void SetUp() override {
        std::string pattern = "/dev/shm/hf_relocation.XXXXXX";
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        directory = pattern;
        original = directory + "/original.hf";
        copy = directory + "/copy.hf";
    }
    void TearDown() override { std::filesystem::remove_all(directory); }

    std::optional<hf::pool> open(const std::string& path,
                                 hf::relocation where = hf::relocation::never) const {
        auto opened = try_open(path, where);
        if (opened) return std::move(*opened);
        ADD_FAILURE() << opened.error().what();
        return std::nullopt;
    }
    hf::result<hf::pool> try_open(const std::string& path, hf::relocation where) const {
        hf::open_options options = options_for(mode);
        options.expert.relocate = where;
        return hf::pool::open(path, options);
    }
    void make_copy() const { make_copy(copy); }
    /// The log of mode power first: whatever comes home meanwhile is in it.
    void make_copy(const std::string& to) const {
        if (std::filesystem::exists(original + "-power"))
            std::filesystem::copy_file(original + "-power", to + "-power");
        std::filesystem::copy_file(original, to);
    }
    static void remove(const std::string& path) {
        std::filesystem::remove(path);
        std::filesystem::remove(path + "-power");
    }

    /// Runs this program as a victim (relocation_test.cpp), which dies inside a call of 'section'.
    void die_in(const char* section, const std::string& path, const char* where) const {
        const std::string command = std::string("HOLDFAST_CRASH_AT=") + section + " exec " +
                                    std::filesystem::read_symlink("/proc/self/exe").string() +
                                    " die " + path + " " + where + " " + section + " " +
                                    mode_number();
        const int state = std::system(command.c_str());
        ASSERT_TRUE(WIFSIGNALED(state) && WTERMSIG(state) == SIGKILL) << "state " << state;
    }
    /// Runs code built without relocation on the pool, in its own process: returns 0, or why the
    /// pool does not open.
    int ordinary_code(const std::string& path, std::uint64_t keys, std::uint64_t links) const {
        const std::string command = std::string(RELOCATION_ORDINARY) + " " + path + " " +
                                    std::to_string(keys) + " " + std::to_string(links) + " " +
                                    mode_number();
        const int state = std::system(command.c_str());
        return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
    }

    std::string mode_number() const { return std::to_string(static_cast<int>(mode)); }

    const hf::mode mode;
    std::string directory, original, copy;
};

class Relocation : public Pools, public testing::WithParamInterface<hf::mode> {
protected:
    Relocation() : Pools(GetParam()) {}
};

/// Both forms of functions for two engines, and the logs of either.
inline auto modes_of_build() {
    if (hf::engine_of_build() != "auto") return testing::ValuesIn({hf::mode::pmem});
    return testing::ValuesIn({hf::mode::process, hf::mode::pmem, hf::mode::power});
}
inline std::string name_of_mode(const testing::TestParamInfo<hf::mode>& of) {
    return std::string(hf::name(of.param));
}

} // namespace relocation_test
