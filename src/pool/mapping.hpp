// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Address space of a pool: the whole range it may ever grow to is reserved at once, without memory
// behind it, and pieces of the file are mapped over the reservation. So growth never finds its
// place taken, and nothing else is ever mapped over by accident. A child of fork() gets none of it.
//
// (1) A range may begin and end anywhere. A page belongs to the range in which it begins: so ranges
//     that follow each other share none, and a piece of the file is there to the end of the page in
//     which it ends. When the file grows, that page has the next piece's first bytes as well.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hf {

/// Reserves [base, base + bytes) and nothing elsewhere. 0, or the error: EEXIST when something is
/// there.
int reserve_addresses(std::uint64_t base, std::uint64_t bytes) noexcept;
/// Lets a part of the reservation be read: zeros, without memory behind them.
void let_read(void* at, std::uint64_t bytes) noexcept;
/// The same to be stored to, for this process alone.
void let_store(void* at, std::uint64_t bytes) noexcept;
/// Gives the range back, mapped or only reserved.
void release_addresses(void* base, std::uint64_t bytes) noexcept;
/// Maps the file's [offset, offset + bytes) at 'at', over an own reservation, which is restored
/// when that fails. 0, or the error.
enum class mapped_as : std::uint8_t { shared, shared_sync, copy_on_write, shared_to_read };
int map_file(void* at, int fd, std::uint64_t offset, std::uint64_t bytes, mapped_as how) noexcept;
/// 0 when the file can be mapped so that a store, once flushed, survives power loss (DAX);
/// EOPNOTSUPP when it cannot; any other error when that could not be found out.
int can_map_sync(int fd) noexcept;
/// Whether caches persist (eADR): the kernel says so of each region of persistent memory, and there
/// is one. The folder has the regions; another one is for tests. Throws std::bad_alloc.
bool caches_persist(const char* regions = "/sys/bus/nd/devices");
/// Faults every page in, for writing. Best effort.
void populate(void* at, std::uint64_t bytes) noexcept;

} // namespace hf
