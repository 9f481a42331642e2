// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Opening a pool: check, read the lanes, ask the engines, mark open, put blocks back, recover.
//
// (1) Until every check has passed nothing is written: a refusal leaves the file as it was.
// (2) Before any section is recovered, the blocks that pending logs name are put back as they were
//     before those sections, and kept out of circulation: a section being re-executed can neither
//     be given a block that another one's log holds, nor lose one that it has yet to read.
// (3) Everything here is idempotent: a crash while recovering is cured by opening again.
#include <base/assert.hpp>
#include <section/pool_impl.hpp>
#include <section/registry.hpp>
#include <section/section.hpp>
#include <section/thread.hpp>

#include <holdfast/pool.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

namespace hf {
namespace {

// An open starts its lanes' epochs this far above what it finds. More sections than that cannot
// have been begun without one of their marks becoming durable.
constexpr std::uint64_t epoch_gap = std::uint64_t{1} << 32;

const engine* engine_for(const pool::impl& pool, const pending_section& section) {
    for (const engine* e : pool.engines)
        if (e->bit() == section.begin.engine) return e;
    return nullptr;
}

/// Reads every lane; fills 'pending' and the lanes' epochs.
void read_lanes(pool::impl& pool, std::vector<pending_section>& pending) {
    for (std::uint32_t l = 0; l < pool.lanes.size(); ++l) {
        pending_section found;
        std::uint64_t newest = 0;
        if (read_lane(*pool.file, pool.blocks.durable(), l, found, newest))
            pending.push_back(std::move(found));
        pool.lanes[l].epoch = newest + epoch_gap;
    }
}

/// Bounds everything a pending log says before anything is done with it.
status check_records(const pool::impl& pool, const pending_section& section) {
    const auto corrupt = [&](const record_view& r) {
        return status{
            errc::corrupt,
            fmt::format(
                "{}: corrupt: log of lane {}: record of kind {} names offset {:#x}, {} bytes",
                pool.file->path(), section.lane, static_cast<int>(r.kind), r.offset, r.bytes)};
    };
    const heap& blocks = pool.blocks.durable();
    for (const record_view& r : section.records) {
        if (r.kind == record_kind::old_bytes) {
            // A section stores to blocks only: never to headers, lanes or the allocator's tables.
            const unsigned e = blocks.extent_of(r.offset);
            if (e == blocks.extent_count()) return corrupt(r);
            const heap_extent& extent = blocks.extent_at(e);
            if (r.bytes > extent.data_offset + extent.chunks * blocks.chunk_bytes() - r.offset)
                return corrupt(r);
        }
        const bool names_block = r.kind == record_kind::alloc || r.kind == record_kind::free ||
                                 r.kind == record_kind::staged || r.kind == record_kind::segment;
        const bool no_room = r.kind == record_kind::alloc && r.offset == 0;
        if (names_block && !no_room && !blocks.well_formed({r.offset, r.bytes})) return corrupt(r);
    }
    return {};
}

status check_pending(const pool::impl& pool, const std::vector<pending_section>& pending) {
    for (const pending_section& section : pending) {
        const engine* e = engine_for(pool, section);
        if (e == nullptr)
            return {errc::missing_engine,
                    fmt::format("{}: missing_engine: lane {} holds a pending section of engine {}",
                                pool.file->path(), section.lane, section.begin.engine)};
        if (status s = check_records(pool, section); !s.ok()) return s;
        if (status s = e->check(*pool.file, section); !s.ok()) return s;
    }
    return {};
}

/// Upholds (2).
status put_blocks_back(pool::impl& pool, const std::vector<pending_section>& pending) {
    const hf::domain d = pool.file->domain();
    heap& blocks = pool.blocks.durable();
    const auto dirty = [&](const void* word) { persist::flush(d, word, word_bytes); };
    // What sections took becomes free, what they freed becomes allocated; then both are claimed.
    for (const pending_section& section : pending)
        for (const record_view& r : section.records) {
            const bool taken = r.kind == record_kind::alloc || r.kind == record_kind::staged;
            if (taken && r.offset != 0) blocks.retract({r.offset, r.bytes}, dirty);
        }
    for (const pending_section& section : pending)
        for (const record_view& r : section.records)
            if (r.kind == record_kind::free) blocks.publish({r.offset, r.bytes}, dirty);
    for (const pending_section& section : pending)
        for (const record_view& r : section.records) {
            const bool named = r.kind == record_kind::alloc || r.kind == record_kind::staged ||
                               r.kind == record_kind::segment;
            if (named && r.offset != 0 && !pool.blocks.claim({r.offset, r.bytes}))
                return {errc::corrupt,
                        fmt::format("{}: corrupt: lane {} names a block at {:#x} of {} bytes that "
                                    "lies in a chunk of other blocks",
                                    pool.file->path(), section.lane, r.offset, r.bytes)};
        }
    persist::fence(d);
    return {};
}

void recover_all(pool::impl& pool, std::vector<pending_section>& pending) {
    std::vector<recovery_report> counts(pending.size());
    std::vector<std::thread> threads;
    const auto recover_one = [&](std::size_t i) {
        engine_for(pool, pending[i])->recover(pool, pending[i], counts[i]);
    };
    // Locks kept the pending sections apart, so they are recovered independently (Clobber §4.3).
    for (std::size_t i = 1; i < pending.size(); ++i) threads.emplace_back(recover_one, i);
    if (!pending.empty()) recover_one(0);
    for (auto& t : threads) t.join();
    pool.report.sections_pending = static_cast<std::uint32_t>(pending.size());
    for (const recovery_report& c : counts) {
        pool.report.re_executed += c.re_executed;
        pool.report.rolled_back += c.rolled_back;
        pool.report.discarded += c.discarded;
    }
}

/// The root's block is allocated whenever the root words name it: they are written first.
status settle_root(pool::impl& pool) {
    const root_words* words = pool.file->roots();
    if (words->root_offset == 0) return {};
    heap& blocks = pool.blocks.durable();
    const block b{words->root_offset, blocks.rounded(words->root_bytes)};
    if (!blocks.well_formed(b))
        return {errc::corrupt,
                fmt::format(
                    "{}: corrupt: root object at offset {:#x}, {} bytes, is no block of the heap",
                    pool.file->path(), words->root_offset, words->root_bytes)};
    if (blocks.allocated_at(b.offset).bytes == b.bytes) return {};
    if (!pool.blocks.claim(b))
        return {
            errc::corrupt,
            fmt::format("{}: corrupt: root object at offset {:#x} lies in a chunk of other blocks",
                        pool.file->path(), words->root_offset)};
    const hf::domain d = pool.file->domain();
    blocks.publish(b, [&](const void* word) { persist::flush(d, word, word_bytes); });
    persist::fence(d);
    return {};
}

} // namespace

result<pool> pool::open(const std::string& path, const open_options& options) {
    const auto start = std::chrono::steady_clock::now();
    std::uint32_t engine_bits = 0;
    for (const engine* e : options.engines) engine_bits |= e->bit();
    auto file = pool_file::open(path, options, engine_bits);
    if (!file) return file.error();
    auto opened = std::make_unique<impl>(std::move(*file), options);
    opened->engine_bits = engine_bits;
    static std::atomic<std::uint64_t> instances{0};
    opened->instance = ++instances;

    std::vector<pending_section> pending;
    read_lanes(*opened, pending);
    if (status s = check_pending(*opened, pending); !s.ok()) {
        pool_file::abandon(std::move(opened->file));
        return s;
    }
    status s = opened->file->mark_open();
    if (s.ok()) s = put_blocks_back(*opened, pending);
    if (s.ok()) s = settle_root(*opened);
    if (!s.ok()) {
        pool_file::abandon(std::move(opened->file)); // still marked open: nothing was settled
        return s;
    }
    registry::add(opened.get());
    recover_all(*opened, pending);
    opened->report.open_ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    return pool(std::move(opened));
}

pool::pool(std::unique_ptr<impl> opened) noexcept : impl_(std::move(opened)) {}
pool::pool(pool&&) noexcept = default;

pool& pool::operator=(pool&& other) noexcept {
    if (this != &other) {
        pool closing(std::move(*this));
        impl_ = std::move(other.impl_);
    }
    return *this;
}

pool::~pool() {
    if (impl_ == nullptr) return;
    registry::remove(impl_.get());
    // Marks that threads left out become durable before the header says that nothing is pending.
    for (std::uint32_t l = 0; l < impl_->lanes.size(); ++l) impl_->store_due_mark(l);
    persist::fence(impl_->file->domain());
}

hf::mode pool::mode() const noexcept { return impl_->file->mode(); }
hf::domain pool::domain() const noexcept { return impl_->file->domain(); }
bool pool::emulated() const noexcept { return impl_->file->emulated(); }
const std::string& pool::path() const noexcept { return impl_->file->path(); }
std::uint64_t pool::size_bytes() const noexcept { return impl_->file->size_bytes(); }
std::uint64_t pool::max_bytes() const noexcept { return impl_->file->shape().max_bytes; }
std::uint64_t pool::generation() const noexcept { return impl_->file->generation(); }
const recovery_report& pool::recovered() const noexcept { return impl_->report; }
const std::vector<std::string>& pool::warnings() const noexcept { return impl_->file->warnings(); }
bool pool::contains(const void* address) const noexcept { return impl_->contains(address); }

void* pool::root_bytes(std::size_t bytes) noexcept {
    impl& pool = *impl_;
    std::scoped_lock held{pool.root_lock};
    root_words* words = pool.file->roots();
    const hf::domain d = pool.file->domain();
    if (words->root_offset != 0) {
        if (words->root_bytes != bytes)
            fatal("%s: the root object has %llu bytes, this program asks for %zu",
                  pool.file->path().c_str(), static_cast<unsigned long long>(words->root_bytes),
                  bytes);
        return pool.at(words->root_offset);
    }
    const block b = pool.blocks.reserve(attach(pool).cache, bytes);
    if (b.offset == 0) return nullptr;
    std::memset(pool.at(b.offset), 0, b.bytes);
    persist::flush(d, pool.at(b.offset), b.bytes);
    persist::store_word(d, &words->root_bytes, bytes);
    persist::fence(d); // the root reads as zeros before anything names it
    persist::store_word(d, &words->root_offset, b.offset);
    persist::fence(d); // named before it is allocated: settle_root cures a crash in between
    pool.blocks.durable().publish(b,
                                  [&](const void* word) { persist::flush(d, word, word_bytes); });
    persist::fence(d);
    return pool.at(b.offset);
}

} // namespace hf
