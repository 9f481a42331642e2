// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Redo logging: a section's new bytes are in the log, whole, before any of them is stored in place; a
// section whose log is complete is replayed, any other has changed nothing.
#include <base/assert.hpp>
#include <base/line.hpp>
#include <log/lane.hpp>
#include <pool/believed.hpp>
#include <pool/fault_guard.hpp>
#include <pool/file_checks.hpp>
#include <section/recovery.hpp>
#include <section/roll_back.hpp>

#include <holdfast/redo.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <vector>

namespace hf::redo {
namespace {

/// Calls 'visit(head, its words)' for each deferred store of a record; false where it ends within
/// one, or one says what no section can have written.
template <class Visit> bool for_each_store(const record_view& r, Visit&& visit) {
    for (std::uint64_t at = 0; at < r.bytes;) {
        deferred_store head;
        if (r.bytes - at < sizeof head) return false;
        std::memcpy(&head, r.payload + at, sizeof head);
        at += sizeof head;
        const std::uint64_t words =
            std::uint64_t{(head.mask() & 0xff) != 0} + std::uint64_t{head.mask() >> 8 != 0};
        if (words == 0 || head.offset() % granule_bytes != 0 || r.bytes - at < words * word_bytes ||
            !visit(head, r.payload + at))
            return false;
        at += words * word_bytes;
    }
    return true;
}

/// Whether the fence was passed that stands between the log and the first store in place: the log is
/// complete, and so is the memory that shares that fence.
bool is_complete(const pool_file& file, const pending_section& section) {
    const auto& records = section.records;
    if (std::ranges::none_of(records, [](const record_view& r) {
            return r.kind == record_kind::new_bytes && r.offset == 1;
        }))
        return false;
    for (std::size_t i = records.size(); i-- > 0;) {
        const record_view& r = records[i];
        if (r.kind == record_kind::applying)
            return true; // of what stands before it sums may not hold
        if (r.kind != record_kind::filled) continue;
        filled_payload filled;
        std::memcpy(&filled, r.payload, sizeof filled);
        const std::byte* at = file.base() + r.offset;
        trace::announce(believed::checked, at, filled.bytes);
        if (XXH3_64bits(at, filled.bytes) != filled.sum) return false;
    }
    return true;
}

/// What a killed process had only stored must be durable before anything depends on it: else the next
/// failure could leave half of a replay without its log.
void make_durable(pool_file& file, const pending_section& section) {
    const medium pm = file.medium();
    const lane_position start = lane_start(file, section.lane, section.begin.epoch);
    pm.flush(start.next,
             lane_writer::record_bytes(sizeof section.begin + section.begin.args_bytes));
    for (const record_view& r : section.records) {
        if (r.payload == nullptr) continue; // half of a made record: the other half has its place
        pm.flush(r.payload - sizeof(record_head),
                 lane_writer::record_bytes(has_payload(r.kind) ? r.bytes : 0));
        if (r.kind != record_kind::filled) continue;
        filled_payload filled;
        std::memcpy(&filled, r.payload, sizeof filled);
        pm.flush(file.base() + r.offset, filled.bytes);
    }
    pm.fence();
}

/// Heads are bounded again: those of a hostile log may have changed since, by stores of its own.
void store_new_bytes(pool::impl& pool, const record_view& r) {
    pool_file& file = *pool.file;
    const bool whole = for_each_store(r, [&](deferred_store head, const std::byte* words) {
        if (!pool.blocks.durable().covers(head.offset(), granule_bytes)) return false;
        std::byte* const granule = file.base() + head.offset();
        for (std::uint64_t w = 0; w < granule_bytes; w += word_bytes) {
            const unsigned bytes = head.mask() >> w & 0xff;
            if (bytes == 0) continue;
            for (std::uint64_t i = 0; i < word_bytes; ++i)
                if ((bytes >> i & 1) != 0) granule[w + i] = words[i];
            words += word_bytes;
        }
        file.medium().flush(granule, granule_bytes);
        return true;
    });
    if (whole) return;
    fault_guard::fatal_means(errc::corrupt);
    fatal("%s: a log has changed its own new bytes", file.path().c_str());
}

/// Of the section's records those of such kinds, as blocks, in order.
std::vector<block> blocks_in(const pending_section& section,
                             std::initializer_list<record_kind> kinds) {
    std::vector<block> found;
    for (const record_view& r : section.records)
        if (r.offset != 0 && std::ranges::find(kinds, r.kind) != kinds.end())
            found.push_back({r.offset, r.bytes});
    std::ranges::sort(found, {}, &block::offset);
    return found;
}
bool has(const std::vector<block>& sorted, std::uint64_t offset) {
    return std::ranges::binary_search(sorted, offset, {}, &block::offset);
}

/// Blocks that the section took and kept, in order.
std::vector<block> taken_by(const pending_section& section) {
    const std::vector<block> unused = blocks_in(section, {record_kind::unused});
    std::vector<block> taken = blocks_in(section, {record_kind::alloc, record_kind::adopted});
    std::erase_if(taken, [&](block b) { return has(unused, b.offset); });
    return taken;
}

/// Gives back what the section named and does not hold any more: its log, blocks that it took for
/// nothing, blocks that it freed.
void release_blocks(pool::impl& pool, const pending_section& section,
                    const std::vector<block>& taken) {
    thread_cache cache;
    for (block b :
         blocks_in(section, {record_kind::alloc, record_kind::staged, record_kind::segment}))
        if (!has(taken, b.offset)) pool.blocks.release(cache, b);
    for (block b : blocks_in(section, {record_kind::free})) pool.blocks.release(cache, b);
    pool.blocks.release_all(cache);
}

void replay(pool::impl& pool, const pending_section& section) {
    pool_file& file = *pool.file;
    const medium pm = file.medium();
    make_durable(file, section);
    for (const record_view& r : section.records)
        if (r.kind == record_kind::new_bytes) store_new_bytes(pool, r);
    const std::vector<block> taken = taken_by(section);
    heap& blocks = pool.blocks.durable();
    const auto dirty = [&](const void* word) { pm.flush(word, word_bytes); };
    for (block b : taken) blocks.publish(b, dirty);
    for (const record_view& r : section.records)
        if (r.kind == record_kind::free) {
            pool.blocks.find(r.offset); // its chunk's state must be known before it changes
            blocks.retract({r.offset, r.bytes}, dirty);
        }
    pm.fence();
    store_mark(pm, lane_at(file, section.lane), section.begin.epoch);
    pm.fence();
    release_blocks(pool, section, taken);
}

class redo_engine final : public section_engine {
public:
    const engine_row& row() const noexcept override { return engine_rows::redo; }
    /// Replaying needs no function of this build.
    status check(const pool::impl& pool, const pending_section& section) const override {
        const heap& blocks = pool.blocks.durable();
        const auto corrupt = [&](const char* what) {
            return refusal(pool.file->path(), errc::corrupt,
                           fmt::format("log of lane {}: {}", section.lane, what));
        };
        const std::vector<block> log = blocks_in(section, {record_kind::segment});
        const auto inside = [&](deferred_store s, const std::byte*) {
            // In blocks, but not in those of the log itself.
            const auto next = std::ranges::upper_bound(log, s.offset(), {}, &block::offset);
            const bool in_log = next != log.begin() &&
                                s.offset() - std::prev(next)->offset < std::prev(next)->bytes;
            return blocks.covers(s.offset(), granule_bytes) && !in_log;
        };
        for (const record_view& r : section.records)
            if (r.kind == record_kind::new_bytes && !for_each_store(r, inside))
                return corrupt("new bytes that lie in no block, or in the log");
        const std::vector<block> known =
            blocks_in(section, {record_kind::alloc, record_kind::staged});
        for (block b : blocks_in(section, {record_kind::adopted, record_kind::unused})) {
            const auto at = std::ranges::lower_bound(known, b.offset, {}, &block::offset);
            if (at == known.end() || at->offset != b.offset || at->bytes != b.bytes)
                return corrupt("a block that it did not take");
        }
        return {};
    }

protected:
    void recover(pool::impl& pool, pending_section& pending,
                 section_recovery& state) const override {
        if (is_complete(*pool.file, pending)) {
            replay(pool, pending);
            ++state.count[recovery_verb::replay];
        } else {
            roll_back(pool, pending); // no bytes: nothing was stored in place
            ++state.count[recovery_verb::discard];
        }
    }
};

} // namespace

const hf::engine* engine() noexcept {
    static const redo_engine only;
    return &only;
}

} // namespace hf::redo
