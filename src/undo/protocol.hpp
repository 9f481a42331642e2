// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sections of engine undo: every byte that one overwrites is logged first, and recovery puts them
// back.
//
// In a medium that keeps order: section/word_protocol.hpp, and
// (1) it can be taken back while it runs: the log says how.
//
// In a batched medium: batches.hpp.
//
// In any other:
// (2) A word's old bytes are in the log, durably, before it is stored to: the compiler calls
//     hf_undo_log.
// (3) The mark is stored when the section's stores are durable, and is durable before it returns.
//     Or
// (4) the section leaves its stores to the first fence of its thread's next section
//     (options::durable), while marks may be left out (section/commit_marks.hpp, 2 and 3). Without
//     that fence it is rolled back, behind the next one, and a power failure has taken what had
//     returned. Whether the fence was passed the stores themselves say: their sum is in the next
//     section's begin record (log/lane.hpp, 7). So of two sections that may be rolled back neither
//     is another thread's.
// (5) A section that leaves its stores has logged all that it has stored to, in the lane alone, and
//     what it took is small: the sum of that costs less than the fence. It has used nothing that
//     was made before it.
#pragma once

#include <section/section_in.hpp>
#include <section/word_protocol.hpp>
#include <undo/batches.hpp>
#include <undo/engine.hpp>

namespace hf::undo {

/// Every byte is logged in plain words.
template <> class undo_protocol<ordered_medium> final : public word_protocol {
public:
    static constexpr const engine_row& row = engine_rows::undo;
    explicit undo_protocol(section_in<ordered_medium>& in) noexcept : word_protocol(in, row) {}

    void commit();
    void doom() override {
        doomed_ = true;
        next_section_here.offered = next_section::none;
    }
    bool knows_stores() const noexcept override { return !in_.watched(); }
    bool knows_store(std::uint64_t offset) const noexcept override;

private:
    void take_back();

    bool doomed_ = false; // at its end it is taken back (1)
};

/// Each mark is stored here, too, unless (4) saves its fences.
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
    bool may_leave_ = false; // its stores, if it stays small (5)
    left_payload left_{};    // of the section before, if its stores are left (4)
};

} // namespace hf::undo
