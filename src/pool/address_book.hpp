// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the pools of this user lie: a register in a folder that the user's processes on this
// machine share. A new pool gets addresses that no known pool may grow into, so that all of them
// can be open in one process.
//
// (1) The register is a hint. Where it is lost, wrong or not writable, a new pool gets a random
//     place, and opening a pool checks the addresses as ever.
// (2) A new pool's place is chosen and noted under the lock of the register's folder: no two
//     processes choose the same place.
// (3) Lines are appended whole, and a line that does not hold together is passed over. A register
//     that becomes shorter is another file, which replaces it.
// (4) The last line of a path counts.
#pragma once

#include <pool/restarted.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hf {

/// Addresses that a pool may grow into.
struct pool_place {
    std::uint64_t base, bytes;
    bool overlaps(const pool_place& other) const noexcept {
        return base < other.base + other.bytes && other.base < base + bytes;
    }
};

class address_book {
public:
    /// Locks the register, and reads it. Looks for pools that it does not know in the folder of
    /// 'path', among the names that end in ".hf". Waits up to ten seconds for other processes.
    /// Throws std::bad_alloc.
    explicit address_book(const std::string& path);
    ~address_book();
    address_book(const address_book&) = delete;
    address_book& operator=(const address_book&) = delete;

    /// The n-th address to try for a new pool: pseudo-random among the places that are free of
    /// other pools. If none is, forgets the pools whose files are gone; if that does not help, it
    /// is one of all places.
    std::uint64_t candidate(const std::uint8_t (&uuid)[16], std::uint64_t max_bytes, unsigned n);
    /// A pool that lies there, or in a part of it; empty: none that is known.
    std::string pool_in(const pool_place& place) const;
    /// The pool at 'path' has this place.
    void note(const pool_place& place);

    /// Notes the place of a pool that is opened, unless the register has it. Best effort.
    static void note_opened(const std::string& path, const pool_place& place);

private:
    address_book(const std::string& path, unsigned wait_ms);
    void lock(unsigned wait_ms);
    void read();
    void read_neighbours();
    void append(const std::string& lines) const;
    void forget_removed();

    struct entry {
        pool_place place;
        std::uint64_t line; // its number: the newest has the highest
    };
    std::string path_; // of the pool, from the root of all directories
    int folder_ = -1;  // locked; -1: there is no register
    std::uint64_t lines_ = 0;
    std::map<std::string, entry, std::less<>> known_; // by path
};

} // namespace hf
