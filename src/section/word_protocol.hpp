// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sections in a medium that keeps order, of engines that log what they overwrite in plain words
// (log/word_log.hpp).
//
// (1) A byte that is to be logged is in the log before it is stored to. The section leaves nothing
//     else, neither a begin record nor a mark. One that stores nothing leaves its function's number
//     alone, which reports name.
// (2) What it has taken and freed is logged at the commit, each block before its bit changes. Then
//     the log ends, and the section has happened. Blocks that it freed go to others only behind
//     that.
#pragma once

#include <log/word_log.hpp>
#include <section/section_in.hpp>
#include <section/thread.hpp>

namespace hf {

class word_protocol : public protocol {
public:
    word_protocol(section_in<ordered_medium>& in, const engine_row& of) noexcept
        : protocol(in, of), in_(in),
          begins_again_(!in.on_shared_lane() && !in.pool().file->relocated()),
          instance_(in.pool().instance) {}

    void begin(const hf_txfunc& function, const void* args);
    void commit();
    void log(const void* address, std::uint64_t bytes);
    void log_ahead(const void* address, std::uint64_t bytes) override;
    void note(const void* address, std::uint64_t bytes) override;
    void overwrite(const void* address, std::uint64_t bytes) override { log(address, bytes); }
    void* alloc(std::uint64_t bytes) override;
    void free(block) override {} // (2)

    /// begin(), where the thread's next section can begin like its last one, of that engine. False:
    /// it cannot.
    static bool begin_again(const engine_row& of, const hf_txfunc& function) noexcept;
    /// commit(), and the section is left, if it began again and nobody has doomed it. False:
    /// another.
    static bool commit_again() noexcept;

protected:
    void end();

    section_in<ordered_medium>& in_;
    word_log log_;

private:
    void log_old_bytes(std::uint64_t offset, const void* address, std::uint64_t bytes);
    void log_block(record_kind kind, block b);
    void change_hands();
    void commit_blocks() noexcept;
    void extend_log(std::uint64_t entry_bytes);
    void end_again() noexcept;
    void offer_again() noexcept;

    const bool begins_again_; // a lane of its own, and the pool at its place
    const std::uint64_t instance_;
    logged_ranges logged_; // by serial_
    std::uint64_t serial_ = 0;
};

inline bool word_protocol::begin_again(const engine_row& of, const hf_txfunc& function) noexcept {
    next_section& next = next_section_here;
    if (next.instance != registry::only_instance() || next.engine != of.bit) return false;
    auto& self = static_cast<word_protocol&>(*next.by);
    next.instance = next_section::none;
    next.is_short = true;
    self.in_.begin_again(function);
    self.log_.start_again(function.id);
    ++self.serial_;
    return true;
}

inline void word_protocol::end_again() noexcept {
    ++persist::thread_counters().sections;
    in_.end_again();
    next_section_here.instance = instance_;
    next_section_here.is_short = false;
}

[[gnu::always_inline]] inline bool word_protocol::commit_again() noexcept {
    const next_section& next = next_section_here;
    if (!next.is_short) return false;
    auto& self = static_cast<word_protocol&>(*next.by);
    HF_ASSERT_SLOW(current_section == &self.in_);
    if (self.in_.blocks().touched()) {
        self.commit_blocks();
    } else {
        self.log_.end_again();
        self.end_again();
    }
    return true;
}

} // namespace hf
