// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sections of engine undo in a batched medium (mode power).
//
// (1) A section works on the process's own image. It logs old words there (log/word_log.hpp), as in
//     a medium that keeps order, so that it can be taken back. A failure takes image and log.
// (2) While it runs the log of lines takes none (persist/line_log.hpp, 3). At its end it appends
//     all that it has stored to: words that it has logged, blocks that it took, words of the
//     allocator. So a batch has all of a section or nothing, and the disk needs no log of it.
// (3) The allocator's bits change while the lines are held, and the log of words ends before they
//     are let go: no line that is taken says that the section runs.
// (4) A section whose log grows long, or that stores to more lines than a batch has room for, puts
//     its log on the disk (cover): entries so far come together, in one batch at most. From then on
//     it does not run, every entry is appended before what it is for, and entries change only while
//     the lines are held. A batch may have a part of such a section, and then its log: recovery
//     rolls it back. Its blocks are logged before the allocator's words change, and a block's chunk is
//     named before its bit is set. The end of the log is appended behind all that it has stored to.
// (5) What it has freed goes to others once its lines are appended: theirs come behind.
#pragma once

#include <log/word_log.hpp>
#include <section/section_in.hpp>
#include <undo/engine.hpp>

namespace hf::undo {

template <class Medium> class undo_protocol;

/// Puts back everything that the section has stored, newest first, and gives back its blocks. The
/// log stays as it is: the section ends behind that.
void put_back(section& in, const word_log& log);
/// Looks at what the section is about to keep (section/kept_pointers.hpp).
void look_at_pointers(section& in, const word_log& log);

template <> class undo_protocol<batched_medium> final : public protocol {
public:
    static constexpr const engine_row& row = engine_rows::undo;
    /// Throws std::bad_alloc.
    explicit undo_protocol(section_in<fenced_medium>& in)
        : protocol(in, row), in_(in), lines_(in.medium().lines()),
          runner_(lines_.runner_of(in.marks().lane())) {}

    void begin(const hf_txfunc& function, const void* args);
    void commit();
    void log(const void* address, std::uint64_t bytes);
    void log_ahead(const void* address, std::uint64_t bytes) override;
    void note(const void* address, std::uint64_t bytes) override;
    void overwrite(const void* address, std::uint64_t bytes) override { log(address, bytes); }
    void* alloc(std::uint64_t bytes) override;
    void free(block) override {} // (3)
    void doom() override { doomed_ = true; }
    bool end_early() override;

private:
    void log_old_bytes(std::uint64_t offset, const void* address, std::uint64_t bytes);
    template <class Write> void add_entry(std::uint64_t entry_bytes, Write&& write);
    template <class Write> void change_log(std::uint64_t bytes, Write&& write);
    void cover();
    std::uint64_t lines_at_most() const;
    template <class Visit> void for_each_stored(Visit&& visit);
    std::uint64_t append_and_end();
    void end_covered();
    void log_blocks();
    void take_back();
    void end();

    section_in<fenced_medium>& in_;
    line_log& lines_;
    line_log::runner& runner_;
    word_log log_;
    logged_ranges logged_; // by serial_
    std::uint64_t serial_ = 0;
    bool covered_ = false; // (4)
    bool doomed_ = false;  // at its end it is taken back
};

} // namespace hf::undo

template <> inline constexpr bool hf::works_in_batches<hf::undo::undo_protocol> = true;
