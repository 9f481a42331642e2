// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Persistent objects that do not all fit into their pool.  SIMPO §3.4.3  docs/guide/simpo.md
//
//     auto s = hf::simpo::swap_to(pool, "/ssd/objects");      // each time the pool is open
//     auto r = hf::simpo::object<row>::create(pool, "r7");    // no room: others go to files there
//     auto old = hf::simpo::object<row>::find(pool, "r1");    // comes back
//
// (1) In a full pool what was used least recently makes room for what is made or used.
// (2) An object is in the pool or in one file of the folder, whole; no failure leaves it in
//     neither. What its calls promise is the same.
// (3) The folder is part of the pool: who copies or moves one does so with the other.
#pragma once

#include <holdfast/simpo.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace hf::simpo {

/// What makes the files of swapped-out objects smaller. Called by any threads, at once; outlives
/// the pool.
class compression {
public:
    /// 1 to 15 bytes. It stands in each file, which only one of this name reads again.
    virtual const char* name() const noexcept = 0;
    /// Packs all of 'from' into at most 'room' bytes. Returns how many; 0: it takes more, and is
    /// kept as it is, as is what unpack() does not give back.
    virtual std::size_t pack(void* to, std::size_t room, const void* from,
                             std::size_t bytes) const noexcept = 0;
    /// Whether 'from', whatever it is, was exactly 'bytes' packed.
    virtual bool unpack(void* to, std::size_t bytes, const void* from,
                        std::size_t packed) const noexcept = 0;

protected:
    ~compression() = default;
};

struct swap_options {
    /// Of files that are written from now on, as hf::simpo::zstd() (holdfast/simpo/zstd.hpp); null:
    /// none. It also reads its own, so that a folder that has such files is given it again.
    const compression* packing = nullptr;
};

/// From here on, while the pool is open, objects that were used least recently go to files in
/// 'folder' where creating or using another one finds the pool full, and come back when they are
/// used. The folder is made where it is missing, its parent must be there, and serves one pool.
/// With a pool that is open read-only it says where swapped-out objects are found; nothing is
/// written.
///
/// An object comes back by `find`, and by any call of a handle. Where it cannot, `find` says why; a
/// handle's calls return no errors: then the process ends with a message. So does one that finds no
/// room for ten seconds, because calls of all other objects are in progress all the time.
///
/// Cost:     an object that goes is written to its file and synced, unless it has not changed since
///           it came; 4 ordering points, and 1 where calls are pending. One that comes back is
///           read; 4.
/// Crash:    the object as it was, in the pool or in its file. A file of an earlier state may be
///           left over, until the next swap_to.
/// Errors:   exists: the folder is another pool's; conflict: the pool is a copy of an earlier state
///           than the folder's, whose files may be gone; in_use: another process has it, or this
///           one is a child of the one that opened the pool; corrupt: the folder's lock; not_found,
///           permission, pool_full, io_error: of the file system; missing_engine.
/// Source:   SIMPO §3.4.3. Differs: src/simpo/README.md.
status swap_to(pool& in, std::string folder, const swap_options& how = {});

/// Lets this object go to its file now. One that is there already stays.
///
/// Errors:   not_found; in_use: a call of it is in progress, or its calls come faster than they can
///           be made; bad_argument: no folder was given; permission: the pool is open read-only;
///           pool_full: no room for the 256 bytes that are left of it, or on the disk; io_error.
status swap_out(pool& in, std::string_view name);

} // namespace hf::simpo
