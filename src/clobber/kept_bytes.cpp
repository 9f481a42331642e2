// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <clobber/kept_bytes.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace hf::clobber {

status can_roll_back(const pool::impl& pool, const pending_section& pending) {
    const pool_file& file = *pool.file;
    if (pool.salvage) return {};
    const auto refuse = [&](const char* why) {
        return status{errc::torn,
                      fmt::format("{}: torn: lane {}: its section cannot be rolled back for "
                                  "certain: {}; complete it with recovery_policy::complete{}",
                                  file.path(), pending.lane, why, last_way_out(file))};
    };
    if ((file.dropped_bytes() & engine_clobber) != 0)
        return refuse(
            "it ran without clobber::options::keep_overwritten, in a build that knows no such "
            "thing, or before the machine went down");
    if (std::ranges::any_of(pending.records,
                            [](const record_view& r) { return r.kind == record_kind::unkept; }))
        return refuse("the pool had no room left to keep what it overwrote");
    if (file.stores_in_doubt())
        return refuse("the machine went down, and stores may have persisted whose old bytes did "
                      "not");
    return {};
}

} // namespace hf::clobber
