// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <log/restore.hpp>
#include <section/roll_back.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace hf {

status can_roll_back(const pool::impl& pool, const pending_section& pending) {
    const pool_file& file = *pool.file;
    if (engine_of(pending.begin.engine)->sections != engine_sections::inputs || pool.salvage)
        return {};
    const auto refuse = [&](const char* why) {
        return status{errc::torn,
                      fmt::format("{}: torn: lane {}: its section cannot be rolled back "
                                  "for certain: {}; complete it with recovery_policy::complete{}",
                                  file.path(), pending.lane, why, last_way_out(file))};
    };
    if (!file.kept_bytes())
        return refuse(
            "it ran without open_options::keep_overwritten, in a build that knows no such "
            "thing, or before the machine went down");
    if (std::ranges::any_of(pending.records,
                            [](const record_view& r) { return r.kind == record_kind::unkept; }))
        return refuse("the pool had no room left to keep what it overwrote");
    if (file.stores_in_doubt())
        return refuse("the machine went down, and stores may have persisted whose old bytes did "
                      "not");
    return {};
}

void roll_back(pool::impl& pool, const pending_section& pending) {
    HF_ASSERT_SLOW(pending.sound);
    HF_ASSERT_SLOW(can_roll_back(pool, pending).ok());
    pool_file& file = *pool.file;
    restore_old_bytes(file, pending, restored::everything);
    store_mark(file.medium(), lane_at(file, pending.lane), pending.begin.epoch);
    file.medium().fence();
    release_blocks(pool, pending, false);
}

void release_blocks(pool::impl& pool, const pending_section& section, bool happened) {
    thread_cache cache;
    for (const record_view& r : section.records) {
        const bool taken = r.kind == record_kind::alloc || r.kind == record_kind::staged;
        if (r.kind != record_kind::segment && (happened ? r.kind != record_kind::free : !taken))
            continue;
        if (r.offset != 0) pool.blocks.release(cache, {r.offset, r.bytes});
    }
    pool.blocks.release_all(cache);
}

} // namespace hf
