// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a section is about to keep is looked through for addresses of this process
// (expert_options::check_pointers). Engines that take sections back call this before they commit:
// the section is pending, or has no log yet, so that it has not happened.
//
// (1) A word counts that lies at a multiple of its size, is at least 2^32, and is an address of
//     memory that this process has mapped, in no open pool. Smaller addresses are those of programs
//     at fixed places, and too often numbers.
// (2) The system is asked about each such word: what is mapped changes without a call.
#pragma once

#include <section/section.hpp>

#include <cstdint>

namespace hf {

class kept_pointers {
public:
    explicit kept_pointers(section& of) noexcept : of_(of) {}
    /// A word that the section keeps at this offset. Ends the process if it leads out of the pool.
    void look_at(std::uint64_t offset, std::uint64_t word) const {
        if (word >> 32 != 0 && word >> 47 == 0) [[unlikely]]
            ask(offset, word);
    }
    /// Each word that has a byte in this range of the pool, as it stands there.
    void look_through(std::uint64_t offset, std::uint64_t bytes) const;
    /// The same of the blocks that the section has taken.
    void look_through_blocks() const;

private:
    void ask(std::uint64_t offset, std::uint64_t word) const;

    section& of_;
};

} // namespace hf
