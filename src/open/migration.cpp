// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <base/log.hpp>
#include <open/migration.hpp>
#include <pool/file_checks.hpp>

#include <holdfast/migration.hpp>

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <new>

namespace hf {

migration_record* migration_of(const pool::impl& pool) noexcept {
    const std::uint64_t at = pool.file->roots()->migration_offset;
    const heap& blocks = pool.blocks.durable();
    if (at == 0 || !blocks.well_formed({at, blocks.rounded(sizeof(migration_record))}))
        return nullptr;
    return static_cast<migration_record*>(pool.at(at));
}

named_object root_of(const pool::impl& pool) noexcept {
    const migration_record* const record = migration_of(pool);
    if (record != nullptr && record->next_offset != 0 && !pool.file->migrating())
        return {record->next_offset, record->next_bytes};
    const root_words* const words = pool.file->roots();
    return {words->root_offset, words->root_bytes};
}

named_object next_root_of(const pool::impl& pool) noexcept {
    const migration_record* const record = migration_of(pool);
    if (record == nullptr || !pool.file->migrating()) return {0, 0};
    return {record->next_offset, record->next_bytes};
}

named_object old_root_of(const pool::impl& pool) noexcept {
    const migration_record* const record = migration_of(pool);
    if (record == nullptr || pool.file->migrating()) return {0, 0};
    if (record->old_offset != 0) return {record->old_offset, record->old_bytes};
    const root_words* const words = pool.file->roots();
    if (record->next_offset == 0 || record->next_offset == words->root_offset) return {0, 0};
    return {words->root_offset, words->root_bytes};
}

namespace {

void replace_root(pool::impl& pool, migration_record& record) noexcept {
    root_words& words = *pool.file->roots();
    const hf::medium pm = pool.file->medium();
    if (record.next_offset == 0 || record.next_offset == words.root_offset) return;
    if (const named_object old = old_root_of(pool); record.old_offset == 0 && old.offset != 0) {
        pm.store_word(&record.old_bytes, old.bytes);
        pm.store_word(&record.old_offset, old.offset);
        pm.fence(); // from here on the root words may be torn
    }
    pm.store_word(&words.root_bytes, record.next_bytes);
    pm.store_word(&words.root_offset, record.next_offset);
    pm.fence();
    HF_ASSERT_SLOW(root_of(pool).offset == words.root_offset);
}

} // namespace

status finish_migration(pool::impl& pool) try {
    if (pool.file->reads_beside()) return {}; // its writer's
    migration_record* const record = migration_of(pool);
    if (record == nullptr) return {};
    HF_ASSERT_SLOW(!pool.file->migrating());
    root_words& words = *pool.file->roots();
    const hf::medium pm = pool.file->medium();
    // Found before anything is stored: that may need memory.
    const std::array<block, 2> freed{pool.blocks.find(old_root_of(pool).offset),
                                     pool.blocks.find(words.migration_offset)};
    replace_root(pool, *record);
    const auto dirty = [&](const void* word) { pm.flush(word, word_bytes); };
    for (const block& b : freed)
        if (b.bytes != 0) pool.blocks.durable().retract(b, dirty);
    pm.fence(); // named until they are free: settle_anchors() allocates them again
    pm.store_word(&words.migration_offset, 0);
    pm.fence();
    thread_cache cache;
    for (const block& b : freed)
        if (b.bytes != 0) pool.blocks.release(cache, b);
    pool.blocks.release_all(cache);
    return {};
} catch (const std::bad_alloc&) {
    return out_of_memory(pool.file->path());
}

status pool::impl::migrate(pool& whole, const open_options& options) {
    impl& self = *whole.impl_;
    if (status s = self.file->begin_migration(); !s.ok()) return s;
    if (migration_of(self) == nullptr) {
        auto made = make_anchored(self, "the record of a migration", sizeof(migration_record),
                                  &self.file->roots()->migration_offset, nullptr);
        if (!made) return made.error();
    }
    migration on_the_way(whole, self.file->layout(), self.file->layout_hash());
    const status wanted = options.migrate(on_the_way);
    if (status s = self.usable(); !s.ok()) return s; // it has forked
    if (!wanted.ok()) {
        const migration_record& record = *migration_of(self);
        if (!on_the_way.refused_ || record.next_offset != 0 || record.cursor != 0) return wanted;
        const status back = self.file->end_migration(pool_file::migration_end::where_it_was);
        if (back.ok()) (void)finish_migration(self); // or the next open
        return wanted;
    }
    if (const open_section busy = self.find_open_section())
        return refusal(
            self.file->path(), errc::in_use,
            fmt::format("open_options::migrate has returned, and {} is open", busy.name()));
    if (status s = self.check_root(options.root_bytes); !s.ok()) return s;
    self.settle_for_close(); // before the header vouches for it
    if (status s = self.file->end_migration(pool_file::migration_end::there); !s.ok()) return s;
    return finish_migration(self);
}

status migration::refuse() {
    refused_ = true;
    return in_.internals().file->other_layout();
}

std::uint64_t* migration::cursor() const noexcept { return &migration_of(in_.internals())->cursor; }

result<void*> migration::new_root_bytes(std::size_t bytes) try {
    pool::impl& pool = in_.internals();
    if (status here = pool.usable(); !here.ok()) return here;
    std::scoped_lock held{pool.root_lock};
    migration_record& record = *migration_of(pool);
    if (record.next_offset == 0)
        return make_anchored(pool, "the new root object", bytes, &record.next_offset,
                             &record.next_bytes);
    if (record.next_bytes == bytes) return pool.at(record.next_offset);
    return refusal(pool.file->path(), errc::wrong_layout,
                   fmt::format("the new root object: expected {} bytes, found {} of an earlier "
                               "try of this migration",
                               bytes, record.next_bytes));
} catch (const std::bad_alloc&) { // thrown before anything was stored
    return out_of_memory(in_.path());
}

void migration::report(std::uint64_t done, std::uint64_t total) noexcept try {
    constexpr std::int64_t ms_between = 1000;
    const std::int64_t now = std::chrono::duration_cast<std::chrono::milliseconds>(
                                 std::chrono::steady_clock::now().time_since_epoch())
                                 .count();
    std::int64_t last = reported_ms_.load();
    if (last != 0 && now - last < ms_between) return;
    if (!reported_ms_.compare_exchange_strong(last, now)) return; // another thread's line
    say(severity::note, fmt::format("{}: migration from layout \"{}\": {} of {} done", in_.path(),
                                    from_layout_, done, total)
                            .c_str());
} catch (const std::bad_alloc&) { // a line less in the log
}

} // namespace hf
