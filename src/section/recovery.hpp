// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recovery of pending sections by engines whose sections' locks kept them apart: side by side, each
// guarded against what it meets.
#pragma once

#include <open/engine.hpp>

#include <memory>

namespace hf {

/// The recovery of one pending section, and what it leaves when it is stopped.
struct section_recovery {
    engine_recovery count;
    /// What must outlive a run that was left by a jump: its log, its blocks.
    struct work {
        virtual ~work() = default;
    };
    std::unique_ptr<work> run;
};

class section_engine : public engine {
public:
    /// Locks kept the pending sections apart, so they are recovered independently (Clobber §4.3): of
    /// two that touched the same, the later one began when the other's mark was durable (section.hpp,
    /// 4).
    status recover_all(pool::impl& pool, std::span<pending_section> pending,
                       const recovery_order& order, engine_recovery& done) const final;

protected:
    /// Completes or undoes one section, on any thread. Everything is durable when it returns. It may
    /// be stopped anywhere (fault_guard): what it owns then is in 'state'.
    virtual void recover(pool::impl& pool, pending_section& section,
                         section_recovery& state) const = 0;
    /// The pool has no room to complete the section, which would keep it shut for good: 'recover'
    /// has stopped in a call of the runtime that held nothing. True when the section has ended some
    /// other way.
    virtual bool end_without_room(pool::impl&, const pending_section&, section_recovery&) const {
        return false;
    }

private:
    status recover_one(pool::impl& pool, pending_section& section, section_recovery& state) const;
};

} // namespace hf
