// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sections of engine redo: a section's stores wait for its commit, which writes the log first
// (protocol.hpp).
//
// (1) A section stores in place only to its own memory until its log is durable and whole. The
//     commit writes that log, with its begin record: a section that ends without a commit leaves no
//     trace.
// (2) Until its log is whole a section can end as if it had never begun: by hf::abort_section, by
//     an exception that leaves it, or when the log finds no room. Its blocks go back then, and
//     nothing else needs putting right.
#pragma once

#include <redo/store_filter.hpp>
#include <redo/write_buffer.hpp>
#include <section/section.hpp>

#include <holdfast/abi/holdfast_abi.h>

#include <vector>

namespace hf::redo {

/// What a thread's section in a pool has stored.
class deferred_section : public protocol {
public:
    static constexpr const engine_row& row = engine_rows::redo;
    explicit deferred_section(section& in) noexcept
        : protocol(in, row), base_(in.base()), max_bytes_(in.pool().file->shape().max_bytes) {}

    bool is_empty() const noexcept { return buffer_.empty() && straddling_.to == nullptr; }
    void* write(std::byte* address, std::uint64_t bytes);
    template <class Source> void put(std::byte* to, std::uint64_t bytes, Source&& source);
    const std::byte* read(const std::byte* address, std::uint64_t bytes);
    const std::byte* read_string(const std::byte* address);
    /// The byte that a read would find. It changes nothing: debuggers ask between instructions.
    std::byte seen(const std::byte* address) noexcept;
    /// Why a section that goes on will end by abort(). A request hides that there was no room: its
    /// author wants no error of a section that was not to happen.
    enum class doomed_by : std::uint8_t { nothing, request, no_room };

    void log_ahead(const void*, std::uint64_t) override {} // it logs nothing before its commit
    void overwrite(const void* address, std::uint64_t bytes) override;
    void* alloc(std::uint64_t bytes) override;
    void free(block) override {} // its log says so at the commit
    void doom() override { doom(doomed_by::request); }
    void no_room_for_log() override { doom(doomed_by::no_room); }
    // Until its commit the section's code stores to none but its own memory (1).
    bool knows_stores() const noexcept override { return true; }
    bool knows_store(std::uint64_t) const noexcept override { return false; }

protected:
    void doom(doomed_by why) noexcept {
        if (doomed_ != doomed_by::request) doomed_ = why;
    }
    /// Drops what waits: nothing else of it is anywhere.
    void forget() noexcept;
    void settle();

    std::byte* const base_; // of the pool
    write_buffer buffer_;
    store_filter filter_;   // of the buffer's bytes, and of those that were stored across granules
    bool refilled_ = false; // a store leads to bytes that have a sum
    doomed_by doomed_ = doomed_by::nothing;

private:
    /// Offset from pool start of a store that has to wait. 'outside': it leads to volatile memory,
    /// or to memory of the section's own, and is made at once; the latter is noted.
    std::uint64_t defer(const void* address, std::uint64_t bytes);
    std::uint64_t offset_of(const void* address) const noexcept {
        return static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - base_);
    }
    bool in_pool(std::uint64_t offset) const noexcept { return offset < max_bytes_; }
    void* write_across(std::byte* address, std::uint64_t bytes);
    buffered_line line_of(std::uint64_t offset);
    void begin_granule(const buffered_line::head& line, std::uint64_t granule);
    void check_in_blocks(std::uint64_t offset, std::uint64_t bytes) const noexcept;
    [[noreturn]] void refuse(std::uint64_t offset) const noexcept;
    bool waits_in(std::uint64_t offset, std::uint64_t bytes) noexcept;
    void merge(std::byte* into, std::uint64_t offset, std::uint64_t bytes) noexcept;
    std::vector<std::byte>& next_copy(std::uint64_t bytes);

    const std::uint64_t max_bytes_;
    // A store across granules that hf_redo_write was asked for: the next call finds its bytes here.
    struct {
        std::byte* to = nullptr;
        std::uint64_t bytes;
        alignas(granule_bytes) std::byte stored[granule_bytes];
    } straddling_;
    std::vector<std::byte> copies_[HF_REDO_READS + 1];
    unsigned copies_made_ = 0;
};

} // namespace hf::redo
