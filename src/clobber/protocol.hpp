// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sections of engine clobber: the begin record names the function and its arguments, inputs are logged before they are
// overwritten, and recovery runs a pending section again (re_execution.hpp).
//
// (1) An input is in the log, durably, before the section overwrites it: the compiler calls hf_clobber_log.
// (2) The old bytes of whatever else is overwritten in place are in the log ahead of the store, in program order and
//     without a fence: only rolling back needs them (kept_bytes.hpp). Where the log has no room for them it says so.
// (3) A section that has happened may be run again until its mark is durable, with the same result: it leaves the mark
//     out where no other thread would depend on it (section/commit_marks.hpp, 2).
// (4) What a section read from volatile memory is in the log before its first store (hf::vlog_preserve).
#pragma once

#include <clobber/engine.hpp>
#include <log/logged_words.hpp>
#include <section/section.hpp>

#include <span>

namespace hf::clobber {

class re_execution;

class clobber_protocol final : public protocol {
public:
    static constexpr const engine_row& row = engine_rows::clobber;
    explicit clobber_protocol(section& in) noexcept;

    void begin(const hf_txfunc& function, const void* args);
    void commit();

    /// Goes on with a pending section, whose inputs are restored; 'first', which outlives it, knows its log.
    void take_up(const pending_section& from, re_execution& first);
    /// Ends a section that was taken up and has stored nothing in place, as if it had never begun.
    /// 'untaken': blocks of its log that it has not come to.
    void discard(std::span<const block> untaken);
    /// What it has freed it keeps, and its stores are on their way to PM: it will be discarded.
    void forsake();

    void note_store(const void* address, std::uint64_t bytes) override;
    void* alloc(std::uint64_t bytes) override;
    void free(block b) override;
    const void* preserve(const void* volatile_bytes, std::uint64_t bytes) override;
    void give_up() override;
    void entered() const noexcept override;
    void stores(std::uint64_t offset, std::uint64_t bytes, bool fresh) override;
    bool logged(std::uint64_t offset, std::uint64_t bytes) const noexcept override;

private:
    void keep_overwritten(const void* address, std::uint64_t offset, std::uint64_t bytes);
    bool already_kept(std::uint64_t offset, std::uint64_t bytes);

    const options& how_;       // of the pool's engine
    bool keeping_ = false;     // what is overwritten (2)
    logged_words overwritten_; // as records say
    kept_ranges overwritten_long_;
    re_execution* first_ = nullptr; // of a section that runs again: what its first run has logged
};

} // namespace hf::clobber
