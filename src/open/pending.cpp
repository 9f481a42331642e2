// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <open/migration.hpp>
#include <open/pending.hpp>
#include <pool/file_checks.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <vector>

namespace hf {
namespace {

constexpr std::uint64_t epoch_max = ~std::uint64_t{0} - 2 * epoch_gap;

/// The reason why a lane makes open refuse; ok for a good lane, or for salvage.
status judge_lane(const pool::impl& pool, std::uint32_t lane, const pending_section* pending,
                  std::uint64_t newest, const lane_damage& damage) {
    const pool_file& file = *pool.file;
    const auto refuse = [&](const std::string& why) {
        return refusal(file.path(), errc::corrupt, fmt::format("lane {}: {}", lane, why));
    };
    if (file.was_clean() && pending != nullptr && !pool.salvage)
        return refuse(fmt::format(
            "expected no pending section in a pool that was closed cleanly, found epoch {:#x}; "
            "`holdfast repair` puts the lane's mark right, salvage believes the close",
            pending->begin.epoch));
    const bool rolling = pool.recovery == recovery_policy::roll_back;
    // The rest of a log without checksums may be of sections that are over.
    const bool passes = pool.salvage && (pending == nullptr || (rolling && !pending->in_words));
    // After a clean close the contents of lanes do not count.
    if (damage.what != nullptr && !file.was_clean() && !passes)
        return refuse(fmt::format(
            "{} at offset {:#x}: expected {:#x}, found {:#x}{}", damage.what, damage.offset,
            damage.expected, damage.found,
            pending == nullptr
                ? "; to take the lane for idle, as it looks, open the pool with salvage, or run "
                  "`holdfast repair --roll-back --force " +
                      file.path() + "`"
                : last_way_out(file)));
    // After a wrap an epoch would be below its lane's mark, and no section would count as pending.
    if (newest > epoch_max)
        return refuse(fmt::format("found epoch {:#x}, expected at most {:#x}", newest, epoch_max));
    return {};
}

} // namespace

bool salvages(const pool::impl& pool, const status& refused) noexcept {
    if (!pool.salvage || refused.ok()) return false;
    const bool no_file = refused.code() == errc::io_error || refused.code() == errc::truncated;
    return refused.code() == errc::corrupt || (pool.file->stores_in_doubt() && !no_file);
}

void give_up(pool::impl& pool, lanes_found& found, std::uint32_t lane, const status& why) {
    std::erase_if(found.pending, [&](const pending_section& p) { return p.lane == lane; });
    if (std::ranges::count(found.disbelieved, lane) == 0) found.disbelieved.push_back(lane);
    pool.file->warn(fmt::format("{}: salvaged: lane {} is given up, and its section stays as far "
                                "done as it is: {}",
                                pool.file->path(), lane, why.what()));
}

status read_lanes(pool::impl& pool, lanes_found& out) {
    HF_ASSERT_SLOW(out.pending.empty());
    HF_ASSERT_SLOW(out.disbelieved.empty());
    pool_file& file = *pool.file;
    const bool with_kept = pool.salvage || kept_records_count(file);
    for (std::uint32_t l = 0; l < pool.lanes.size(); ++l) {
        pending_section found;
        std::uint64_t newest = 0;
        lane_damage damage;
        const bool is_pending =
            read_lane(file, pool.blocks.durable(), l, found, newest, damage, with_kept);
        if (status s = judge_lane(pool, l, is_pending ? &found : nullptr, newest, damage);
            !s.ok()) {
            if (!pool.salvage) return s;
            give_up(pool, out, l, s);
            // No epoch is above one that has wrapped: start_anew() empties the lane.
            pool.lanes[l].epoch = newest > epoch_max ? epoch_gap : newest + epoch_gap;
            continue;
        }
        if (is_pending && file.was_clean())
            file.warn(fmt::format("{}: salvaged: lane {}: a section that says it is pending "
                                  "counts as committed: the pool was closed cleanly",
                                  file.path(), l));
        if (is_pending && !file.was_clean()) out.pending.push_back(std::move(found));
        else if (is_pending || damage.what != nullptr) out.disbelieved.push_back(l);
        pool.lanes[l].epoch = newest + epoch_gap;
        HF_ASSERT_SLOW(newest < pool.lanes[l].epoch);
        HF_ASSERT_SLOW(!pool.lanes[l].taken);
    }
    return {};
}

/// Starts write-back of what a killed process may only have stored: marks of lanes, and whose a
/// block is.
static void flush_marks(pool::impl& pool) noexcept {
    const hf::medium pm = pool.file->medium();
    const heap& blocks = pool.blocks.durable();
    for (std::uint32_t l = 0; l < pool.lanes.size(); ++l) {
        const lane_header* const lane = lane_at(*pool.file, l);
        pm.flush(lane, sizeof *lane);
        if (blocks.covers(lane->at_once, granule_bytes))
            pm.flush(blocks.word_of(lane->at_once), word_bytes);
    }
}

void start_anew_durably(pool::impl& pool, const lanes_found& found) noexcept {
    start_anew(pool, found);
    flush_marks(pool);
    pool.file->medium().fence();
}

void start_anew(pool::impl& pool, const lanes_found& found) noexcept {
    for (std::uint32_t l : found.disbelieved) {
        HF_ASSERT_SLOW(std::ranges::count(found.pending, l, &pending_section::lane) == 0);
        if (pool.lanes[l].epoch == epoch_gap) erase_lane(*pool.file, l);
        start_lane(*pool.file, l, pool.lanes[l].epoch);
    }
}

namespace {

/// Every section to be recovered, of a lane's two the newer one first.
template <class Visit>
void for_each_newest_first(std::span<const pending_section> pending, Visit&& visit) {
    for (const pending_section& section : pending) {
        visit(section);
        if (section.earlier != nullptr) visit(*section.earlier);
    }
}

/// Bounds everything in a pending log before anything is done with it.
status check_records(const pool::impl& pool, const pending_section& section) {
    const auto corrupt = [&](const record_view& r) {
        return status{
            errc::corrupt,
            fmt::format(
                "{}: corrupt: log of lane {}: a record of kind {}: expected bytes that a section "
                "may change, found offset {:#x}, {} bytes{}",
                pool.file->path(), section.lane, static_cast<int>(r.kind), r.offset, r.bytes,
                last_way_out(*pool.file))};
    };
    if (!section.sound) return corrupt(section.records.back());
    const heap& blocks = pool.blocks.durable();
    for (const record_view& r : section.records) {
        // A section stores to blocks only: never to headers, lanes or the allocator's tables.
        const bool old = r.kind == record_kind::old_bytes || r.kind == record_kind::overwritten;
        if (old && !blocks.covers(r.offset, r.bytes)) return corrupt(r);
        if (r.kind == record_kind::filled) {
            filled_payload filled;
            if (r.bytes != sizeof filled) return corrupt(r);
            std::memcpy(&filled, r.payload, sizeof filled);
            if (!blocks.covers(r.offset, filled.bytes)) return corrupt(r);
        }
        const bool no_room = r.kind == record_kind::alloc && r.offset == 0;
        if (names_block(r.kind) && !no_room && !blocks.well_formed({r.offset, r.bytes}))
            return corrupt(r);
    }
    return {};
}

/// The reason why a lane cannot be opened; ok: none.
struct refused_lane {
    std::uint32_t lane = 0;
    status why;
};

struct lanes_block {
    block what;
    std::uint32_t lane;
};

refused_lane check_apart(const pool::impl& pool, std::vector<lanes_block> all, const char* how) {
    std::ranges::sort(all, {}, [](const lanes_block& b) { return b.what.offset; });
    const auto meet = [](const lanes_block& a, const lanes_block& b) {
        return b.what.offset - a.what.offset < a.what.bytes;
    };
    const auto twice = std::ranges::adjacent_find(all, meet);
    if (twice == all.end()) return {};
    const lanes_block& second = *std::next(twice);
    return {
        second.lane,
        refusal(pool.file->path(), errc::corrupt,
                fmt::format(
                    "the block at {:#x}: expected it {} once by pending sections, found it twice",
                    second.what.offset, how))};
}

/// Nothing frees a block twice: given back twice, it would be handed out twice.
refused_lane check_frees(const pool::impl& pool, std::span<const pending_section> pending) {
    std::vector<lanes_block> freed;
    for_each_newest_first(pending, [&](const pending_section& section) {
        for (const record_view& r : section.records)
            if (r.kind == record_kind::free) freed.push_back({{r.offset, r.bytes}, section.lane});
    });
    return check_apart(pool, std::move(freed), "freed");
}

/// No two sections have taken the same memory.
refused_lane check_taken(const pool::impl& pool, std::span<const pending_section> pending) {
    std::vector<lanes_block> taken;
    for_each_newest_first(pending, [&](const pending_section& section) {
        for (const record_view& r : section.records)
            if (r.offset != 0 && (r.kind == record_kind::alloc || r.kind == record_kind::staged ||
                                  r.kind == record_kind::segment))
                taken.push_back({{r.offset, r.bytes}, section.lane});
    });
    return check_apart(pool, std::move(taken), "taken");
}

/// Whether each block that a log without checks names can be one.
status check_named(const pool::impl& pool, const pending_section& section) {
    for (const record_view& r : section.records) {
        const bool no_room = r.kind == record_kind::alloc && r.offset == 0;
        if (names_block(r.kind) && !no_room && !pool.blocks.durable().may_hold({r.offset, r.bytes}))
            return refusal(
                pool.file->path(), errc::corrupt,
                fmt::format(
                    "log of lane {}: the block at {:#x} of {} bytes: expected it among blocks of "
                    "its size, found others{}",
                    section.lane, r.offset, r.bytes, last_way_out(*pool.file)));
    }
    return {};
}

status check_section(const pool::impl& pool, const pending_section& section) {
    const engine* e = pool.engine_of(section);
    if (e == nullptr)
        return {
            errc::missing_engine,
            fmt::format(
                "{}: missing_engine: lane {} holds a pending section: expected engine {}, found "
                "{} given to open; give it to open_options::engines as well (hf::all_engines() "
                "has every one)",
                pool.file->path(), section.lane, engine_names(section.begin.engine),
                engine_names(engine_bits_of(pool.engines)))};
    if (status s = check_records(pool, section); !s.ok()) return s;
    if (section.in_words)
        if (status s = check_named(pool, section); !s.ok()) return s;
    if (section.earlier != nullptr)
        if (status s = check_records(pool, *section.earlier); !s.ok()) return s;
    return e->check(pool, section);
}

/// The tables of a torn pool may be of another moment than its logs: a block that a log names may
/// lie in a chunk that has blocks of another size by now.
refused_lane check_chunks(const pool::impl& pool, std::span<const pending_section> pending) {
    const heap& blocks = pool.blocks.durable();
    std::vector<std::uint64_t> named;
    const auto names = [](const record_view& r) { return r.offset != 0 && names_block(r.kind); };
    for_each_newest_first(pending, [&](const pending_section& section) {
        for (const record_view& r : section.records)
            if (names(r)) named.push_back(r.offset);
    });
    std::ranges::sort(named);
    refused_lane out = check_taken(pool, pending);
    for_each_newest_first(pending, [&](const pending_section& section) {
        for (const record_view& r : section.records) {
            if (!names(r) || !out.why.ok()) continue;
            const block b{r.offset, r.bytes};
            if (blocks.allocated_at(b.offset).bytes == b.bytes) continue;
            const bool slab = blocks.is_slab(b.bytes);
            const std::uint64_t first = blocks.chunk_of(b);
            if (slab && blocks.allocates_here(b)) continue;
            const std::uint64_t end = slab ? first + blocks.chunk_bytes() : b.offset + b.bytes;
            bool others = false;
            for (std::uint64_t chunk = first; chunk < end; chunk += blocks.chunk_bytes())
                blocks.for_each_slot(chunk, granule_bytes, [&](std::uint64_t slot) {
                    others =
                        others || !std::ranges::binary_search(named, chunk + slot * granule_bytes);
                });
            if (others)
                out = {section.lane,
                       refusal(pool.file->path(), errc::corrupt,
                               fmt::format(
                                   "lane {} names a block at {:#x} of {} bytes: expected no other "
                                   "blocks in its chunk, found some",
                                   section.lane, b.offset, b.bytes))};
        }
    });
    return out;
}

refused_lane first_refused(const pool::impl& pool, std::span<const pending_section> pending) {
    for (const pending_section& section : pending)
        if (status s = check_section(pool, section); !s.ok()) return {section.lane, std::move(s)};
    refused_lane out = check_frees(pool, pending);
    return out.why.ok() && pool.salvage ? check_chunks(pool, pending) : out;
}

} // namespace

status check_pending(pool::impl& pool, lanes_found& found) {
    for (;;) { // each time there is one lane less
        const refused_lane refused = first_refused(pool, found.pending);
        if (refused.why.ok() || !salvages(pool, refused.why)) return refused.why;
        give_up(pool, found, refused.lane, refused.why);
    }
}

namespace {

/// Whether no block that the sections took is allocated.
[[maybe_unused]] bool taken_blocks_free(const pool::impl& pool,
                                        std::span<const pending_section> pending) {
    const heap& blocks = pool.blocks.durable();
    bool free = true;
    for_each_newest_first(pending, [&](const pending_section& section) {
        for (const record_view& r : section.records) {
            const bool taken = r.kind == record_kind::alloc || r.kind == record_kind::staged ||
                               r.kind == record_kind::segment;
            if (taken && r.offset != 0 && blocks.bit(r.offset)) free = false;
        }
    });
    return free;
}

} // namespace

status put_blocks_back(pool::impl& pool, lanes_found& found) {
    const std::span<const pending_section> pending = found.pending;
    for ([[maybe_unused]] const pending_section& section : pending)
        HF_ASSERT_SLOW(section.sound && pool.engine_of(section) != nullptr); // check_pending
    const hf::medium pm = pool.file->medium();
    heap& blocks = pool.blocks.durable();
    // A killed process may have left a mark that is stored and not durable (commit_marks.hpp, 2),
    // or such a word that names a root or a block's owner. A section that the process finished must
    // not become pending again, and nothing reachable may be lost, once anything else has changed.
    if (!pool.file->was_clean()) {
        flush_marks(pool);
        pm.flush(pool.file->roots(), sizeof(root_words));
        if (const migration_record* const record = migration_of(pool))
            pm.flush(record, sizeof *record);
    }
    const auto dirty = [&](const void* word) { pm.flush(word, word_bytes); };
    // What sections took becomes free, what they freed becomes allocated; then both are claimed.
    const auto retract_taken = [&](const pending_section& section) {
        for (const record_view& r : section.records) {
            const bool taken = r.kind == record_kind::alloc || r.kind == record_kind::staged;
            if (taken && r.offset != 0) blocks.retract({r.offset, r.bytes}, dirty);
        }
    };
    const auto publish_freed = [&](const pending_section& section) {
        for (const record_view& r : section.records)
            if (r.kind == record_kind::free) blocks.publish({r.offset, r.bytes}, dirty);
    };
    std::ranges::for_each(pending, retract_taken);
    std::ranges::for_each(pending, publish_freed);
    for (const pending_section& section : pending) { // it may have freed what that one took
        if (section.earlier == nullptr) continue;
        retract_taken(*section.earlier);
        publish_freed(*section.earlier);
    }
    std::vector<refused_lane> foreign;
    for_each_newest_first(pending, [&](const pending_section& section) {
        for (const record_view& r : section.records) {
            const bool named = r.kind == record_kind::alloc || r.kind == record_kind::staged ||
                               r.kind == record_kind::segment;
            const bool refused = !foreign.empty() && foreign.back().lane == section.lane;
            if (!named || r.offset == 0 || refused) continue;
            if (pool.blocks.claim({r.offset, r.bytes})) continue;
            foreign.push_back(
                {section.lane,
                 refusal(
                     pool.file->path(), errc::corrupt,
                     fmt::format(
                         "lane {} names a block at {:#x} of {} bytes: expected one that is free, "
                         "found another's, or other blocks in its chunk",
                         section.lane, r.offset, r.bytes))});
        }
    });
    for (const refused_lane& refused : foreign) {
        if (!pool.salvage) return refused.why;
        give_up(pool, found, refused.lane, refused.why);
    }
    if (!foreign.empty()) start_anew(pool, found);
    pm.fence();
    HF_ASSERT_SLOW(taken_blocks_free(pool, found.pending));
    return {};
}

} // namespace hf
