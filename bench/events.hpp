// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What happened between two looks at the counters.
#pragma once

#include <holdfast/author/persist.hpp>

#include <initializer_list>

namespace hf::bench {

/// 'to' plus what happened between 'before' and 'now'.
inline void add_events(persist::counters& to, const persist::counters& before,
                       const persist::counters& now) {
    for (const auto counter :
         {&persist::counters::flushes, &persist::counters::fences, &persist::counters::nt_stores,
          &persist::counters::ordering_points, &persist::counters::log_entries,
          &persist::counters::log_bytes, &persist::counters::pm_bytes, &persist::counters::sections,
          &persist::counters::kept_entries, &persist::counters::kept_bytes})
        to.*counter += now.*counter - before.*counter;
}

} // namespace hf::bench
