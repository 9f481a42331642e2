// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The explorer's state of a run that it explores. explorer.cpp follows the run and fails it,
// explorer_lines.cpp applies its events to memory, explorer_recovery.cpp watches recovery.
#pragma once

#include <base/checksum.hpp>
#include <check/explorer.hpp>

#include <map>
#include <vector>

namespace hf::check {

inline constexpr std::size_t no_line = ~std::size_t{0};

inline std::uint64_t digest_of(std::size_t line, const std::vector<line_content>& contents) {
    std::uint64_t sum = 0; // whatever their order
    for (const line_content& c : contents) sum += checksum(c.data(), sizeof c, line + 1);
    return contents.size() == 1 ? sum : checksum(&sum, sizeof sum, line + 1);
}

/// A line that the failure before this run left with one of several contents, without deciding
/// which: stores apply to each of them.
struct unknown_line {
    std::vector<line_content> bases;
    std::vector<persistent_memory>
        stored_over; // one line each, parallel to 'bases'; empty: no store
};

/// A run being explored, up to one of its events.
struct explorer::frame {
    unsigned level = 0;
    std::size_t event = 0;
    unsigned part = 0;              // failure_point::part
    bool killed = false;            // what is explored is a failure of the process alone (6)
    closing after = closing::never; // the run is a recovery that ends so, and fails only then (8)
    bool closed = false;            // the event is not before the close
    const event_record* explored = nullptr;
    persistent_memory memory{domain::adr, {}}; // except for these lines:
    std::map<std::size_t, unknown_line> unknown;
    std::vector<line_content> image; // the contents of undecided lines (5)
    std::vector<std::uint32_t> open; // line -> index into 'contents', plus 1; 0: one content
    std::vector<std::vector<line_content>> contents;
    std::vector<std::uint64_t> digests; // by line
    std::uint64_t digest = 0;           // of all
    std::vector<std::size_t> changed;   // lines whose image is not the parent's
    std::size_t new_line = no_line;     // (3): only failures with one of these are new
    std::vector<line_content> new_contents;
    std::vector<std::size_t> unmet; // lines with new contents that the runs before did not look at
    std::uint64_t identity = 0;     // of the run, for (3)
    std::uint64_t epoch = 0;        // grows when contents become impossible
    std::vector<bool> looked_at;    // lines that recoveries from failures in its recovery looked at
    struct choice {
        std::uint32_t taken, options;
    };
    std::vector<choice> choices;
    std::size_t choices_made = 0;
    event_record recovery;         // events of the latest run of recovery
    std::vector<legal_set> wanted; // what must be recovered to after a failure in it

    const std::vector<line_content>& contents_of(std::size_t line) const {
        return line == new_line ? new_contents : contents[open[line] - 1];
    }
    /// The content after a kill.
    const line_content& newest(std::size_t line) const {
        return open[line] == 0 ? image[line] : contents[open[line] - 1].back();
    }
    /// The content of memory_ when recovery starts.
    const line_content& left(std::size_t line) const { return killed ? newest(line) : image[line]; }
};

} // namespace hf::check
