// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a program did to simulated memory, as a list of events, and the file that keeps it:
//
//   header = magic, version, sizes, counts, checksum      (trace_header)
//   event  = kind and operands in one byte, its numbers in groups of seven bits, the lowest first
//
// (1) A trace says nothing of time: which load an address came from, and the machine that replays
//     it works out when that was done.
// (2) A file is a stranger's: reading it checks the checksum, then every number of every event, so
//     that no machine is given what it would stop at.
#pragma once

#include <slpmt/machine.hpp>

#include <holdfast/result.hpp>

#include <string>
#include <vector>

namespace hf::slpmt {

// In files: do not change the values.
enum class event_kind : std::uint8_t {
    begin = 0, // of a transaction
    commit = 1,
    compute = 2, // 'value' instructions that touch no memory
    load = 3,    // of the word at 'offset', known when load number 'value' was done; 0: at once
    store = 4,   // of 'value' to the word at 'offset', with the operands 'how'
    start = 5,   // what is measured begins here
    stop = 6     // and ends here
};

struct event {
    event_kind kind = event_kind::begin;
    operands how{};
    std::uint64_t offset = 0;
    std::uint64_t value = 0;
    friend bool operator==(const event&, const event&) = default;
};

struct trace_counts {
    std::uint64_t events = 0, loads = 0, stores = 0, transactions = 0;
    friend bool operator==(const trace_counts&, const trace_counts&) = default;
};

struct recorded {
    layout where;
    std::vector<event> events;
    trace_counts counts;

    void add(const event& one);
};

struct trace_header {
    std::uint64_t magic;        // trace_magic
    std::uint32_t version;      // trace_version
    std::uint32_t header_bytes; // of this header
    std::uint64_t file_bytes;   // of header and events
    std::uint64_t memory_bytes; // of the simulated memory
    std::uint64_t log_lines;    // of the log in it
    trace_counts counts;        // of what follows
    std::uint64_t checksum;     // XXH3-64 of everything before and behind it, seeded with the magic
};
static_assert(sizeof(trace_header) == 80);
inline constexpr std::uint64_t trace_magic = 0x45434152544d4953; // "SIMTRACE"
inline constexpr std::uint32_t trace_version = 1;

/// Errors: io_error.
status write_trace(const std::string& path, const recorded& what);
/// Errors: not_found, io_error; truncated, wrong_version, corrupt, with what was expected and
///           found.
result<recorded> read_trace(const std::string& path);

} // namespace hf::slpmt
