// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sections of engine undo: every byte that one overwrites is logged first, and recovery puts them
// back.
//
// In a medium that keeps order:
// (1) A byte that the section did not take is in the log (log/word_log.hpp) before it is stored to.
//     The log is plain words: the section leaves nothing else, neither a begin record nor a mark.
//     One that stores nothing leaves its function's number alone, which reports name.
// (2) What it has taken and freed is logged at the commit, each block before its bit changes. Then
//     the log ends, and the section has happened. Blocks that it freed go to others only behind
//     that.
// (3) It can be taken back while it runs: the log says how.
//
// In a batched medium: batches.hpp.
//
// In any other:
// (4) A word's old bytes are in the log, durably, before it is stored to: the compiler calls
//     hf_undo_log.
// (5) The mark is stored when the section's stores are durable, and is durable before it returns.
//     Or
// (6) the section leaves its stores to the first fence of its thread's next section
//     (options::durable), while marks may be left out (section/commit_marks.hpp, 2 and 3). Without
//     that fence it is rolled back, behind the next one, and a power failure has taken what had
//     returned. Whether the fence was passed the stores themselves say: their sum is in the next
//     section's begin record (log/lane.hpp, 7). So of two sections that may be rolled back neither
//     is another thread's.
// (7) A section that leaves its stores has logged all that it has stored to, in the lane alone, and
//     what it took is small: the sum of that costs less than the fence. It has used nothing that
//     was made before it.
#pragma once

#include <log/word_log.hpp>
#include <section/section_in.hpp>
#include <section/thread.hpp>
#include <undo/batches.hpp>
#include <undo/engine.hpp>

namespace hf::undo {

/// Old words in a log without checks, marks and begin records (1).
template <> class undo_protocol<ordered_medium> final : public protocol {
public:
    static constexpr const engine_row& row = engine_rows::undo;
    explicit undo_protocol(section_in<ordered_medium>& in) noexcept
        : protocol(in, row), in_(in),
          begins_again_(!in.on_shared_lane() && !in.pool().file->relocated() &&
                        !in.pool().check_pointers),
          instance_(in.pool().instance) {}

    void begin(const hf_txfunc& function, const void* args);
    /// The same where the thread's next section can begin like its last one. False: it cannot.
    static bool begin_again(const hf_txfunc& function) noexcept;
    void commit();
    /// The section that is open on this thread, if it began again and is not taken back; else null.
    static undo_protocol* begun_again() noexcept;
    /// The same as commit(). Requires: begun_again(), and that it has had to do with no block.
    void commit_words() noexcept;
    /// The same of one that has. Requires: begun_again().
    void commit_blocks() noexcept;
    void log(const void* address, std::uint64_t bytes);
    void log_ahead(const void* address, std::uint64_t bytes) override;
    void note(const void* address, std::uint64_t bytes) override;
    void overwrite(const void* address, std::uint64_t bytes) override { log(address, bytes); }
    void* alloc(std::uint64_t bytes) override;
    void free(block) override {} // (2)
    void doom() override {
        doomed_ = true;
        next_section_here.is_short = false;
    }

private:
    void log_old_bytes(std::uint64_t offset, const void* address, std::uint64_t bytes);
    void log_block(record_kind kind, block b);
    void change_hands();
    void extend_log(std::uint64_t entry_bytes);
    void take_back();
    void end_again() noexcept;
    void offer_again() noexcept;
    void end();

    section_in<ordered_medium>& in_;
    const bool begins_again_; // a lane of its own, and the pool at its place
    const std::uint64_t instance_;
    word_log log_;
    logged_ranges logged_; // by serial_
    std::uint64_t serial_ = 0;
    bool doomed_ = false; // at its end it is taken back (3)
};

inline bool undo_protocol<ordered_medium>::begin_again(const hf_txfunc& function) noexcept {
    next_section& next = next_section_here;
    if (next.instance != registry::only_instance()) return false;
    auto& self = static_cast<undo_protocol&>(*next.by);
    next.instance = next_section::none;
    next.is_short = true;
    self.in_.begin_again(function);
    self.log_.start_again(function.id);
    ++self.serial_;
    return true;
}

/// Each mark is stored here, too, unless (6) saves its fences.
template <> class undo_protocol<fenced_medium> final : public protocol_in<fenced_medium> {
public:
    static constexpr const engine_row& row = engine_rows::undo;
    explicit undo_protocol(section_in<fenced_medium>& in) noexcept
        : protocol_in(in, row),
          asks_to_leave_(options_of(in.pool()).durable == durability::by_next_section) {}

    void begin(const hf_txfunc& function, const void* args);
    void commit();
    void* alloc(std::uint64_t bytes) override;

private:
    bool may_leave_any() const;
    bool may_leave_stores();
    void leave_stores(std::size_t named);

    bool asks_to_leave_;     // options::durable
    bool may_leave_ = false; // its stores, if it stays small (7)
    left_payload left_{};    // of the section before, if its stores are left (6)
};

} // namespace hf::undo
