// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pools of a test: in a file of its own, opened with the engine of the build.
#pragma once

#include <holdfast/engines.hpp>
#include <holdfast/pool.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <unistd.h>

namespace language_test {

/// Opens, or ends the test program: a test goes on with a pool or not at all.
inline hf::pool open(const std::string& path, std::uint64_t bytes = 256 << 10) {
    hf::open_options o;
    o.layout = "language/1";
    o.create_bytes = o.max_bytes = bytes;
    o.engines = hf::engines_of_build();
    auto opened = hf::pool::open(path, o);
    if (!opened) std::fprintf(stderr, "%s\n", opened.error().what().c_str()), std::exit(1);
    return std::move(*opened);
}

inline bool clobber() { return hf::engine_of_build() == "clobber"; }
inline bool undo() { return hf::engine_of_build() == "undo"; }
inline bool redo() { return hf::engine_of_build() == "redo"; }
/// These tests' pools are in a medium that keeps order: its sections are of engine undo.
inline bool chooses() { return hf::engine_of_build() == "auto"; }
/// Whether an exception may leave a section.
inline bool takes_back() { return redo() || chooses(); }

class pools : public testing::Test {
protected:
    pools() { GTEST_FLAG_SET(death_test_style, "fast"); }
    ~pools() override {
        ::unlink(first.c_str());
        ::unlink(second.c_str());
    }
    const std::string first = "/dev/shm/hf_language." + std::to_string(::getpid()) + ".first";
    const std::string second = "/dev/shm/hf_language." + std::to_string(::getpid()) + ".second";
};

} // namespace language_test
