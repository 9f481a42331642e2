// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The allocator's public face outside txfuncs: staging.
#include <base/assert.hpp>
#include <base/names.hpp>
#include <open/pool_impl.hpp>
#include <open/registry.hpp>
#include <pool/file_checks.hpp>
#include <section/thread.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/author/staged.hpp>

#include <algorithm>
#include <cstring>
#include <new>
#include <string>

namespace hf {

namespace {
constexpr std::size_t staged_max = 16;

/// Null when the pool is full. Requires: fewer than staged_max blocks staged.
void* stage_in(pool::impl& pool, attachment& mine, std::size_t bytes) {
    HF_ASSERT(mine.work.prepared().staged().size() < staged_max);
    mine.work.prepared().staged().reserve(
        staged_max); // what can fail comes before the block is taken
    const block b = pool.blocks.reserve(mine.cache, bytes);
    if (b.offset == 0) return nullptr;
    mine.work.add_staged(b);
    return pool.at(b.offset);
}

pool::impl& pool_around(const void* address, const char* call) noexcept {
    pool::impl* pool = registry::pool_of(address);
    if (pool == nullptr) registry::refuse_parents(address, call);
    if (pool == nullptr)
        fatal("%s(%p): expected an address in an open pool, found one in no pool: pass a pointer "
              "into the pool",
              call, address);
    return *pool;
}

/// Ends the process in a section: what 'call' does takes effect at once, and the section's log
/// knows nothing of it.
void refuse_in_section(const char* call) noexcept {
    const char *function = nullptr, *where = nullptr;
    if (const section* open = current_section) {
        function = open->function()->name;
        where = open->function()->where;
    } else if (const auto asks = resumes_here.load(std::memory_order_relaxed); asks != nullptr) {
        function = asks().function;
        where = "which would be resumed";
    }
    if (function != nullptr)
        fatal(
            "%s: expected no open section, found %s (%s), whose log would not have the call: call "
            "it before the section, or behind it",
            call, readable_name(function), where);
}

/// The caller is about to store to these bytes outside of sections: no log, of any lane, needs them
/// when this returns.
/// Requires: the medium does not keep order; where it does no mark is ever due.
section& settled_for_store(pool::impl& pool, const void* to, std::size_t bytes) {
    section& work = attach(pool).work;
    const auto first = reinterpret_cast<std::uintptr_t>(to);
    if (!work.staged_since(pool.offset_of(to), bytes))
        pool.lanes.settle_before_store(first, first + bytes); // upholds section.hpp (3)
    return work;
}

} // namespace

void section::adopt(void* staged_block) {
    HF_ASSERT_SLOW(running());
    const std::uint64_t offset = checked_offset(staged_block, 0);
    const auto found = prepared_.find(offset);
    if (found == prepared_.staged().end())
        fatal("%s (%s) adopts %p: expected a block that this thread has staged, found another, or "
              "one adopted before: stage it with hf::staged::in, and adopt it once",
              readable_name(function_->name), function_->where, staged_block);
    blocks_.adopt(*found);
    prepared_.staged().erase(found);
}

result<staged> staged::in(pool& where, std::size_t bytes) try {
    refuse_in_section("hf::staged::in");
    pool::impl& pool = where.internals();
    if (status here = pool.usable(); !here.ok()) return here;
    if (pool.file->read_only())
        return status{errc::permission, where.path() + ": permission: the pool is open read-only"};
    attachment& mine = attach(pool);
    if (mine.work.prepared().staged().size() == staged_max)
        return status{errc::limit_reached,
                      where.path() + ": limit_reached: expected at most 16 staged blocks of a "
                                     "thread, found one more: adopt one, or give one back"};
    if (void* block = stage_in(pool, mine, bytes)) return staged(block);
    return pool.blocks.full(std::to_string(bytes) + " bytes");
} catch (const std::bad_alloc&) {
    return out_of_memory(where.path());
}

staged staged::near(const void* in_pool, std::size_t bytes) noexcept try {
    refuse_in_section("hf::staged::near");
    pool::impl& pool = pool_around(in_pool, "hf::staged::near");
    if (pool.file->read_only()) return {};
    attachment& mine = attach(pool);
    if (mine.work.prepared().staged().size() == staged_max) return {};
    return staged(stage_in(pool, mine, bytes));
} catch (const std::bad_alloc&) {
    return {};
}

void staged::give_back(void* staged_block) noexcept {
    if (registry::is_parents(staged_block)) return; // the parent's, which gives it back
    refuse_in_section("hf::staged::reset");
    pool::impl& pool = pool_around(staged_block, "hf::staged::reset");
    attachment& mine = attach(pool);
    prepared_memory& prepared = mine.work.prepared();
    const std::uint64_t offset = pool.offset_of(staged_block);
    const auto found = prepared.find(offset);
    if (found == prepared.staged().end())
        fatal("%s: hf::staged gives back %p: expected a block that this thread has staged, found "
              "another, or one adopted: call release() when a section has adopted it",
              pool.file->path().c_str(), staged_block);
    HF_ASSERT_SLOW(!pool.blocks.durable().bit(offset)); // staged is reserved, not allocated
    // A section still pending in the lane may name the block as staged; it must not be handed out
    // before that section's mark is durable.
    mine.work.settle_mark();
    prepared.forget_filled(*found);
    pool.blocks.release(mine.cache, *found);
    prepared.staged().erase(found);
}

void staged::copy(pool& where, void* to, const void* from, std::size_t bytes) noexcept {
    refuse_in_section("hf::staged::copy");
    const hf::medium pm = where.internals().file->medium();
    if (where.relocated()) hf_relocated_raw_store(to, from, bytes, "hf::staged::copy");
    HF_ASSERT_SLOW(where.contains(to));
    if (!pm.keeps_order())
        without_exceptions("staged::copy",
                           [&] { settled_for_store(where.internals(), to, bytes); });
    auto* out = static_cast<std::byte*>(to);
    const auto* source = static_cast<const std::byte*>(from);
    // Whole lines go past the caches; what stands before and behind them shares its lines.
    const std::size_t before = std::min(
        bytes, static_cast<std::size_t>(-reinterpret_cast<std::uintptr_t>(to)) % line_bytes);
    const std::size_t lines = round_down(bytes - before, line_bytes);
    std::memcpy(out, source, before);
    if (lines > 0) pm.copy(out + before, source + before, lines);
    std::memcpy(out + before + lines, source + before + lines, bytes - before - lines);
    pm.flush(out, before);
    pm.flush(out + before + lines, bytes - before - lines);
}

void staged::persist(pool& where, const void* bytes, std::size_t count) noexcept {
    const hf::medium pm = where.internals().file->medium();
    if (!pm.keeps_order()) pm.persist(bytes, count);
}

void staged::copy_words(void* to, const void* from, std::size_t bytes) noexcept {
    refuse_in_section("hf::staged::copy_words");
    pool::impl& pool = pool_around(to, "hf::staged::copy_words");
    HF_ASSERT(reinterpret_cast<std::uintptr_t>(to) % word_bytes == 0);
    HF_ASSERT(bytes % word_bytes == 0);
    const hf::medium pm = pool.file->medium();
    if (pool.file->relocated()) hf_relocated_raw_store(to, from, bytes, "hf::staged::copy_words");
    without_exceptions("staged::copy_words", [&] {
        section* const work = pm.keeps_order() ? nullptr : &settled_for_store(pool, to, bytes);
        pm.copy(to, from, bytes);
        persist::thread_counters().pm_bytes += bytes;
        // Elsewhere stores reach PM in the order in which they were made.
        if (pm.loses_caches())
            work->prepared().note_filled(pm, pool.offset_of(to), bytes, XXH3_64bits(from, bytes));
    });
}

void staged::note_written(const void* at, std::size_t bytes) noexcept {
    refuse_in_section("hf::staged::note_written");
    pool::impl& pool = pool_around(at, "hf::staged::note_written");
    const hf::medium pm = pool.file->medium();
    without_exceptions("staged::note_written", [&] {
        section& work = attach(pool).work;
        // They were stored before this could settle anything.
        if (!work.staged_since(pool.offset_of(at), bytes))
            fatal("%s: hf::staged::note_written(%p): expected bytes of a block that this thread "
                  "has staged since its last section, found bytes that an earlier section's log "
                  "may name: store them with hf::staged::copy_words, or stage another block",
                  pool.file->path().c_str(), at);
        if (!pm.loses_caches()) return;
        pm.flush(at, bytes);
        work.prepared().note_filled(pm, pool.offset_of(at), bytes, XXH3_64bits(at, bytes));
    });
}

void settle(pool& in) noexcept {
    refuse_in_section("hf::settle");
    pool::impl& pool = in.internals();
    if (pool.file->is_parents()) registry::refuse_parents(nullptr, "hf::settle");
    pool.settle();
}

void return_spare_blocks(pool& in) noexcept try {
    refuse_in_section("hf::return_spare_blocks");
    pool::impl& pool = in.internals();
    attachment& mine = attach(pool);
    mine.work.settle_mark(); // blocks freed by the last section are at hand only then
    pool.blocks.release_all(mine.cache);
} catch (const std::bad_alloc&) { // not even attached to the pool: nothing is at hand
}

} // namespace hf
