// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Redo logging: a section's new bytes are in the log, whole, before any of them is stored in place; a
// section whose log is complete is replayed, any other has changed nothing.
#include <base/line.hpp>
#include <log/lane.hpp>
#include <pool/believed.hpp>
#include <pool/file_checks.hpp>
#include <section/recovery.hpp>
#include <section/roll_back.hpp>

#include <holdfast/redo.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

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
        pm.flush(r.payload - sizeof(record_head),
                 lane_writer::record_bytes(has_payload(r.kind) ? r.bytes : 0));
        if (r.kind != record_kind::filled) continue;
        filled_payload filled;
        std::memcpy(&filled, r.payload, sizeof filled);
        pm.flush(file.base() + r.offset, filled.bytes);
    }
    pm.fence();
}

void store_new_bytes(pool_file& file, const record_view& r) {
    for_each_store(r, [&](deferred_store head, const std::byte* words) {
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
}

/// Blocks that the section took and kept.
std::vector<block> taken_by(const pending_section& section) {
    std::vector<block> taken;
    for (const record_view& r : section.records) {
        const bool takes =
            (r.kind == record_kind::alloc && r.offset != 0) || r.kind == record_kind::adopted;
        if (takes) taken.push_back({r.offset, r.bytes});
        if (r.kind == record_kind::unused)
            std::erase_if(taken, [&](block b) { return b.offset == r.offset; });
    }
    return taken;
}

/// Gives back what the section named and does not hold any more: its log, blocks that it took for
/// nothing, blocks that it freed.
void release_blocks(pool::impl& pool, const pending_section& section,
                    const std::vector<block>& taken) {
    thread_cache cache;
    for (const record_view& r : section.records) {
        const bool named =
            ((r.kind == record_kind::alloc && r.offset != 0) || r.kind == record_kind::staged ||
             r.kind == record_kind::segment) &&
            std::ranges::none_of(taken, [&](block b) { return b.offset == r.offset; });
        if (named || r.kind == record_kind::free) pool.blocks.release(cache, {r.offset, r.bytes});
    }
    pool.blocks.release_all(cache);
}

void replay(pool::impl& pool, const pending_section& section) {
    pool_file& file = *pool.file;
    const medium pm = file.medium();
    make_durable(file, section);
    for (const record_view& r : section.records)
        if (r.kind == record_kind::new_bytes) store_new_bytes(file, r);
    const std::vector<block> taken = taken_by(section);
    heap& blocks = pool.blocks.durable();
    const auto dirty = [&](const void* word) { pm.flush(word, word_bytes); };
    for (block b : taken) blocks.publish(b, dirty);
    for (const record_view& r : section.records)
        if (r.kind == record_kind::free) {
            pool.blocks.find(r.offset);
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
        const auto inside = [&](deferred_store s, const std::byte*) {
            return blocks.covers(s.offset(), granule_bytes);
        };
        for (const record_view& r : section.records) {
            if (r.kind == record_kind::new_bytes && !for_each_store(r, inside))
                return refusal(
                    pool.file->path(), errc::corrupt,
                    fmt::format("log of lane {}: new bytes that lie in no block", section.lane));
            const bool named = r.kind == record_kind::adopted || r.kind == record_kind::unused;
            if (named && !std::ranges::any_of(section.records, [&](const record_view& by) {
                    return (by.kind == record_kind::alloc || by.kind == record_kind::staged) &&
                           by.offset == r.offset && by.bytes == r.bytes;
                }))
                return refusal(pool.file->path(), errc::corrupt,
                               fmt::format("log of lane {}: a block at {:#x} that it did not take",
                                           section.lane, r.offset));
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
