// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Redo logging: a section's new bytes are in the log, whole, before any of them is stored in place;
// a section whose log is complete is replayed, any other has changed nothing.
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
#include <iterator>
#include <vector>

namespace hf::redo {
namespace {

/// The same of a run, whose head stands at 'at'; moves on behind it.
template <class Visit>
bool for_each_in_run(const record_view& r, std::uint64_t& at, Visit&& visit) {
    deferred_run head;
    if (r.bytes - at < sizeof head) return false;
    std::memcpy(&head, r.payload + at, sizeof head);
    at += sizeof head;
    const std::uint64_t first = head.first.offset();
    if (head.granules == 0 || first % granule_bytes != 0 ||
        head.granules > (r.bytes - at) / granule_bytes)
        return false;
    for (std::uint64_t i = 0; i < head.granules; ++i, at += granule_bytes)
        if (!visit(deferred_store{(first + i * granule_bytes) << 16 | 0xffff}, r.payload + at))
            return false;
    return true;
}

/// Calls 'visit(head, its words)' for each deferred store of a record; false where it ends within
/// one, or one says what no section can have written.
template <class Visit> bool for_each_store(const record_view& r, Visit&& visit) {
    for (std::uint64_t at = 0; at < r.bytes;) {
        deferred_store head;
        if (r.bytes - at < sizeof head) return false;
        std::memcpy(&head, r.payload + at, sizeof head);
        if (head.mask() == 0) {
            if (!for_each_in_run(r, at, visit)) return false;
            continue;
        }
        at += sizeof head;
        const std::uint64_t words =
            std::uint64_t{(head.mask() & 0xff) != 0} + std::uint64_t{head.mask() >> 8 != 0};
        if (head.offset() % granule_bytes != 0 || r.bytes - at < words * word_bytes ||
            !visit(head, r.payload + at))
            return false;
        at += words * word_bytes;
    }
    return true;
}

/// Whether the section passed the fence between its log and its first store in place: then the log
/// and the memory that shares that fence are complete.
bool is_complete(const pool_file& file, const pending_section& section) {
    if (!section.has_all_new_bytes()) return false;
    for (const record_view& r : section.records) {
        if (r.kind != record_kind::filled) continue;
        filled_payload filled;
        std::memcpy(&filled, r.payload, sizeof filled);
        const std::byte* at = file.base() + r.offset;
        trace::announce(believed::checked, at, filled.bytes);
        if (XXH3_64bits(at, filled.bytes) != filled.sum) return false;
    }
    return true;
}

/// Makes durable what a killed process had only stored, before anything depends on it: else the
/// next failure could leave half of a replay without its log.
void make_durable(pool_file& file, const pending_section& section) {
    const medium pm = file.medium();
    const lane_position start = lane_start(file, section.lane, section.begin.epoch);
    pm.flush(start.next,
             lane_writer::record_bytes(sizeof section.begin + section.begin.args_bytes));
    for (const record_view& r : section.records) {
        if (r.payload == nullptr) continue; // half of an own record: the other half has its place
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
    fatal("%s: corrupt: a log of engine redo: expected stores to blocks, found one into the log "
          "itself: run `holdfast verify`",
          file.path().c_str());
}

/// Stores what the log says, durably; leaves the mark as it is. Idempotent.
void replay(pool::impl& pool, const pending_section& section) {
    pool_file& file = *pool.file;
    const medium pm = file.medium();
    make_durable(file, section);
    for (const record_view& r : section.records)
        if (r.kind == record_kind::new_bytes) store_new_bytes(pool, r);
    heap& blocks = pool.blocks.durable();
    const auto dirty = [&](const void* word) { pm.flush(word, word_bytes); };
    for (const record_view& r : section.records) {
        if (r.kind == record_kind::alloc) blocks.publish({r.offset, r.bytes}, dirty);
        if (r.kind != record_kind::free) continue;
        pool.blocks.find(r.offset); // its chunk's state must be known before it changes
        blocks.retract({r.offset, r.bytes}, dirty);
    }
    pm.fence();
}

status refuse_log(const pool::impl& pool, std::uint32_t lane, const char* what) {
    return refusal(pool.file->path(), errc::corrupt,
                   fmt::format("log of lane {}: {}{}", lane, what, last_way_out(*pool.file)));
}

status check_log(const pool::impl& pool, const pending_section& section) {
    const heap& blocks = pool.blocks.durable();
    std::vector<block> log;
    for (const record_view& r : section.records)
        if (r.kind == record_kind::segment) log.push_back({r.offset, r.bytes});
    std::ranges::sort(log, {}, &block::offset);
    const auto inside = [&](deferred_store s, const std::byte*) {
        // In blocks, but not in those of the log itself.
        const auto next = std::ranges::upper_bound(log, s.offset(), {}, &block::offset);
        const bool in_log =
            next != log.begin() && s.offset() - std::prev(next)->offset < std::prev(next)->bytes;
        return blocks.covers(s.offset(), granule_bytes) && !in_log;
    };
    for (const record_view& r : section.records) {
        if (r.kind == record_kind::new_bytes && !for_each_store(r, inside))
            return refuse_log(pool, section.lane,
                              "new bytes: expected them in a block, found them elsewhere or in the "
                              "log");
        if (r.kind == record_kind::alloc && r.offset == 0)
            return refuse_log(pool, section.lane,
                              "a block that it takes: expected its offset, found 0");
    }
    return {};
}

class redo_engine final : public section_engine {
public:
    const engine_row& row() const noexcept override { return engine_rows::redo; }
    /// Replaying needs no function of this build.
    status check(const pool::impl& pool, const pending_section& section) const override {
        const status s = check_log(pool, section);
        return s.ok() && section.earlier != nullptr ? check_log(pool, *section.earlier) : s;
    }

protected:
    void recover(pool::impl& pool, pending_section& pending,
                 section_recovery& state) const override {
        const bool complete = is_complete(*pool.file, pending);
        if (pending.earlier != nullptr) { // upholds protocol.hpp (2)
            replay(pool, *pending.earlier);
            release_blocks(pool, *pending.earlier, true);
        }
        if (!complete) {
            roll_back(pool, pending); // no bytes: nothing was stored in place
            ++state.count[recovery_verb::discard];
            return;
        }
        replay(pool, pending);
        store_mark(pool.file->medium(), lane_at(*pool.file, pending.lane), pending.begin.epoch);
        pool.file->medium().fence();
        release_blocks(pool, pending, true);
        ++state.count[recovery_verb::replay];
    }
};

} // namespace

engine_ptr engine() noexcept {
    static const redo_engine only;
    return lasting(only);
}

} // namespace hf::redo
