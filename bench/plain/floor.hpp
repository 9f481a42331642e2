// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The least that a section can cost: floors to compare with.
//
// If caches are lost: its code, a note of the lines it dirties, and ordering points. No log,
// nothing recovers. If caches survive: its code, and a log of old bytes, as one would write it by
// hand. Plain stores put a word and its address there, or a range and its length, and one store
// makes them count: a killed process leaves all stores in program order. At its end the section
// gives back what it has freed. The arena's own lists are not counted.
//
// The builds 'floor' and 'by_hand' are compiled as engine undo is, so that each store is announced.
// This code takes the calls of undo's runtime there (CMakeLists.txt).
#pragma once

#include "../temporary_file.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace hf::bench::plain {

enum class floor_fences : std::uint8_t {
    one, // what the section dirtied is flushed, and waited for
    two, // before that one line is stored non-temporally, and waited for: as engine floor-2f has it
};

/// Memory for the builds 'none' and 'floor', in a file. While it exists, their sections take theirs
/// from it.
class arena {
public:
    arena(const std::string& directory, std::uint64_t bytes, bool durable, floor_fences fences);
    ~arena();
    arena(const arena&) = delete;
    arena& operator=(const arena&) = delete;

    void* root() const noexcept { return base_; }
    /// Null when there is no room. Freed blocks of the same size come first, unless they are large.
    void* take(std::uint64_t bytes) noexcept;
    void give(void* block) noexcept;
    /// Makes what a section dirtied durable.
    void commit() noexcept;
    /// Undoes what the open section of build 'by_hand' has done, by the log alone: as a recovery
    /// would.
    void roll_back() noexcept;

private:
    // A block's size stands before it, in a granule of its own.
    static constexpr std::uint64_t granule = 16;
    static constexpr std::uint64_t reused_granules = 4096;
    struct free_block {
        free_block* next;
    };

    temporary_file file_;
    std::uint64_t bytes_;
    std::byte* base_;
    std::uint64_t used_;
    bool durable_;
    floor_fences fences_;
    std::array<free_block*, reused_granules> free_{}; // by granules
};

} // namespace hf::bench::plain

struct hf_txfunc;
extern "C" {
// The build 'by_hand' calls these instead of undo's runtime.
int hf_by_hand_begin(const hf_txfunc* function, const void* arguments) noexcept;
void hf_by_hand_commit() noexcept;
void hf_by_hand_free(void* block) noexcept;
void hf_by_hand_log(const void* address, std::uint64_t bytes) noexcept;
void hf_by_hand_note(const void* address, std::uint64_t bytes) noexcept;
}
