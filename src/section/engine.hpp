// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an engine gives pool::open: which durable state it owns and how it recovers a section.
#pragma once

#include <section/lane.hpp>

#include <holdfast/pool.hpp>

#include <memory>

namespace hf {

struct recovery; // thread.hpp

/// What an engine keeps of an open pool, besides what its sections need.
class engine_state {
public:
    virtual ~engine_state() = default; // touches the pool no more
    /// The pool is being closed cleanly; its file is whole.
    virtual void settle() noexcept = 0;
};

class engine {
public:
    virtual ~engine() = default;
    virtual engine_bit bit() const noexcept = 0;
    virtual const char* name() const noexcept = 0;
    /// Can this build recover 'section' by the pool's policy? Reads only.
    /// Errors: function_changed, corrupt, address_taken, torn.
    virtual status check(const pool::impl& pool, const pending_section& section) const = 0;
    /// Completes or undoes one section; called once its blocks are back as they were before it, in
    /// any order and on any thread. Everything is durable when it returns. It may be stopped
    /// anywhere (fault_guard): what it owns then is in 'state'.
    virtual void recover(pool::impl& pool, pending_section& section, recovery& state) const = 0;

    // Engines that keep state of their own in the pool, in this order:
    /// Is that what this build can go on with? Reads only. Errors: corrupt.
    virtual status inspect(const pool::impl&) const { return {}; }
    /// Settles which blocks are its own, before sections are recovered. Idempotent.
    virtual status settle(pool::impl&) const { return {}; }
    /// Everything is recovered. Null: it keeps nothing.
    virtual result<std::unique_ptr<engine_state>> attach(pool::impl&) const {
        return std::unique_ptr<engine_state>();
    }
};

} // namespace hf
