// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The words that name a pool's first blocks: the root object, MOD's superblock.
#include <base/assert.hpp>
#include <open/pool_impl.hpp>
#include <pool/file_checks.hpp>

#include <fmt/format.h>

#include <cstring>
#include <new>

namespace hf {
namespace {

/// Makes the block that a word of root_words names allocated: such words are written first.
status settle_anchor(pool::impl& pool, const char* what, std::uint64_t offset,
                     std::uint64_t bytes) {
    if (offset == 0) return {};
    heap& blocks = pool.blocks.durable();
    const block b{offset, blocks.rounded(bytes)};
    if (!blocks.well_formed(b))
        return {errc::corrupt,
                fmt::format("{}: corrupt: {} at offset {:#x}, {} bytes, is no block of the heap",
                            pool.file->path(), what, offset, bytes)};
    if (blocks.allocated_at(b.offset).bytes == b.bytes) return {};
    const hf::medium pm = pool.file->medium();
    const auto dirty = [&](const void* word) { pm.flush(word, word_bytes); };
    // Its bit may have persisted without its chunk's entry.
    blocks.retract(b, dirty);
    if (!pool.blocks.claim(b))
        return {errc::corrupt,
                fmt::format("{}: corrupt: {} at offset {:#x} lies in a chunk of other blocks",
                            pool.file->path(), what, offset)};
    blocks.publish(b, dirty);
    pm.fence();
    HF_ASSERT_SLOW(blocks.allocated_at(b.offset).bytes == b.bytes);
    return {};
}

} // namespace

status settle_anchors(pool::impl& pool) {
    const root_words* words = pool.file->roots();
    if (status s = settle_anchor(pool, "root object", words->root_offset, words->root_bytes);
        !s.ok())
        return s;
    return settle_anchor(pool, "MOD's superblock", words->mod_offset,
                         pool.file->shape().chunk_bytes);
}

void* pool::root_or_end(std::size_t bytes) noexcept {
    const result<void*> found = root_bytes(bytes);
    if (found) return *found;
    const errc why = found.error().code();
    if (why == errc::wrong_layout || why == errc::in_use) fatal("%s", found.error().what().c_str());
    return nullptr;
}

result<void*> pool::root_bytes(std::size_t bytes) try {
    impl& pool = *impl_;
    if (status here = pool.usable(); !here.ok()) return here;
    std::scoped_lock held{pool.root_lock};
    root_words* words = pool.file->roots();
    const hf::medium pm = pool.file->medium();
    if (words->root_offset != 0) {
        if (words->root_bytes != bytes)
            return refusal(pool.file->path(), errc::wrong_layout,
                           fmt::format("the root object: expected {} bytes, found {}", bytes,
                                       words->root_bytes));
        return pool.at(words->root_offset);
    }
    HF_ASSERT_SLOW(bytes != 0);
    thread_cache cache;
    const block b = pool.blocks.reserve(cache, bytes);
    pool.blocks.release_all(cache); // what came with it
    if (b.offset == 0) return refusal(path(), errc::pool_full, "no room for the root object");
    std::memset(pool.at(b.offset), 0, b.bytes);
    pm.flush(pool.at(b.offset), b.bytes);
    pm.store_word(&words->root_bytes, bytes);
    pm.fence(); // the root reads as zeros before anything names it
    pm.store_word(&words->root_offset, b.offset);
    pm.fence(); // named before it is allocated: settle_anchors cures a crash in between
    pool.blocks.durable().publish(b, [&](const void* word) { pm.flush(word, word_bytes); });
    pm.fence();
    HF_ASSERT_SLOW(pool.blocks.durable().allocated_at(words->root_offset).bytes == b.bytes);
    return pool.at(b.offset);
} catch (const std::bad_alloc&) { // thrown before anything was stored
    return out_of_memory(path());
}

} // namespace hf
