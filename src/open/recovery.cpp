// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Opening a pool: check, read the lanes, ask the engines, mark open, put blocks back, let the
// engines recover, in a stated order (engine.hpp).
//
// (1) Until every check has passed nothing is written: a refusal leaves the file as it was.
// (2) Before any section is recovered, the blocks that pending logs name are put back as they were
//     before those sections, and kept out of circulation: a section being re-executed can neither
//     be given a block that another one's log holds, nor lose one that it has yet to read.
// (3) Everything here is idempotent: a crash while recovering is cured by opening again.
#include <base/assert.hpp>
#include <open/pending.hpp>
#include <open/registry.hpp>
#include <pool/file_checks.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <numeric>
#include <tuple>
#include <utility>

namespace hf {

status engine::check(const pool::impl& pool, const pending_section& section) const {
    return refusal(
        pool.file->path(), errc::corrupt,
        fmt::format("lane {} holds a section: expected an engine that has sections, found {}",
                    section.lane, name()));
}

status engine::recover_all(pool::impl&, std::span<pending_section>, const recovery_order&,
                           engine_recovery&) const {
    return {}; // never asked: check() accepts no section
}

namespace {

/// Salvage: gives up the parts of engines' own state that it cannot believe, or all of it.
void give_up_unsound(pool::impl& pool) {
    if (!pool.salvage) return;
    for (const engine_ptr& e : pool.engines) {
        if (!salvages(pool, e->inspect(pool))) continue;
        e->give_up_unsound(pool);
        if (const status still = e->inspect(pool); !still.ok()) forget_state(pool, *e, still);
    }
}

/// Gives each engine its own sections, in the order of their verbs.
status recover_engines(pool::impl& pool, std::vector<pending_section>& pending,
                       const recovery_order& order) {
    std::ranges::sort(pending, {}, [&](const pending_section& p) {
        const engine& e = *pool.engine_of(p);
        return std::tuple(e.row().verb, e.row().bit, p.lane);
    });
    for (auto first = pending.begin(); first != pending.end();) {
        const engine& e = *pool.engine_of(*first);
        const auto end = std::find_if(first, pending.end(), [&](const pending_section& p) {
            return pool.engine_of(p) != &e;
        });
        engine_recovery done{e.name(), static_cast<std::uint32_t>(end - first)};
        if (status s = e.recover_all(pool, {first, end}, order, done); !s.ok()) return s;
        // Each section has ended in one way, and has its mark, or its log of words has ended.
        HF_ASSERT_SLOW(std::accumulate(done.ended_by.begin(), done.ended_by.end(), 0U) ==
                       done.sections_pending);
        for ([[maybe_unused]] const pending_section& p : std::span(first, end))
            HF_ASSERT_SLOW(p.in_words ? lane_at(*pool.file, p.lane)->logged == 0
                                      : lane_at(*pool.file, p.lane)->committed >= p.begin.epoch);
        pool.report.add(done);
        HF_ASSERT_SLOW(end == pending.end() || e.row().verb <= pool.engine_of(*end)->row().verb);
        first = end;
    }
    return {};
}

} // namespace

/// Without memory it fails as a crash would: its changes so far stay in the file.
status pool::impl::check_and_recover(const recovery_order& order,
                                     const std::function<void()>& checked) try {
    HF_ASSERT_SLOW(!file->marked_open());
    HF_ASSERT_SLOW(report.sections_pending == 0);
    lanes_found found;
    status s;
    const auto before_recovery = [&] {
        try { // no exception leaves a guarded run
            s = read_lanes(*this, found);
            if (s.ok()) s = check_pending(*this, found);
            for (const engine_ptr& e : engines)
                if (s.ok())
                    if (status its = e->inspect(*this); !salvages(*this, its)) s = std::move(its);
            if (s.ok())
                if (status its = check_anchors(*this); !salvages(*this, its)) s = std::move(its);
            // If it were marked open first, the pool would seem to have left pending what lanes
            // say.
            const bool belied = file->was_clean() && salvage;
            if (s.ok() && belied) start_anew_durably(*this, found);
            std::vector<extent> spare;
            if (s.ok() && file->may_have_holes()) spare = blocks.durable().spare();
            if (s.ok()) s = file->mark_open(spare);
            if (s.ok() && !belied) start_anew(*this, found);
            if (s.ok()) give_up_unsound(*this);
            if (s.ok()) { // before the first claim
                withdraw_anchors(*this);
                for (const engine_ptr& e : engines) e->withdraw(*this);
            }
            if (s.ok()) s = put_blocks_back(*this, found);
            if (s.ok()) s = settle_anchors(*this);
            for (const engine_ptr& e : engines) {
                if (s.ok()) s = e->settle(*this);
                if (!salvages(*this, s)) continue;
                forget_state(*this, *e, s);
                s = {};
            }
        } catch (const std::bad_alloc&) {
            s = out_of_memory(file->path());
        }
    };
    if (!guard_signals || file->in_memory()) before_recovery();
    else if (const auto how = fault_guard::run(fault_guard::against::cut_files, before_recovery);
             how.stopped)
        return {how.code, fmt::format("{}: {}: {}", file->path(), name(how.code), how.why)};
    if (!s.ok()) return s;
    checked();
    HF_ASSERT_SLOW(file->marked_open() || file->read_only()); // from here on recovery stores
    registry::add(this);
    s = recover_engines(*this, found.pending, order);
    return s.ok() ? file->settle_place() : s;
} catch (const std::bad_alloc&) {
    return out_of_memory(file->path());
}

} // namespace hf
