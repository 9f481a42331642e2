// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The operations of a scenario on its pool, one letter each, and a volatile model of what the pool
// must hold afterwards.
//
//   R root   p push to list 0   q push to list 1   Q push to list 1 on another thread   o pop
//   n renumber: a log of several segments   s l h adopt a blob of 500, 9 000, 60 000 bytes
//   d drop the last blob   u stage and give back   a f allocate, free outside a section   t trim
//   G the pool may grow by 16 KiB from here on, and no more   K the process is killed
#pragma once

#include "world.hpp"

#include <holdfast/pool.hpp>

#include <array>
#include <cstdint>
#include <string_view>

namespace hf::faults {

inline constexpr std::size_t script_max = 64;
inline constexpr std::size_t text_max = 512;

enum class outcome : std::uint8_t { none, begun, done, refused };

/// How far a scenario came; lies in memory that outlives the process.
struct progress {
    std::array<outcome, script_max> operations{};
    char refusal[text_max]{}; // text of the last refused operation, if it has one
};

struct model {
    std::uint64_t list_count[2];
    std::uint64_t version;
    std::uint64_t blob_count;
    std::uint64_t loose; // blocks that nothing in the pool points to
    bool operator==(const model&) const = default;
};

/// 'start' after every operation that is done; one that was begun and never acknowledged counts
/// when 'begun_too'.
model replay(model start, std::string_view script, const progress& made, bool begun_too);

/// Runs the operations. Allocates nothing of its own.
void perform(pool& in, by engine, std::string_view script, progress& made);

/// Reads what the pool holds, the allocator's account included. Null when every value, text and
/// byte is whole and no block is lost or leaked, else what is wrong.
const char* examine(pool& in, model& found);

void copy_text(char (&to)[text_max], std::string_view from) noexcept;

} // namespace hf::faults
