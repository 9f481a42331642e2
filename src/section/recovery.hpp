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
    /// Locks kept the pending sections apart, so they are recovered independently: of two that
    /// touched the same, the later one began when the other's mark was durable (commit_marks.hpp,
    /// 2).
    status recover_all(pool::impl& pool, std::span<pending_section> pending,
                       const recovery_order& order, engine_recovery& done) const final;

protected:
    /// Completes one section, or rolls it back, on any thread. Everything is durable when it
    /// returns. It may be stopped anywhere (fault_guard): what it owns then is in 'state'.
    virtual void recover(pool::impl& pool, pending_section& section,
                         section_recovery& state) const = 0;
    /// The section cannot be completed, which would keep the pool shut for good: there is no room,
    /// 'recover' having stopped in a call of the runtime that held nothing; or, under salvage, for
    /// any reason. True when the section has ended some other way.
    virtual bool end_otherwise(pool::impl&, const pending_section&, section_recovery&) const {
        return false;
    }

private:
    void give_up(pool::impl& pool, const pending_section& section, const status& why,
                 section_recovery& state) const;
    status recover_one(pool::impl& pool, pending_section& section, section_recovery& state) const;
};

} // namespace hf
