// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The request to open a pool's file. src/open fills it from open_options (holdfast/pool.hpp, which
// says what each means), and from the engines.
#pragma once

#include <holdfast/options.hpp>

#include <cstdint>
#include <string>

namespace hf {

struct file_options {
    std::string layout;
    std::uint64_t layout_hash = 0;
    std::uint64_t create_bytes = 64ULL << 20;
    std::uint64_t max_bytes = 0;
    create creation = create::if_missing;
    hf::mode mode = hf::mode::process;
    std::uint32_t max_threads = 64;
    bool salvage = false;
    bool prefault = false;
    bool eadr = false;
    bool follow_symlinks = false;
    bool guard_signals = true;
    bool read_only = false;
    bool shared = false;
    relocation relocate = relocation::never;
    bool migrates = false; // a pool of another layout is brought to this one
    bool seal = true;
    // Bits of engines: of those that are given, and of these the ones whose marks the header gets
    // (header.hpp).
    std::uint32_t engines = 0;
    std::uint32_t drop_bytes = 0;
    std::uint32_t rebuild = 0;
};

} // namespace hf
