// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Persistent objects that do not all fit into their pool.  SIMPO §3.4.3  docs/guide/simpo.md
//
//     auto s = hf::simpo::swap_to(pool, "/ssd/objects");      // each time the pool is open
//     auto r = hf::simpo::object<row>::create(pool, "r7");    // no room: others go to files there
//     auto old = hf::simpo::object<row>::find(pool, "r1");    // comes back
//
// (1) In a full pool the objects used least recently make room for an object that is made or used.
// (2) An object is in the pool or in one file of the folder, whole; no failure leaves it in
//     neither. Its calls keep all of their promises.
// (3) The folder is part of the pool: copy or move both together.
#pragma once

#include <holdfast/simpo.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace hf::simpo {

/// Makes the files of swapped-out objects smaller. Any threads call it, at once. It outlives the
/// pool.
class compression {
public:
    /// 1 to 15 bytes. The name stands in each file; only a compression of this name reads the file
    /// again.
    virtual const char* name() const noexcept = 0;
    /// Packs all of 'from' into at most 'room' bytes, and returns how many. 0: it takes more. Such
    /// data is stored unpacked, as is data that unpack() does not give back.
    virtual std::size_t pack(void* to, std::size_t room, const void* from,
                             std::size_t bytes) const noexcept = 0;
    /// Whether 'from' was exactly 'bytes' packed. 'from' may hold anything.
    virtual bool unpack(void* to, std::size_t bytes, const void* from,
                        std::size_t packed) const noexcept = 0;

protected:
    ~compression() = default;
};

struct swap_options {
    /// For files that are written from now on, as hf::simpo::zstd() (holdfast/simpo/zstd.hpp);
    /// null: no compression. It also reads its own files, so a folder that has such files needs it
    /// again.
    const compression* packing = nullptr;
};

/// From here on, while the pool is open, objects that were used least recently go to files in
/// 'folder' when creating or using another object finds the pool full. They come back when they are
/// used. The folder serves one pool; it is made if it is missing, in a parent that exists. With a
/// pool that is open read-only, nothing is written, and the folder shows where swapped-out objects
/// are.
///
/// An object comes back by `find`, and by any call of a handle. If it cannot, `find` says why.
/// Calls of a handle return no errors, so the process ends with a message. The process also ends
/// when a call finds no room for ten seconds, because calls of all other objects are in progress
/// all the time.
///
/// Cost:     an object that goes is written to its file and synced, unless it has not changed since
///           it came; 4 ordering points, and 1 if calls are pending. An object that comes back is
///           read; 4.
/// Crash:    the object as it was, in the pool or in its file. A file of an earlier state may be
///           left over, until the next swap_to.
/// Errors:   exists: the folder is another pool's; conflict: the pool is a copy of an earlier state
///           than the folder's, whose files may be gone; in_use: another process has it, or this
///           one is a child of the one that opened the pool; corrupt: the folder's lock; not_found,
///           permission, pool_full, io_error: of the file system; missing_engine.
/// Source:   SIMPO §3.4.3. Differs: src/simpo/README.md.
status swap_to(pool& in, std::string folder, const swap_options& how = {});

/// Moves this object to its file now. An object that is there already stays there.
///
/// Errors:   not_found; in_use: a call of it is in progress, or its calls come faster than they can
///           be made; bad_argument: no folder was given; permission: the pool is open read-only;
///           pool_full: no room for the 256 bytes that are left of it, or on the disk; io_error.
status swap_out(pool& in, std::string_view name);

} // namespace hf::simpo
