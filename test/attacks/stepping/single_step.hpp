// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs work in a child process one instruction at a time and keeps what a kill before each of them
// would leave in the pool's file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace stepping {

inline constexpr std::size_t line_bytes = 64;
using image = std::vector<std::byte>;

/// The lines that one instruction changed.
struct moment {
    struct line {
        std::size_t offset;
        std::array<std::byte, line_bytes> bytes;
    };
    std::uint64_t instruction; // after which the file looks like this
    unsigned acknowledged;     // runs of the work that had returned by then
    std::vector<line> lines;
};

struct recording {
    image start;                 // the file before the first instruction
    std::vector<moment> moments; // in order; without steps that changed nothing
    std::uint64_t instructions = 0;
    std::string failure; // why there is no whole recording; empty: there is
};

struct calls {
    unsigned at_full_speed; // the first so many
    unsigned all;
};

/// Forks a child that calls 'prepare' and then 'work', stepped except for the first calls; kills it
/// behind the last one. Only the child maps 'file', which does not change its size.
recording record(const std::string& file, const std::function<void()>& prepare, calls wanted,
                 const std::function<void()>& work);

/// Makes 'of' the image at this moment: call it with every moment, in order.
void advance(image& of, const moment& to) noexcept;

} // namespace stepping
