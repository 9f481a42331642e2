// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Putting old bytes back: what roll back and re-execute have in common.
#pragma once

#include <base/assert.hpp>
#include <log/lane.hpp>

#include <cstring>

namespace hf {

/// Which records restore_old_bytes() puts back.
enum class restored : std::uint8_t {
    inputs,    // old_bytes: what a re-execution reads
    everything // and overwritten: what the section had stored over unread
};

/// Restores the records' bytes, newest first, so that of several records of one word the oldest
/// bytes win; durable when it returns. Idempotent. Requires: the records are bounded.
inline void restore_old_bytes(pool_file& file, const pending_section& from, restored what) {
    for (std::size_t i = from.records.size(); i-- > 0;) {
        const record_view& r = from.records[i];
        if (r.kind != record_kind::old_bytes &&
            (what == restored::inputs || r.kind != record_kind::overwritten))
            continue;
        HF_ASSERT_SLOW(r.bytes <= file.size_bytes());
        HF_ASSERT_SLOW(r.offset <= file.size_bytes() - r.bytes);
        // A hostile log may name its own bytes.
        std::memmove(file.base() + r.offset, r.payload, r.bytes);
        file.medium().flush(file.base() + r.offset, r.bytes);
    }
    file.medium().fence();
}

} // namespace hf
