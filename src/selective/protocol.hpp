// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sections of engine selective: as engine undo's, except for stores that the program marks: they
// need no log, or need not be durable at the commit either. Source: SLPMT (section II) without its
// hardware; docs/guide/selective-logging.md.
//
// Where order is kept (section/word_protocol.hpp) no such store is logged, and the rest is the
// same. A section cannot be taken back. In any other medium:
//
// (1) A store that needs no log waits for no record, with one exception: a begin record that
//     replaces the mark of the section before (section/commit_marks.hpp, 2). Until that record is
//     durable, that section may be run again, and read what is stored.
// (2) A lazy line is written back with a later commit's, once more than lazy_lines_max of them
//     wait, and at the latest by the clean close. Until then the header says so
//     (engine_marks::rebuild). Two kinds are durable with their section: bytes that have a
//     checksum, and bytes that another engine's section may read when recovery runs it again,
//     before the rebuild.
#pragma once

#include <section/section_in.hpp>
#include <section/word_protocol.hpp>

#include <selective/engine.hpp>

namespace hf::selective {

inline constexpr std::size_t lazy_lines_max = 64; // of a lane, behind a commit

template <class Medium> class selective_protocol;

/// In a medium that keeps order stores survive: a lazy store is a log-free one.
template <> class selective_protocol<ordered_medium> final : public word_protocol {
public:
    static constexpr const engine_row& row = engine_rows::selective;
    explicit selective_protocol(section_in<ordered_medium>& in) noexcept
        : word_protocol(in, row), lazily_(options_of(in.pool()).rebuild != nullptr) {}

    /// Stores come that need no log; lazy ones need not be durable at the commit either.
    void note_log_free(const void* address, std::uint64_t bytes);
    void note_lazy(const void* address, std::uint64_t bytes);

private:
    bool lazily_; // as below
};

template <> class selective_protocol<fenced_medium> final : public protocol_in<fenced_medium> {
public:
    static constexpr const engine_row& row = engine_rows::selective;
    explicit selective_protocol(section_in<fenced_medium>& in) noexcept
        : protocol_in(in, row), lazily_(options_of(in.pool()).rebuild != nullptr) {}

    void begin(const hf_txfunc& function, const void* /*args*/) {
        in_.begin(*this, function);
        in_.start_log({});
    }
    void commit();
    /// The same (1) (2).
    void note_log_free(const void* address, std::uint64_t bytes);
    void note_lazy(const void* address, std::uint64_t bytes);

private:
    bool may_store_unlogged(std::uint64_t offset, std::uint64_t bytes);

    bool lazily_; // options::rebuild computes lazy stores again
};

} // namespace hf::selective
