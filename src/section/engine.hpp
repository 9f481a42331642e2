// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an engine gives pool::open: which durable state it owns and how it recovers a section.
#pragma once

#include <section/lane.hpp>

#include <holdfast/pool.hpp>

namespace hf {

class engine {
public:
    virtual ~engine() = default;
    virtual engine_bit bit() const noexcept = 0;
    virtual const char* name() const noexcept = 0;
    /// Can this build recover 'section'? Reads only. Errors: function_changed, corrupt.
    virtual status check(pool_file& file, const pending_section& section) const = 0;
    /// Completes or undoes one section; called once its blocks are back as they were before it, in
    /// a thread of its own when several are pending. Everything is durable when it returns.
    virtual void recover(pool::impl& pool, pending_section& section,
                         recovery_report& count) const = 0;
};

} // namespace hf
