// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The words that name a pool's first blocks: the root object, superblocks of engines.
#include <base/assert.hpp>
#include <base/log.hpp>
#include <open/migration.hpp>
#include <open/pool_impl.hpp>
#include <pool/file_checks.hpp>

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <new>
#include <string>

namespace hf {

namespace {

struct anchor {
    const char* what; // null: the superblock of an engine
    std::uint64_t offset, bytes;
    std::uint64_t* word;      // that names it, or the record that does
    std::uint32_t engine = 0; // its bit
    bool of_record = false;

    std::string name() const {
        return what != nullptr ? what : "the superblock of engine " + engine_names(engine);
    }
    std::string with_all() const { // what goes with the word
        if (of_record) return "the record of a migration";
        return what != nullptr ? what : "all that engine " + engine_names(engine) + " keeps";
    }
};
/// The record of a migration comes first: it may name others.
std::array<anchor, 4 + engines_max> anchors(const pool::impl& pool) noexcept {
    root_words* const words = pool.file->roots();
    const named_object root = root_of(pool), next = next_root_of(pool), old = old_root_of(pool);
    std::uint64_t* const record = &words->migration_offset;
    const bool moved = root.offset != words->root_offset;
    std::array<anchor, 4 + engines_max> all{
        {{"the record of a migration", *record, sizeof(migration_record), record, 0, true},
         {"the root object", root.offset, root.bytes, moved ? record : &words->root_offset, 0,
          moved},
         {"the new root object", next.offset, next.bytes, record, 0, true},
         {"the old root object", old.offset, old.bytes, record, 0,
          true}}}; // freed again, for certain
    for (unsigned e = 0; e < engines_max; ++e)
        all[4 + e] = {nullptr, words->anchors[e], pool.file->shape().chunk_bytes,
                      &words->anchors[e], 1U << e};
    return all;
}

status no_block(const pool::impl& pool, const std::string& what, std::uint64_t offset,
                std::uint64_t bytes) {
    return {
        errc::corrupt,
        fmt::format("{}: corrupt: {}: expected a block of the heap, found offset {:#x}, {} bytes",
                    pool.file->path(), what, offset, bytes)};
}
status among_others(const pool::impl& pool, const std::string& what, std::uint64_t offset) {
    return {
        errc::corrupt,
        fmt::format(
            "{}: corrupt: {} at offset {:#x}: expected no other blocks in its chunk, found some",
            pool.file->path(), what, offset)};
}

void give_up(pool::impl& pool, std::uint64_t& word, const std::string& what, const status& why) {
    const hf::medium pm = pool.file->medium();
    pm.store_word(&word, 0);
    pm.fence();
    pool.file->warn(
        fmt::format("{}: salvaged: {} is given up: {}", pool.file->path(), what, why.what()));
}

} // namespace

status check_anchors(const pool::impl& pool) {
    const heap& blocks = pool.blocks.durable();
    for (const anchor& a : anchors(pool)) {
        if (a.offset == 0) continue;
        const block b{a.offset, blocks.rounded(a.bytes)};
        if (!blocks.well_formed(b)) return no_block(pool, a.name(), a.offset, a.bytes);
        // A block that a crash left half allocated is withdrawn first. After a clean close only
        // migrations leave such a block.
        if (pool.file->was_clean() && !a.of_record && !blocks.may_hold(b))
            return among_others(pool, a.name(), a.offset);
    }
    return {};
}

status settle_anchor(pool::impl& pool, const char* what, std::uint64_t offset,
                     std::uint64_t bytes) {
    if (offset == 0) return {};
    heap& blocks = pool.blocks.durable();
    const block b{offset, blocks.rounded(bytes)};
    if (!blocks.well_formed(b)) return no_block(pool, what, offset, bytes);
    if (blocks.allocated_at(b.offset).bytes == b.bytes) return {};
    const hf::medium pm = pool.file->medium();
    const auto dirty = [&](const void* word) { pm.flush(word, word_bytes); };
    if (!pool.blocks.claim(b)) return among_others(pool, what, offset);
    blocks.publish(b, dirty);
    pm.fence();
    HF_ASSERT_SLOW(blocks.allocated_at(b.offset).bytes == b.bytes);
    return {};
}

void withdraw_anchor(pool::impl& pool, std::uint64_t offset, std::uint64_t bytes) noexcept {
    heap& blocks = pool.blocks.durable();
    const block b{offset, blocks.rounded(bytes)};
    if (offset == 0 || !blocks.well_formed(b)) return;
    if (blocks.allocated_at(b.offset).bytes == b.bytes) return;
    // Its bit may have persisted without its chunk's entry.
    const hf::medium pm = pool.file->medium();
    blocks.retract(b, [&](const void* word) { pm.flush(word, word_bytes); });
}

void withdraw_anchors(pool::impl& pool) noexcept {
    for (const anchor& a : anchors(pool)) withdraw_anchor(pool, a.offset, a.bytes);
}

/// Salvage gives up an anchor that is not a block of its own, with all that it names: otherwise the
/// chunk's blocks would be handed out over it, and the next open would refuse what it found. In a
/// pool that is not stored to, an anchor in a chunk of other blocks is shown as it is. Returns
/// false then.
static bool salvage_anchor(pool::impl& pool, const anchor& a, const status& why) {
    const heap& blocks = pool.blocks.durable();
    if (pool.file->read_only() && blocks.well_formed({a.offset, blocks.rounded(a.bytes)})) {
        pool.file->warn(fmt::format("{}: salvaged: {}", pool.file->path(), why.what()));
        return false;
    }
    give_up(pool, *a.word, a.with_all(), why);
    return true;
}

void forget_state(pool::impl& pool, const engine& whose, const status& why) {
    std::uint64_t& word = pool.file->roots()->anchor(whose.bit());
    if (word == 0) return;
    give_up(pool, word, fmt::format("all that engine {} keeps", whose.name()), why);
}

status settle_anchors(pool::impl& pool) {
    for (std::size_t i = 0; i < anchors(pool).size();) {
        const anchor a = anchors(pool)[i++];
        status s = settle_anchor(pool, a.name().c_str(), a.offset, a.bytes);
        if (s.ok()) continue;
        if (!pool.salvage) return s;
        if (salvage_anchor(pool, a, s)) i = 0; // the root is another one without the record
    }
    return {};
}

static std::string root_differs(std::uint64_t expected, std::uint64_t found) {
    return fmt::format(
        "the root object: expected {} bytes, found {}: its type is not what it was when the pool "
        "was made; open the pool with the build that made it, or give the changed type another "
        "open_options::layout and give open_options::migrate",
        expected, found);
}

status pool::impl::check_root(std::uint64_t bytes) const {
    named_object root = root_of(*this);
    if (const named_object next = next_root_of(*this); file->migrates() && next.offset != 0)
        root = next; // the root when this open returns
    if (bytes == 0 || root.offset == 0 || root.bytes == bytes) return {};
    return refusal(file->path(), errc::wrong_layout, root_differs(bytes, root.bytes));
}

result<void*> make_anchored(pool::impl& pool, const char* what, std::uint64_t bytes,
                            std::uint64_t* offset, std::uint64_t* size) {
    HF_ASSERT_SLOW(bytes != 0);
    HF_ASSERT_SLOW(*offset == 0);
    const hf::medium pm = pool.file->medium();
    thread_cache cache;
    const block b = pool.blocks.reserve(cache, bytes);
    pool.blocks.release_all(cache); // what came with it
    if (b.offset == 0) return pool.blocks.full(what);
    std::memset(pool.at(b.offset), 0, b.bytes);
    pm.flush(pool.at(b.offset), b.bytes);
    if (size != nullptr) pm.store_word(size, bytes);
    pm.fence(); // it reads as zeros before anything names it
    pm.store_word(offset, b.offset);
    pm.fence(); // named before it is allocated: settle_anchors cures a crash in between
    pool.blocks.durable().publish(b, [&](const void* word) { pm.flush(word, word_bytes); });
    pm.fence();
    HF_ASSERT_SLOW(pool.blocks.durable().allocated_at(*offset).bytes == b.bytes);
    return pool.at(b.offset);
}

void* pool::root_or_say(std::size_t bytes) noexcept {
    const result<void*> found = root_bytes(bytes);
    if (found) return *found;
    say(severity::error, found.error().what().c_str());
    return nullptr;
}

result<void*> pool::root_bytes(std::size_t bytes) try {
    impl& pool = *impl_;
    if (status here = pool.usable(); !here.ok()) return here;
    if (pool.file->reads_beside())
        return refusal(pool.file->path(), errc::permission,
                       "opened with read_only and shared: expected what its writer's engines let "
                       "others read, found a request for the root object, which the writer "
                       "changes in place");
    std::scoped_lock held{pool.root_lock};
    root_words* words = pool.file->roots();
    if (words->root_offset != 0) {
        if (words->root_bytes != bytes)
            return refusal(pool.file->path(), errc::wrong_layout,
                           root_differs(bytes, words->root_bytes));
        return pool.at(words->root_offset);
    }
    return make_anchored(pool, "the root object", bytes, &words->root_offset, &words->root_bytes);
} catch (const std::bad_alloc&) { // thrown before anything was stored
    return out_of_memory(path());
}

} // namespace hf
