// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `holdfast crash --races`: runs a crash program without a failure, and looks for words that its
// threads use without a lock in common (lock_sets.hpp).
#pragma once

#include <check/program.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace hf::crash {

struct found_races {
    struct side {
        unsigned thread;
        bool stores;
        std::vector<std::string> calls; // "function at file:line", innermost first
        std::vector<std::string> locks; // "byte 8 of the pool, for reading"
    };
    struct race {
        std::size_t offset; // of the word, from pool start
        side first, second;
    };
    std::string name;
    unsigned threads = 0;
    std::size_t accesses = 0;
    std::vector<race> races;
    std::vector<std::string> trouble; // what kept the program from being run
    bool passed() const { return trouble.empty() && races.empty(); }
};

/// Runs the operations of the threads in turn, one of each thread, once with each of them first: a
/// word is the first one's until another one comes.
///
/// Errors: none; the result reports failures.
found_races find_races(const std::string& name, program& given, const check_options& options);

std::string for_people(const found_races& found);
std::string for_programs(const found_races& found);

} // namespace hf::crash
