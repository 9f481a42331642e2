// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files of objects that are swapped out.  docs/format/simpo.md
//
// (1) A file has its name when all of it is durable, and is never written again: one name, one
//     state of one object.
// (2) Nothing that is read is believed: sizes are bounded by the head that asks, and the copy has
//     that head's check.
// (3) One process writes to a folder at a time, and one pool: never an earlier state of it, whose
//     files may be gone.
#pragma once

#include <pool/os_file.hpp>
#include <pool/pool_file.hpp>
#include <simpo/format.hpp>

#include <holdfast/simpo/swap.hpp>

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

namespace hf::simpo {

/// A pool's uuid, for the files beside it.
using pool_name = std::array<std::uint8_t, 16>;
result<pool_name> uuid_of(const std::string& path, const os_file& pool);

class swap_folder {
public:
    /// Makes and locks the folder for this pool. For a pool that is open read-only, or in an image,
    /// it does neither. After a failure it may be called again. 'opened_by': a number that no other
    /// open of a pool has.
    static result<swap_folder> open(const pool_file& of, std::string path, const swap_options& how,
                                    std::uint64_t opened_by);

    /// Writes the copy of an object to its file of this number. Durable on return. Throws
    /// std::bad_alloc.
    status write(const object_head& of, std::uint64_t number, const std::byte* copy) const;
    /// Reads the copy of an object that is swapped out. Throws std::bad_alloc.
    /// Errors:   corrupt; bad_argument: it is packed, and swap_to was not given that compression;
    ///           io_error: it is missing, or as the file system says.
    status read(const object_head& swapped, std::byte* copy) const;
    /// Whether the file that the head names exists, with any contents. Throws std::bad_alloc.
    bool has(const object_head& of) const;
    void remove(const object_head& of, std::uint64_t number) const noexcept;
    /// An object's salt, and the number of its file.
    using state = std::pair<std::uint64_t, std::uint64_t>;
    /// Removes what processes that were killed have left: files of all other states. Throws
    /// std::bad_alloc.
    void remove_all_but(const std::set<state>& named) const;

private:
    swap_folder(std::string path, const compression* packing, const pool_name& pool)
        : path_(std::move(path)), packing_(packing), pool_(pool) {}
    status lock(std::uint64_t generation, std::uint64_t opened_by, const os_file& pool);
    std::string name_of(const object_head& of, std::uint64_t number) const;

    std::string path_; // ends with a slash
    const compression* packing_;
    pool_name pool_;
    os_file lock_; // no lock for a pool that is open read-only
};

} // namespace hf::simpo
