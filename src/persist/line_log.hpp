// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In mode power a log of lines stands for the persistence domain. To a pool's code it is the ADR
// domain: a line that was flushed and then fenced is in the log, and any other may be lost.
//
// (1) A fence appends the noted lines, as they are at the fence or later, behind all lines of
//     earlier fences of any thread. So the end of each batch is a state that a failure of the
//     machine may leave in the ADR domain: the state when the batch's last line was taken.
// (2) Order needs no more than (1). A promise to the world outside also needs the log up to there
//     on the disk: wait().
// (3) A section may announce that it runs (begin_section). No line is taken until it has ended. Its
//     lines come together, in one batch, and no batch has a part of it. Such a section needs no log
//     on the disk.
// (4) Such a section may fall back to its log before its end: the lines of the log come together
//     (cover). From there on it changes its log only while it holds the lines. Recovery rolls back
//     whatever lines of the section are taken then.
// (5) No thread waits for anything while it holds the lines. A section that runs waits for no
//     thread that waits for its end: neither for a promise, nor for room.
#pragma once

#include <base/line.hpp>

#include <holdfast/author/persist.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace hf {

class line_log {
public:
    /// Notes the range's lines for this thread's next order(). What they hold until then may be
    /// taken at any time.
    virtual void note(const void* address, std::size_t bytes) noexcept = 0;
    /// Appends the lines that this thread has noted; those of a section that runs when it ends.
    virtual void order() noexcept = 0;
    /// Waits until all that was appended is durable; ends the process where that has failed. In a
    /// section that runs it returns at once: its end promises.
    virtual void wait() noexcept = 0;

    /// Whether a section runs: one at a time has it.
    struct alignas(line_bytes) runner {
        std::atomic<bool> runs{false};
        bool shared = false; // by several lanes, whose sections take turns
        std::mutex turns;
    };
    /// That of a lane's sections; it stays for as long as the log is there. Throws std::bad_alloc.
    virtual runner& runner_of(std::uint32_t lane) = 0;
    /// So many lines of a section's log may be covered.
    virtual std::uint64_t cover_lines() const noexcept = 0;

    /// A section of this thread runs when it returns. Waits while lines are taken.
    void begin_section(runner& mine) noexcept {
        if (mine.shared) [[unlikely]]
            mine.turns.lock();
        mine.runs.exchange(true);
        // Either this sees that lines are being taken, or they see that it runs.
        if (closed_.load()) [[unlikely]]
            wait_until_open(mine);
        of_section = this;
    }
    /// It has ended, and has stored nothing itself that the log needs: what its thread has noted is
    /// appended. Whether there was any.
    virtual bool end_section(runner& mine) noexcept = 0;
    /// It is about to end, with so many lines to be taken at most: holds the lines. False, and it
    /// holds nothing: there is no room.
    virtual bool hold_section(runner& mine, std::uint64_t lines_max) noexcept = 0;
    /// Holds the lines for a log of cover_lines() at most (4).
    virtual void hold_cover() noexcept = 0;
    /// Holds the lines, with room for so many more. Requires: this thread's section does not run.
    virtual void hold(std::uint64_t lines) noexcept = 0;
    /// Appends the range's lines. Requires: this thread holds the lines.
    virtual void add(const void* address, std::size_t bytes) noexcept = 0;
    /// Ends what hold() began.
    virtual void let_go() noexcept = 0;
    /// Ends what hold_section() or hold_cover() began: the section's lines are appended, and what
    /// its thread has noted, and it runs no more.
    virtual void let_go(runner& mine) noexcept = 0;
    /// The section has ended that has ceased to run before.
    static void leave(runner& mine) noexcept {
        if (mine.shared) [[unlikely]]
            mine.turns.unlock();
    }

    /// Whether a section of this thread runs.
    bool runs_here() const noexcept { return of_section == this; }
    /// In a child of fork(): what runs is the parent's.
    static void forget_section() noexcept { of_section = nullptr; }

protected:
    ~line_log() = default;
    static void stop(runner& mine) noexcept {
        of_section = nullptr;
        mine.runs.exchange(false);
    }

    std::atomic<bool> closed_{false}; // no section begins

private:
    virtual void wait_until_open(runner& mine) noexcept = 0;

    static constinit thread_local line_log* of_section __attribute__((tls_model("initial-exec")));
};

namespace persist {

// As the functions of persist.hpp, into a log; counted and announced as in the ADR domain.
void flush(line_log& to, const void* address, std::size_t bytes) noexcept;
/// 'promises': what is fenced is promised on return, unless this thread has a group open
/// (begin_group).
void fence(line_log& to, bool promises) noexcept;
void copy(line_log& log, void* to, const void* from, std::size_t bytes) noexcept;
void store_word(line_log& log, std::uint64_t* to, std::uint64_t value) noexcept;
/// A section's lines, so many, were appended when it ended: as a fence that promises.
void ended(line_log& in, std::uint64_t lines) noexcept;

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
