// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The commit of a section of engine redo: its log, a fence, its stores. deferred_section.hpp has
// what waits for it.
//
// In a medium that keeps order the section waits for its stores, and its mark is stored. In any
// other:
// (1) The log has sums of the section's own memory, and of bytes filled in before. They say whether
//     the fence was passed that all of these share. That memory has a fence of its own if there is
//     more of it than sums are worth, or if bytes with a sum are about to change.
// (2) The log stands for the section's stores (section/commit_marks.hpp, 3). The next section of
//     the lane flushes them, and one fence makes them and the next log durable. Until that next log
//     is written over, recovery replays this one before it. Other threads know these lines and
//     blocks. A section that has stored to more than left_stores has room for waits for its stores
//     itself.
#pragma once

#include <redo/deferred_section.hpp>
#include <section/section_in.hpp>

namespace hf::redo {

template <class Medium> class redo_protocol final : public deferred_section {
public:
    explicit redo_protocol(section_in<Medium>& in) noexcept : deferred_section(in), in_(in) {}

    void begin(const hf_txfunc& function, const void* args);
    /// Why it has ended as if it had never begun; 'nothing': it has happened.
    doomed_by commit();
    /// Ends it as if it had never begun (deferred_section.hpp, 2). Ordering points only if its log
    /// has been begun.
    void abort();
    void note(const void* address, std::uint64_t bytes) override;

private:
    void settle_others();
    void log_blocks();
    void log_adopted(block b, bool with_sums);
    void log_new_bytes(const void* stores, std::uint64_t bytes, bool last);
    void log_stores();
    /// Its log is whole: its stores are made, and it ends.
    void make_stores();
    void note_deferred(std::uint64_t offset, std::uint64_t granules);
    void store_deferred(const buffered_run& r);
    void store_in_place();
    void look_at_pointers() const;
    void leave_stores(std::size_t named);

    section_in<Medium>& in_;
    bool log_begun_ = false; // the begin record is in the lane
};

template <> void redo_protocol<ordered_medium>::settle_others();
template <> void redo_protocol<ordered_medium>::log_blocks();
template <> void redo_protocol<ordered_medium>::make_stores();
template <> void redo_protocol<fenced_medium>::settle_others();
template <> void redo_protocol<fenced_medium>::log_adopted(block b, bool with_sums);
template <> void redo_protocol<fenced_medium>::log_blocks();
template <> void redo_protocol<fenced_medium>::leave_stores(std::size_t named);
template <> void redo_protocol<fenced_medium>::make_stores();
extern template class redo_protocol<ordered_medium>;
extern template class redo_protocol<fenced_medium>;

/// Begins a section. False: one is open, has stored nothing yet, and the function is a part of it.
bool begin(const hf_txfunc& function, const void* packed_args);

} // namespace hf::redo
