// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a failure may leave of memory: the persistent half of the model (persistent x86-TSO, Px86;
// docs/internals/persistency-model.md). Stores arrive here when they leave the store buffer.
//
// (1) A cache line persists a prefix of its own stores, 8 bytes at a time, and lines do so
//     independently: a line that has unsettled stores is a list of versions, oldest first.
// (2) A flush covers the line's versions of the moment and completes with the next fence of the
//     thread that issued it; then no older version can be left. clflush completes at once.
// (3) A non-temporal store is ordered with stores to its own word only, until its thread fences.
// (4) In the domains process and eADR what has reached memory has persisted, except that under eADR
//     non-temporal stores still wait for their fence.
#pragma once

#include <base/line.hpp>

#include <holdfast/author/persist.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hf::check {

using line_content = std::array<std::uint64_t, line_bytes / word_bytes>;

class persistent_memory {
public:
    /// Requires: 'durable' is a whole number of lines.
    persistent_memory(domain d, std::span<const std::byte> durable);

    /// Adds a line behind the others.
    void extend(const line_content& durable);

    /// Bytes reached memory. More than a word of one line: the words come in any order, and of the
    /// orders both the ascending and the descending one are followed.
    void store(std::size_t offset, const void* bytes, std::size_t count);
    /// Requires: whole words.
    void nt_store(unsigned thread, std::size_t offset, const void* bytes, std::size_t count);
    /// clwb, clflushopt.
    void flush(unsigned thread, std::size_t line);
    /// clflush.
    void flush_now(std::size_t line);
    /// sfence, mfence, or a locked operation.
    void fence(unsigned thread);
    /// Every thread's process was killed: each ends in the kernel, whose locked operations complete
    /// what the thread had flushed, and no more than that.
    void kill();

    /// Every content that the line may have after a failure now; no two are equal, the newest
    /// (what running code sees) is the last.
    std::vector<line_content> possible(std::size_t line) const;
    /// The content that running code sees.
    line_content newest(std::size_t line) const;
    /// Lines with more than one possible content (and perhaps some with one), in no order.
    const std::vector<std::size_t>& open_lines() const noexcept { return open_lines_; }
    std::size_t lines() const noexcept { return settled_.size(); }

    /// The line has this content, durably.
    void settle(std::size_t line, const line_content& content);

    /// possible() left combinations out: more unordered words were under way than it enumerates.
    bool reduced() const noexcept { return reduced_; }

private:
    struct nt_word {
        unsigned thread;
        unsigned word; // of the line
        std::uint64_t value;
        std::uint64_t after;      // version made by the latest earlier store to the same word
        std::uint64_t superseded; // version made by the next later one
    };
    struct torn_version {            // part of the words of a store that wrote several
        std::uint64_t number, whole; // its own, and that of the version with all the words
        unsigned present;            // words that it has
    };
    struct open_line {
        std::vector<line_content> versions; // (1), without the unsettled non-temporal stores
        std::uint64_t first = 0;            // number of versions[0]; versions are numbered for good
        std::vector<nt_word> nt;            // (3), in order
        std::vector<torn_version> torn;
        std::array<std::uint64_t, line_bytes / word_bytes> stored{}; // by word: its latest version
    };
    struct pending_flush {
        std::size_t line;
        std::uint64_t covered; // number of the version that is durable when it completes
    };

    open_line* find(std::size_t line) noexcept;
    const open_line* find(std::size_t line) const noexcept;
    open_line& opened(std::size_t line);
    void store_words(std::size_t line, const line_content& wanted, unsigned changed);
    void add_torn(open_line& of, const line_content& wanted, unsigned changed);
    void add_version(open_line& of, const line_content& content, unsigned changed);
    unsigned note_unchanged(open_line& of, std::size_t from_word, std::size_t to_word,
                            unsigned changed);
    void settle_nt(open_line& of, unsigned thread);
    void drop_before(open_line& of, std::uint64_t version);
    void drop_without(open_line& of, std::uint64_t version, unsigned word);
    static bool has(const open_line& of, std::uint64_t number, std::uint64_t version,
                    unsigned word);
    static bool goes_with(const open_line& of, const nt_word& n, std::uint64_t number);
    void close_if_settled(std::size_t line);
    void close(std::size_t line);
    void combine_nt(const open_line& of, std::size_t version, std::vector<line_content>& out) const;
    static line_content newest_of(const open_line& of);

    domain domain_;
    std::vector<line_content> settled_; // of the lines that are not open
    std::vector<std::uint32_t> slot_;   // line -> its index in open_, plus 1; 0: not open
    std::vector<open_line> open_;       // parallel to open_lines_
    std::vector<std::size_t> open_lines_;
    std::vector<std::vector<pending_flush>> flushes_; // by thread
    mutable bool reduced_ = false;
};

} // namespace hf::check
