// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Opening and closing MOD's part of a pool. Opening checks its contents, finds the owner of arenas
// that were half taken, completes a commit that was durable before its words, and traces the nodes
// in use. A clean close stores them.
#include <mod/announced.hpp>
#include <mod/store_impl.hpp>
#include <pool/believed.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <string>
#include <system_error>
#include <thread>

namespace hf::mod {

std::uint64_t cells_max(const pool_file& file) {
    return (file.shape().chunk_bytes - sizeof(superblock)) / sizeof(cell);
}

const superblock* superblock_of(const pool_file& file) {
    const std::uint64_t at = file.roots()->anchor(engine_mod);
    return at == 0 ? nullptr : reinterpret_cast<const superblock*>(file.base() + at);
}

status corrupt(const pool_file& file, const std::string& what) {
    return {errc::corrupt, fmt::format("{}: corrupt: MOD: {}", file.path(), what)};
}

namespace {

/// Visits the heads of the list of arenas until 'visit' says true. Errors: corrupt: it is no list.
template <class Visit>
status visit_list(const pool::impl& in, const superblock& super, Visit&& visit) {
    const std::uint64_t chunk = in.file->shape().chunk_bytes;
    std::uint64_t left = in.file->size_bytes() / chunk; // no list is longer
    for (std::uint64_t at = super.arenas; at != 0; --left) {
        if (left == 0 || at % chunk != 0 || !in.blocks.durable().covers(at, sizeof(arena_head)))
            return corrupt(
                *in.file,
                fmt::format("the list of arenas: expected an arena in the heap, found {:#x}", at));
        const auto* head = static_cast<const arena_head*>(in.at(at));
        if (visit(at, *head)) break;
        at = head->next;
    }
    return {};
}

/// No commits ever reach it: a number of theirs that is larger would end the counting.
constexpr std::uint64_t commits_max = std::uint64_t{1} << 62;

} // namespace

bool sound(const cell* cells, std::uint64_t count, std::uint64_t index) {
    const cell& c = cells[index];
    if (c.name[name_bytes_max] != 0 || c.stamp > commits_max) return false;
    if (c.family == 0 && c.kind != builtin_kind::family) return c.kind != 0 && c.members == 0;
    if (c.family == 0) {
        if (c.members == 0 || c.members > family_members_max || c.members >= count - index)
            return false;
        for (std::uint64_t m = 0; m < c.members; ++m)
            if (cells[index + 1 + m].family != index + 1) return false;
        return true;
    }
    const std::uint64_t family = c.family - 1;
    return family < index && cells[family].kind == builtin_kind::family && c.members == 0 &&
           c.kind != builtin_kind::family && c.member < cells[family].members &&
           index == family + 1 + c.member;
}

namespace {

/// Whether a record was written to its end.
bool valid(const redo_record& r) noexcept {
    if (r.count == 0 || r.count > redo_updates_max) return false;
    trace::announce(believed::checked, &r,
                    offsetof(redo_record, entries) + r.count * sizeof r.entries[0]);
    return r.check == redo_check(r);
}
bool valid(const exchange_record& r) noexcept {
    if (r.number == 0) return false;
    trace::announce(believed::checked, &r, sizeof r);
    return r.check == exchange_check(r);
}

/// Whether the bytes lie in one of MOD's arenas; or the list of those is damaged, which the trace
/// reports.
bool may_be_node(const pool::impl& in, const superblock& super, std::uint64_t at,
                 std::uint64_t bytes) {
    bool found = false;
    const status listed = visit_list(in, super, [&](std::uint64_t arena, const arena_head& head) {
        const std::uint64_t before = at - arena;
        return found = at >= arena && before >= sizeof head && before < head.bytes &&
                       head.bytes - before >= bytes;
    });
    return found || !listed.ok();
}

/// A record that has yet to be applied stores to bytes of MOD's nodes alone.
status check_exchange(const pool::impl& in, const superblock& super, const exchange_record& r) {
    const std::uint64_t cell_count = super.cell_count;
    if (r.number > commits_max || r.cell >= cell_count || r.bytes > word_bytes ||
        !std::has_single_bit(r.bytes))
        return corrupt(
            *in.file,
            fmt::format(
                "exchange record {}: found {} bytes of root {} of {}, expected 1, 2, 4 or 8 "
                "bytes of a root that is there",
                r.number, r.bytes, r.cell, cell_count));
    const std::uint64_t super_at = in.file->roots()->anchor(engine_mod);
    const std::uint64_t super_end = super_at + in.file->shape().chunk_bytes;
    for (const exchange_record::element& e : r.elements)
        if (e.at % r.bytes != 0 || !in.blocks.durable().covers(e.at, r.bytes) ||
            (e.at >= super_at && e.at < super_end)) // inspect() has found it sound
            return corrupt(
                *in.file,
                fmt::format("exchange record {}: expected an element in the heap, found {:#x}",
                            r.number, e.at));
    const auto* const cells = reinterpret_cast<const cell*>(&super + 1);
    if (cells[r.cell].stamp >= r.number) return {};
    for (const exchange_record::element& e : r.elements)
        if (!may_be_node(in, super, e.at, r.bytes))
            return corrupt(
                *in.file,
                fmt::format("exchange record {}: expected an element in an arena, found {:#x}",
                            r.number, e.at));
    return {};
}

} // namespace

status store::impl::inspect(const pool::impl& in) {
    const pool_file& file = *in.file;
    if (file.lets_read())
        if (status s = check_sequence(file); !s.ok()) return s;
    const std::uint64_t at = file.roots()->anchor(engine_mod);
    if (at == 0) return {};
    const std::uint64_t chunk = file.shape().chunk_bytes;
    if (at % chunk != 0 || !in.blocks.durable().covers(at, chunk))
        return corrupt(file,
                       fmt::format("superblock: expected a chunk of the heap, found {:#x}", at));
    const superblock& super = *superblock_of(file);
    if (super.magic != superblock_magic)
        return corrupt(file, fmt::format("superblock at {:#x}: found {:#x}, expected {:#x}", at,
                                         super.magic, superblock_magic));
    if (super.cell_count > cells_max(file))
        return corrupt(file, fmt::format("found {} roots, expected at most {}", super.cell_count,
                                         cells_max(file)));
    const auto* cells = reinterpret_cast<const cell*>(&super + 1);
    for (std::uint64_t i = 0; i < super.cell_count; ++i)
        if (!sound(cells, super.cell_count, i))
            return corrupt(
                file, fmt::format(
                          "root cell {}: expected a name and numbers in bounds, found others", i));
    const redo_record& r = super.redo;
    if (valid(r) && r.number > commits_max)
        return corrupt(
            file, fmt::format("redo record: found number {}, expected that of a commit", r.number));
    if (valid(r))
        for (std::uint64_t i = 0; i < r.count; ++i)
            if (r.entries[i].cell >= super.cell_count)
                return corrupt(file,
                               fmt::format("redo record: found root {}, expected one below {}",
                                           r.entries[i].cell, super.cell_count));
    for (const exchange_record& e : super.exchanges)
        if (valid(e))
            if (status s = check_exchange(in, super, e); !s.ok()) return s;
    return {};
}

/// Without their records the words stay as they are.
void store::impl::give_up_unsound(pool::impl& in) {
    const pool_file& file = *in.file;
    const std::uint64_t at = file.roots()->anchor(engine_mod), chunk = file.shape().chunk_bytes;
    if (at == 0 || at % chunk != 0 || !in.blocks.durable().covers(at, chunk)) return;
    auto& super = *const_cast<superblock*>(superblock_of(file));
    const hf::medium pm = file.medium();
    pm.store_word(&super.redo.count, 0);
    for (exchange_record& e : super.exchanges) pm.store_word(&e.number, 0);
    pm.fence();
}

namespace {

/// An arena that is allocated and in no list was about to be listed, or to be given back. This
/// lists it again. If the list is damaged, live nodes may lie in the arena, and freeing it would
/// lose them.
status adopt(pool::impl& in, superblock& super, block b) {
    auto* head = static_cast<arena_head*>(in.at(b.offset));
    if (super.clean != 0 || head->magic != arena_magic || head->bytes != b.bytes)
        return corrupt(*in.file,
                       fmt::format("expected an arena half taken, found {} other bytes at {:#x}",
                                   b.bytes, b.offset));
    const hf::medium pm = in.file->medium();
    pm.store_word(&head->next, super.arenas);
    pm.fence();
    pm.store_word(&super.arenas, b.offset);
    pm.fence();
    return {};
}

/// Whether its chunks hold nothing but 'b', or an arena of its size whose bit persisted without its
/// chunk's entry. A free chunk's entry may have any older contents ((3) of heap.hpp).
bool lies_alone(const pool::impl& in, block b) {
    const heap& blocks = in.blocks.durable();
    const std::uint64_t chunk = blocks.chunk_bytes();
    bool others = false;
    for (std::uint64_t at = b.offset; at < b.offset + b.bytes; at += chunk)
        blocks.for_each_slot(at, granule_bytes,
                             [&](std::uint64_t slot) { others |= at != b.offset || slot != 0; });
    if (others) return false;
    const auto* head = static_cast<const arena_head*>(in.at(b.offset));
    return blocks.allocated_at(b.offset).bytes == 0 ||
           (head->magic == arena_magic && head->bytes == b.bytes);
}

/// After a kill the last words of the process may be stored and not durable. They must be durable
/// before anything is built on them.
void flush_believed(const pool::impl& in, const superblock& super) {
    const pool_file& file = *in.file;
    if (file.was_clean()) return;
    file.medium().flush(&super, sizeof super + super.cell_count * sizeof(cell));
    const auto* cells = reinterpret_cast<const cell*>(&super + 1);
    for (std::uint64_t i = 0; i < super.cell_count; ++i)
        if (cells[i].in_place != 0 && cells[i].in_place < file.size_bytes())
            file.medium().flush(file.base() + cells[i].in_place, 1);
    // A damaged list is the trace's to report.
    (void)visit_list(in, super, [&](std::uint64_t, const arena_head& head) {
        file.medium().flush(&head, sizeof head);
        return false;
    });
    file.medium().fence();
}

} // namespace

status store::impl::recover_taking(pool::impl& in) {
    auto* super = const_cast<superblock*>(superblock_of(*in.file));
    if (super == nullptr) return {};
    flush_believed(in, *super);
    if (super->taking == 0) return {};
    const block b{super->taking, super->taking_bytes};
    heap& blocks = in.blocks.durable();
    if (b.offset % in.file->shape().chunk_bytes != 0 || blocks.is_slab(b.bytes) ||
        !blocks.well_formed(b))
        return corrupt(
            *in.file,
            fmt::format(
                "an arena half taken: expected whole chunks of the heap, found {:#x}, {} bytes",
                b.offset, b.bytes));
    bool ours = false;
    const status listed = visit_list(in, *super, [&](std::uint64_t at, const arena_head&) {
        return ours = at == super->taking;
    });
    if (!listed.ok()) return listed;
    const hf::medium pm = in.file->medium();
    const auto dirty = [&](const void* word) { pm.flush(word, word_bytes); };
    if (blocks.allocated_at(b.offset).bytes == b.bytes) {
        blocks.publish(b, dirty); // it is: durably
        pm.fence();
        return ours ? status() : adopt(in, *super, b);
    }
    // Its bit may have persisted without its chunk's entry, and the entry without the bit.
    const bool alone = lies_alone(in, b);
    if (alone) blocks.retract(b, dirty);
    if (!alone || !in.blocks.claim(b))
        return corrupt(
            *in.file,
            fmt::format("arena at {:#x}: expected no other blocks in its chunks, found some",
                        b.offset));
    if (ours) blocks.publish(b, dirty);
    pm.fence();
    if (ours) return {};
    // From here on the chunk may be another's.
    pm.store_word(&super->taking, 0);
    pm.fence();
    thread_cache none;
    in.blocks.release(none, b);
    return {};
}

status store::impl::settle(pool::impl& in) {
    const status recovered = recover_taking(in);
    if (!salvages(in, recovered)) return recovered;
    in.file->warn(
        fmt::format("{}: salvaged: {}: it is given up", in.file->path(), recovered.what()));
    auto* const super = const_cast<superblock*>(superblock_of(*in.file));
    in.file->medium().store_word(&super->taking, 0);
    in.file->medium().fence();
    return {};
}

status store::impl::start() {
    pool_->file->make_readable();
    if (reads_) return check_sequence(*pool_->file);
    if (super_ != nullptr) redo();
    let_read();
    if (super_ == nullptr) return {};
    roots_.resize(super_->cell_count);
    sharing_durable_ = super_->shares != 0;
    const bool clean = super_->clean == 1;
    was_clean_ = clean;
    if (super_->clean != 0) {
        medium().store_word(&super_->clean, 0);
        medium().fence();
    }
    if (clean && super_->shares == 0) return {};
    for (std::uint64_t i = 0; i < super_->cell_count; ++i) trace_words_.push_back(cells()[i].word);
    counts_unknown_ = super_->shares != 0;
    trace_done_ = false;
    space_.begin_trace();
    // The crash checker follows one thread.
    if (pool_->file->in_memory()) {
        run_trace(false);
        return {};
    }
    try {
        tracing_ = std::thread([this] { run_trace(true); });
    } catch (const std::system_error&) { // no thread: then now
        run_trace(false);
    }
    return {};
}

/// A commit of unrelated roots that was durable before its words were is completed.
void store::impl::redo() noexcept {
    for (std::uint64_t i = 0; i < super_->cell_count; ++i)
        redo_number_ = std::max(redo_number_, cells()[i].stamp);
    const redo_record& r = super_->redo;
    if (!valid(r)) return redo_exchanges();
    redo_number_ = std::max(redo_number_, r.number);
    for (std::uint64_t i = 0; i < r.count; ++i) {
        cell& c = cells()[r.entries[i].cell];
        if (c.stamp >= r.number) continue;
        store_stamped(c, r.entries[i].word, r.number);
    }
    medium().fence();
    redo_exchanges();
}

/// Two elements that were about to change places do. (7), (8) of overwrite.cpp.
void store::impl::redo_exchanges() noexcept {
    std::array<const exchange_record*, 2> in_order{&super_->exchanges[0], &super_->exchanges[1]};
    std::ranges::sort(in_order, {}, &exchange_record::number);
    std::array<bool, 2> applied{};
    for (std::size_t i = 0; i < in_order.size(); ++i) {
        const exchange_record& r = *in_order[i];
        if (!valid(r)) continue;
        redo_number_ = std::max(redo_number_, r.number);
        applied[i] = cells()[r.cell].stamp < r.number;
        if (!applied[i]) continue;
        for (const exchange_record::element& e : r.elements) {
            trace::announce(announced::in_place, base() + e.at, r.bytes);
            std::memcpy(base() + e.at, &e.value, r.bytes);
            medium().flush(base() + e.at, r.bytes);
        }
    }
    medium().fence();
    for (std::size_t i = 0; i < in_order.size(); ++i)
        if (cell& c = cells()[in_order[i]->cell]; applied[i])
            store_stamped(c, c.word, in_order[i]->number);
    medium().fence(); // before an element is stored in place again, or its node made anew
}

void store::impl::stop() noexcept {
    stop_trace_ = true;
    if (tracing_.joinable()) tracing_.join();
}

void store::impl::settle_for_close() noexcept {
    if (!pool_->usable().ok() || reads_)
        return; // its roots, and the nodes in use, belong to the parent
    stop();
    for (auto& part : roots_) // the last commit may be another thread's, and unfenced
        if (part != nullptr) store_again(*part);
    medium().fence(); // every root's word
    if (super_ == nullptr || !trace_done_ || trace_failed_ || live_states_ != 0) return;
    if (uncounted_ || space_.damaged()) return; // the next open counts
    ask_readers();
    for (auto& part : roots_) {
        if (part == nullptr) continue;
        reclaim(*part, part->cache, ~std::uint64_t{0});
        space_.give_all(part->cache);
    }
    for (auto& cache : caches_) space_.give_all(*cache);
    // (4) of reader.cpp: what a process still reads the next open finds free by its trace, and
    //     waits.
    for (auto& part : roots_)
        if (part != nullptr && !part->batches.empty()) return;
    space_.store_bitmaps();
    medium().fence();
    medium().store_word(&super_->clean, 1);
    medium().fence();
}

} // namespace hf::mod
