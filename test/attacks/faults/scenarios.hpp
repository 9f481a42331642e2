// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The situations in which faults are injected: the first contents of the file, how it is opened,
// and what is then done with it.
#pragma once

#include "inject.hpp"
#include "script.hpp"

#include <holdfast/pool.hpp>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace hf::faults {

/// The file a scenario starts from.
struct origin {
    std::string bytes;      // of the file; empty: the file does not exist
    model holds{};          // what the pool in it holds, recovery included
    bool with_hole = false; // the file system has not allocated all of it
};

struct scenario {
    std::string name;
    origin from;
    open_options options;
    by engine = by::clobber;
    medium on = medium::tmpfs;
    std::string_view script;
    errc refused_with = errc::ok; // the result of opening without a fault
    bool killed_too = false;      // also with SIGKILL before and after every system call
};

/// All of them. Their origins are made here, at 'path', which is used and left empty.
std::vector<scenario> all_scenarios(const std::string& path);

/// Runs 'body' in a forked child, so that everything that the library keeps in a process (the boot
/// identifier, tables) is missing when a scenario begins. Returns how the child ended, as waitpid
/// does.
int in_child(const std::function<void()>& body);
std::string file_bytes(const std::string& path);
/// Puts the scenario's file in place, or removes what is there.
void put_in_place(const origin& from, const std::string& path);

} // namespace hf::faults
