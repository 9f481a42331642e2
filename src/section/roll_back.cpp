// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <log/restore.hpp>
#include <log/word_log.hpp>
#include <section/roll_back.hpp>

namespace hf {

void roll_back(pool::impl& pool, const pending_section& pending) {
    HF_ASSERT_SLOW(pending.sound);
    pool_file& file = *pool.file;
    restore_old_bytes(file, pending, restored::everything);
    lane_header* const header = lane_at(file, pending.lane);
    end_word_log(file.medium(), header);
    store_mark(file.medium(), header, pending.begin.epoch);
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
