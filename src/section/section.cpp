// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <base/line.hpp>
#include <base/names.hpp>
#include <base/words.hpp>
#include <open/mark_guard.hpp>
#include <open/registry.hpp>
#include <section/section.hpp>
#include <section/thread.hpp>
#include <trace/trace.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace hf {

section::section(pool::impl& pool, std::uint32_t lane, thread_cache& cache, std::mutex* turns)
    : pool_(&pool), cache_(&cache), turns_(turns), marks_(pool, lane, cache),
      medium_(pool.file->medium()), base_(pool.file->base()),
      range_bytes_(pool.file->shape().max_bytes) {
    HF_ASSERT_SLOW(turns != nullptr || idle());
}

section::~section() = default;

void shift_pointers(const hf_txfunc& function, std::byte* args, std::uint64_t by) noexcept {
    for (std::uint64_t i = 0; i < function.args_count; ++i) {
        const hf_arg& a = function.args[i];
        if (a.kind != HF_ARG_POOL_POINTER || a.offset_bytes + word_bytes > function.args_bytes)
            continue;
        std::uint64_t pointer = 0;
        std::memcpy(&pointer, args + a.offset_bytes, sizeof pointer);
        if (pointer == 0) continue;
        pointer += by;
        std::memcpy(args + a.offset_bytes, &pointer, sizeof pointer);
    }
}

namespace {

/// Whether what the caller must not do is looked for though it costs: in debug builds, and under
/// the crash checker.
bool looks_closely() noexcept {
#if defined(NDEBUG)
    return trace::heard();
#else
    return true;
#endif
}

} // namespace

bool section::stores_untold(const void* address) const noexcept {
    const std::uint64_t offset = pool_->offset_of(address);
    const auto in = [offset](const auto& blocks) {
        return std::ranges::any_of(blocks,
                                   [&](const block& b) { return offset - b.offset < b.bytes; });
    };
    return !pool_->blocks.durable().covers(offset, 1) || fresh(offset) || in(blocks_.segments()) ||
           in(blocks_.adopted()) || in(prepared_.staged());
}

/// Where a store of code outside of the library comes from, on this thread.
static mark_guard::store_of whose_store(const void* address) noexcept {
    using mark_guard::store_of;
    const auto asks = resumes_here.load(std::memory_order_relaxed);
    if (const section* const open = current_section; open != nullptr) {
        if (!open->by().knows_stores() || !open->pool().contains(address)) return store_of::section;
        return open->stores_untold(address) ||
                       open->by().knows_store(open->pool().offset_of(address))
                   ? store_of::section_as_told
                   : store_of::section_untold;
    }
    // Such a function saves its frame before its section begins.
    if (asks != nullptr && asks().engine != nullptr) return store_of::section;
    const attachment* const last = last_attachment;
    if (last == nullptr || !last->pool->contains(address)) return store_of::nobody;
    const std::uint64_t offset = last->pool->offset_of(address);
    return std::ranges::any_of(last->work.prepared().staged(),
                               [&](const staged_block& s) { return offset - s.offset < s.bytes; })
               ? store_of::section
               : store_of::nobody;
}
[[maybe_unused]] static const int asked = (mark_guard::ask(whose_store), 0);

void section::start(protocol& by, const hf_txfunc& function) {
    const bool closely = looks_closely();
    if (closely) [[unlikely]]
        check_left();
    if (!prepared_.filled().empty()) prepared_.forget_durable();
    if (closely) [[unlikely]]
        prepared_.check(*pool_->file);
    next_section_here = {};
    if (mark_guard::is_on() && !by.knows_stores()) [[unlikely]]
        mark_guard::open(*pool_);
    copies_.forget();
    left_.start(closely);
    function_ = &function;
    protocol_ = &by;
    stored_ = false;
    current_section = this; // without memory for what comes before no section begins
    epoch_ = ++marks_.state().epoch;
    HF_ASSERT_SLOW(running());
}

void section::check_place(const hf_txfunc& function) const {
    if (!pool_->file->relocated() || (function.abi_version & HF_ABI_RELOCATABLE) != 0) return;
    fatal("%s: %s (%s) is not built relocatable, and the pool is not at its canonical address: "
          "build it with holdfast_relocatable(target)",
          pool_->file->path().c_str(), readable_name(function.name), function.where);
}

void section::no_room_for_log(const char* then) const {
    const status full = pool_->blocks.full(
        fmt::format("the log of {} ({})", readable_name(function_->name), function_->where));
    fault_guard::fatal_means(full.code());
    fatal("%s; %s", full.what().c_str(), then);
}

void section::settle_mark() {
    if (marks_.settle()) unfenced_ = false;
}

/// The rest of checked_offset: what is not the pool's, and everything that is watched.
std::uint64_t section::far_offset(const void* address, std::uint64_t offset,
                                  std::uint64_t bytes) const {
    if (watched()) protocol_->entered();
    if (offset >= pool_->file->shape().max_bytes) {
        if (registry::pool_of(address) != nullptr)
            fatal("%s (%s) stores %llu bytes to another pool: a section works on one pool; use a "
                  "section for each",
                  readable_name(function_->name), function_->where,
                  static_cast<unsigned long long>(bytes));
        return outside;
    }
    // A damaged pointer must not lead to headers, lanes or the allocator's tables.
    if (!pool_->blocks.durable().covers(offset, bytes))
        fatal("%s (%s) stores %llu bytes at offset %#llx, where no block is: the pointer leads "
              "into freed memory or past a block, or the pool is damaged (`holdfast verify`)",
              readable_name(function_->name), function_->where,
              static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(offset));
    if (watched() && bytes > 0) protocol_->stores(offset, bytes, fresh(offset));
    return offset;
}

void section::check_end(std::uint64_t offset, std::uint64_t bytes) const {
    if (bytes <= pool_->file->shape().max_bytes - offset) return;
    fatal("%s (%s) stores %llu bytes across the end of the pool: an index or a length is wrong",
          readable_name(function_->name), function_->where, static_cast<unsigned long long>(bytes));
}

bool section::already_logged(std::uint64_t offset, std::uint64_t bytes) {
    if (watched() && protocol_->logged(offset, bytes)) return true;
    return logged_.seen_or_add(epoch_, offset, bytes);
}

/// As many bytes as a re-execution will ask for. A section that uses the null gets a message.
block section::no_room(std::uint64_t bytes) const noexcept {
    fault_guard::note_no_block({.bytes = bytes,
                                .path = pool_->file->path().c_str(),
                                .function = function_->name,
                                .where = function_->where,
                                .still =
                                    [](const fault_guard::no_block& of) noexcept {
                                        return current_section == of.section &&
                                               current_section->epoch_ == of.epoch;
                                    },
                                .section = this,
                                .epoch = epoch_});
    return {0, rounded(bytes)};
}
std::uint64_t section::rounded(std::uint64_t bytes) const noexcept {
    return pool_->blocks.durable().rounded(std::max<std::uint64_t>(bytes, 1));
}

void section::free(void* given) {
    HF_ASSERT_SLOW(running());
    const std::uint64_t offset = checked_offset(given, 0); // no block starts outside
    if (blocks_.free_own(offset)) return;
    const block b = pool_->blocks.find(offset);
    if (b.bytes == 0 || blocks_.freed().covers(offset)) [[unlikely]]
        fatal("%s (%s) frees %p, which is no allocated block of the pool: it was freed before, or "
              "is not the pointer that hf::make or hf_alloc gave",
              readable_name(function_->name), function_->where, given);
    protocol_->free(b);
    blocks_.free(b);
}

void section::end() {
    HF_ASSERT_SLOW(idle());
    // A staged block is the program's own to fill.
    if (mark_guard::is_on() && prepared_.staged().empty()) [[unlikely]]
        mark_guard::close(*pool_);
    if (turns_ != nullptr) [[unlikely]]
        turns_->unlock();
}

void section::end_unlogged() {
    HF_ASSERT_SLOW(keeps_order() || (!blocks_.change_heap() && blocks_.segments().empty()));
    if (marks_.due())
        blocks_.leave_unadopted(marks_.freed()); // its section may name these as staged
    if (blocks_.touched()) release_blocks();
    leave_no_mark();
    end();
}

void section::leave() {
    HF_ASSERT_SLOW(turns_ != nullptr || idle());
    if (marks_.due()) unfenced_ = false;
    marks_.leave();
}

} // namespace hf
