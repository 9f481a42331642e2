// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sections in a medium that keeps order, of engines that log what they overwrite in plain words
// (log/word_log.hpp).
//
// (1) A byte that the engine logs is in the log before it is stored to. The section leaves nothing
//     else, neither a begin record nor a mark. One that stores nothing leaves its function's number
//     alone, which reports name.
// (2) What it has taken and freed is logged at the commit, each block before its bit changes. Then
//     the log ends, and the section has happened. Blocks that it freed go to others only behind
//     that. The log of a section that runs again names them sooner: when it takes them (also that
//     there was no room), and when it frees them.
#pragma once

#include <log/word_log.hpp>
#include <section/section_in.hpp>
#include <section/thread.hpp>

namespace hf {

class word_protocol : public protocol {
public:
    word_protocol(section_in<ordered_medium>& in, const engine_row& of) noexcept
        : protocol(in, of), in_(in),
          begins_again_(!in.on_shared_lane() && !in.pool().file->relocated() &&
                        !in.pool().check_pointers),
          runs_again_(runs_again(of)), offer_(next_section::offer(in.pool().instance, of.bit)) {}

    void begin(const hf_txfunc& function, const void* args);
    void commit();
    void log(const void* address, std::uint64_t bytes);
    void log_ahead(const void* address, std::uint64_t bytes) override;
    void note(const void* address, std::uint64_t bytes) override;
    void overwrite(const void* address, std::uint64_t bytes) override { log(address, bytes); }
    void* alloc(std::uint64_t bytes) override;
    void free(block b) override;

    /// Whether the thread's next section can begin like its last one, of that engine.
    static bool is_offered(const engine_row& of) noexcept;
    /// Its protocol.
    static word_protocol& offered() noexcept {
        return static_cast<word_protocol&>(*next_section_here.by);
    }
    /// The same as begin(). Requires: it is offered.
    void begin_again(const hf_txfunc& function) noexcept;
    static bool begin_again(const engine_row& of, const hf_txfunc& function) noexcept;
    /// commit(), and the section is left, if it began again and nobody has doomed it. False:
    /// another.
    static bool commit_again() noexcept;

protected:
    /// An entry that takes so many bytes has room behind it. Ends the process where the pool has
    /// none.
    void make_room(std::uint64_t entry_bytes) {
        if (!log_.fits(entry_bytes)) [[unlikely]]
            extend(entry_bytes);
    }
    void extend(std::uint64_t entry_bytes);
    /// Calls 'write', which adds to the log. That of a section that runs again is hidden from
    /// entries in line: its calls are watched.
    template <class Write> void add(Write&& write) {
        const bool hidden = in_.watched();
        if (hidden) [[unlikely]]
            log_.show();
        write();
        if (hidden) [[unlikely]]
            log_.hide();
    }
    bool extend_if_room(std::uint64_t entry_bytes, purpose what);
    void log_block(record_kind kind, block b);
    void end();

    section_in<ordered_medium>& in_;
    word_log log_;
    logged_ranges logged_; // by serial_
    std::uint64_t serial_ = 0;

private:
    void log_old_bytes(std::uint64_t offset, const void* address, std::uint64_t bytes);
    void change_hands();
    void commit_blocks() noexcept;
    void end_again() noexcept;
    void offer_again() noexcept;

    const bool begins_again_; // a lane of its own, and the pool at its place
    const bool runs_again_;   // its sections, after a failure
    const std::uint64_t offer_;
};

inline bool word_protocol::is_offered(const engine_row& of) noexcept {
    return next_section_here.offered == next_section::offer(registry::only_instance(), of.bit);
}

inline void word_protocol::begin_again(const hf_txfunc& function) noexcept {
    next_section_here.offered += next_section::taken;
    in_.begin_again(function);
    log_.start_again(function.id);
    ++serial_;
}

inline bool word_protocol::begin_again(const engine_row& of, const hf_txfunc& function) noexcept {
    const bool again = is_offered(of);
    if (again) offered().begin_again(function);
    return again;
}

inline void word_protocol::end_again() noexcept {
    ++persist::thread_counters().sections;
    in_.end_again();
    next_section_here.offered -= next_section::taken;
}

[[gnu::always_inline]] inline bool word_protocol::commit_again() noexcept {
    if (!next_section_here.is_taken()) return false;
    word_protocol& self = offered();
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
