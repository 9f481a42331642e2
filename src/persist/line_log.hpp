// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What stands for the persistence domain where no memory does: a log that takes lines (mode power).
// To a pool's code it is the ADR domain: a line that was flushed and then fenced is in the log,
// what was not may be lost.
//
// (1) A fence puts the noted lines, as they are at the fence, behind all that earlier fences of any
//     thread have put there. So every prefix of the log is a state that a failure of the machine
//     may leave in the ADR domain: that of the moment when its last line was taken.
// (2) Order needs no more than (1). What is promised to somebody outside, who may act on it, is
//     promised once the log up to there is on the disk: wait().
#pragma once

#include <holdfast/author/persist.hpp>

#include <cstddef>
#include <cstdint>

namespace hf {

class line_log {
public:
    /// Notes the range's lines for this thread's next order(). What they hold until then may be
    /// taken at any time.
    virtual void note(const void* address, std::size_t bytes) noexcept = 0;
    /// Appends the lines that this thread has noted.
    virtual void order() noexcept = 0;
    /// Waits until all that was appended is durable; ends the process where that has failed.
    virtual void wait() noexcept = 0;

protected:
    ~line_log() = default;
};

namespace persist {

// As the functions of persist.hpp, into a log; counted and announced as in the ADR domain.
void flush(line_log& to, const void* address, std::size_t bytes) noexcept;
/// 'promises': what is fenced is promised on return, unless this thread has a group open
/// (begin_group).
void fence(line_log& to, bool promises) noexcept;
void copy(line_log& log, void* to, const void* from, std::size_t bytes) noexcept;
void store_word(line_log& log, std::uint64_t* to, std::uint64_t value) noexcept;

/// Until end_group() this thread's fences promise nothing: they only order. Groups nest. Of several
/// logs only the first has one: fences of the others wait as ever, not what they only order.
void begin_group(line_log& of) noexcept;
/// The outermost end waits for all that the group has fenced.
void end_group(line_log& of) noexcept;
/// In a child of fork(): the group that its thread is in is the parent's.
void forget_group() noexcept;
/// Whether this thread has one.
bool in_group(const line_log& of) noexcept;

} // namespace persist
} // namespace hf
