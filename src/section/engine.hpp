// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an engine gives pool::open: which durable state it owns and how it recovers a section.
#pragma once

#include <section/lane.hpp>

#include <holdfast/pool.hpp>

namespace hf {

struct recovery; // thread.hpp

class engine {
public:
    virtual ~engine() = default;
    virtual engine_bit bit() const noexcept = 0;
    virtual const char* name() const noexcept = 0;
    /// Can this build recover 'section'? Reads only. Errors: function_changed, corrupt.
    virtual status check(pool_file& file, const pending_section& section) const = 0;
    /// Completes or undoes one section; called once its blocks are back as they were before it, in
    /// any order and on any thread. Everything is durable when it returns. It may be stopped
    /// anywhere (fault_guard): what it owns then is in 'state'.
    virtual void recover(pool::impl& pool, pending_section& section, recovery& state) const = 0;
};

} // namespace hf
