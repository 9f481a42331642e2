// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The trial of every mutant, and its rules: `verify --deep` calls it good only when every block is
// unchanged. Opening it is refused with a sentence, or gives a pool that can be used, closed and
// opened again.
#pragma once

#include "mutation.hpp"
#include <pool/os_file.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <string>

namespace hf::hostile {

/// Counts of a run; plain words in memory that parent and child share.
struct tally {
    std::uint64_t tried = 0, opened = 0, sections_pending = 0;
    std::uint64_t verified_good = 0, verified_damaged = 0, verified_otherwise = 0;
    std::uint64_t mod_verified = 0, mod_damaged = 0;
    std::uint64_t pools_full = 0, stopped = 0;
    std::array<std::uint64_t, 32> refused{}; // by errc

    std::uint64_t refusals() const;
};

/// One base pool at its canonical address, mutated again and again.
class trial {
public:
    /// Requires: nothing is mapped at the pool's address.
    explicit trial(const base_pool& base);
    ~trial();
    trial(const trial&) = delete;
    trial& operator=(const trial&) = delete;

    /// Makes the mutant of 'seed' and tries it. Returns an empty text, or the fault. 'story', if
    /// not null, receives the mutations.
    std::string run(std::uint64_t seed, tally& count, std::string* story);

    /// The result of opening the last mutant.
    const std::string& said() const noexcept { return said_; }

private:
    std::string verify(const mutator& of, tally& count) const;
    std::string open_and_use(tally& count);
    std::string use(pool& in, tally& count) const;
    std::string reopen(const char* when);
    std::string serve(std::uint64_t bytes, tally& count);
    void fence_off(bool off) const;

    const base_pool* base_;
    pool_map map_;
    std::vector<std::byte> initial_; // of the memory
    std::span<std::byte> memory_;
    memory_image image_{};
    std::string said_;
    bool executed_ = false; // a section was re-executed, to its end or not
};

} // namespace hf::hostile
