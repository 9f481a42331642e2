// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pools that are mutated: at rest, grown, with pending sections of each engine in every state.
#pragma once

#include "mod_use.hpp"

#include <holdfast/pool.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace hf::hostile {

/// The result of opening the server's pool and using it.
struct serving {
    std::string wrong; // empty: nothing
    bool opened = false;
    errc refused = errc::ok;
    std::string why; // it was refused
    std::uint32_t sections_pending = 0;
};

struct base_pool {
    std::string name;
    open_options options;         // to open it with again
    std::vector<std::byte> bytes; // of its file
    bool sealed = false;          // closed cleanly: verify --deep can vouch for every block
    std::optional<mod_shape> mod; // MOD's structures, instead of sections'
    bool justdo = false;          // logs of engine justdo
    // The server's: opened as the file that it was made in (a copy of a pool that was left open is
    // refused), by its store, and used.
    std::string path;
    serving (*served)(const std::string& path) = nullptr;
};

/// Makes them all, in child processes that leave their sections open.
std::vector<base_pool> make_base_pools();

} // namespace hf::hostile
