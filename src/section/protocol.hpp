// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an engine makes of a section: begin, note or log, commit, take back, recover are its own.
// Its entry points, hf_NAME_…, know its classes (section_in.hpp), so that noting a store, logging
// it and committing take no virtual call. The calls that a program makes without naming the engine
// come here.
#pragma once

#include <alloc/heap.hpp>
#include <base/engines.hpp>

#include <cstdint>

namespace hf {

class section;

/// One object for each engine that a thread has run sections of in a pool.
class protocol {
public:
    protocol(section& in, const engine_row& of) noexcept : in_(in), of_(of) {}
    protocol(const protocol&) = delete;
    protocol& operator=(const protocol&) = delete;
    virtual ~protocol() = default;

    const engine_row& engine() const noexcept { return of_; }

    /// A store comes that needs no log.
    virtual void note(const void* address, std::uint64_t bytes) = 0;
    /// The section will store to all of these bytes: those that it logs are in the log before it
    /// does.
    virtual void log_ahead(const void* address, std::uint64_t bytes) = 0;
    /// A function of the C library is about to store there.
    virtual void overwrite(const void* address, std::uint64_t bytes) = 0;
    virtual void* alloc(std::uint64_t bytes) = 0;
    /// The block is free at the commit. Requires: the section did not take it.
    virtual void free(block b) = 0;
    /// A copy of bytes that the section reads, which may be on a stack.
    virtual const void* preserve(const void* volatile_bytes, std::uint64_t bytes);
    /// At its end the section is not to have happened. Ends the process where that cannot be.
    virtual void doom();
    /// The section's thread ends in it. Ends the section as if it had never begun; false: it
    /// cannot.
    virtual bool end_early() { return false; }
    /// The function cannot go on without room in the pool. Does not return where the section can
    /// end as if it had never begun.
    virtual void give_up() {}
    /// The log finds no room. Returns where the section can end as if it had never begun, and will.
    virtual void no_room_for_log();

    // For mark_guard:
    /// Whether knows_store() says anything.
    virtual bool knows_stores() const noexcept { return false; }
    /// Whether the section's code has announced a store to this byte, before it is made.
    virtual bool knows_store(std::uint64_t) const noexcept { return true; }

    // If the section's stores are watched (section.hpp):
    /// The section has called the runtime.
    virtual void entered() const noexcept {}
    /// It is about to store there; 'fresh': to memory of its own.
    virtual void stores(std::uint64_t, std::uint64_t, bool) {}
    /// Whether these bytes are in the log, by an earlier run.
    virtual bool logged(std::uint64_t, std::uint64_t) const noexcept { return false; }

protected:
    section& in_;

private:
    const engine_row& of_;
};

} // namespace hf
