// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private first and second levels, a shared third: the place and state of a line, and the work of
// an access to get it.
//
// (1) A line is dirty in one place at most: in one core's private caches, or in the third level.
// (2) What the first level holds, the second holds; the first level's state and marks are the true
//     ones.
// (3) A line is modified or exclusive in one core only, and then no other holds it.
// (4) The third level holds what was read from memory or left a private cache; it forces nothing
//     out of those.
#pragma once

#include <sim/cache.hpp>

#include <functional>
#include <vector>

namespace hf::sim {

/// A technique that keeps marks with the lines, and acts when they move.
class line_client {
public:
    virtual ~line_client() = default;
    /// Marks for the second level of a line that leaves the first, and the other way round.
    virtual std::uint16_t to_second(unsigned core, std::uint64_t line, std::uint16_t marks) = 0;
    virtual std::uint16_t to_first(std::uint16_t marks) = 0;
    /// A line leaves a core's private caches; marks are the second level's. Returns whether it is
    /// dirty still: a line that is not has been written to memory.
    virtual bool leaves(unsigned core, std::uint64_t line, std::uint16_t marks, bool dirty) = 0;
    /// Another core asks for a line, to write it or not, that this core may hold or not.
    virtual void asked_for(unsigned core, std::uint64_t line, bool to_write) = 0;
    /// A dirty line leaves the third level for memory.
    virtual void write_back(std::uint64_t line) = 0;
};

class hierarchy {
public:
    hierarchy(const parameters& how, line_client& client);

    struct access {
        held* line;    // in the first level
        ticks latency; // until its value is there
        bool missed;   // the first level
        bool asked;    // other cores, since the line was not the core's to write
    };
    access reach(unsigned core, std::uint64_t line, bool to_write);

    /// A core's copy of a line: its true state and marks, or null.
    held* held_by(unsigned core, std::uint64_t line);
    /// Forgets a line in a core's private caches, dirty or not.
    void drop(unsigned core, std::uint64_t line);

    struct counts {
        std::uint64_t accesses = 0, first_misses = 0, second_misses = 0, third_misses = 0;
    };
    const counts& counted() const { return counts_; }
    std::uint32_t cores() const { return static_cast<std::uint32_t>(private_.size()); }

private:
    struct private_caches {
        cache first, second;
    };
    access fetch(unsigned core, std::uint64_t line, bool to_write);
    void ask_others(unsigned core, std::uint64_t line, bool to_write, bool& shared);
    held& fill_second(unsigned core, std::uint64_t line);
    held& fill_first(unsigned core, const held& from);
    void leave_private(unsigned core, held& line);
    void enter_third(std::uint64_t line, bool dirty);

    const ticks first_, second_, third_, memory_;
    line_client& client_;
    std::vector<private_caches> private_;
    cache shared_;
    counts counts_;
};

} // namespace hf::sim
