// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Blocks that the engine keeps its own state in: how one is made, and the chains that a thread's
// block grows by, of more places of locks and of more frames.
//
// (1) Such a block reads as its head and zeros before a word names it; the word is durable before
//     the block is allocated. engine::settle() cures a crash in between.
// (2) A chain only ever grows. So the number of a place, or of a block of frames, means the same at
//     any time.
#pragma once

#include <base/assert.hpp>
#include <justdo/format.hpp>
#include <open/pool_impl.hpp>

#include <cstdint>
#include <cstring>
#include <unordered_map>
#include <vector>

namespace hf::justdo {

/// How many places of a block a section uses: fewer in crash programs, whose sections then grow
/// with a few locks.
struct places_used {
    unsigned own = lock_places;
    unsigned more = ~0U;
};
inline constinit places_used places_in_use;

/// A block that fill() completes, named by 'word': (1). 3 ordering points. Null: the pool is full.
template <class Fill>
void* make_own_block(pool::impl& pool, std::uint64_t bytes, purpose what, std::uint64_t& word,
                     Fill&& fill) {
    HF_ASSERT_SLOW(word == 0);
    const hf::medium pm = pool.file->medium();
    thread_cache none;
    const block b = pool.blocks.reserve(none, bytes, what);
    pool.blocks.release_all(none); // what came with it
    if (b.offset == 0) return nullptr;
    void* const made = pool.at(b.offset);
    std::memset(made, 0, b.bytes);
    fill(made, b);
    pm.flush(made, b.bytes);
    pm.fence();
    pm.store_word(&word, b.offset);
    pm.fence(); // upholds (1)
    pool.blocks.durable().publish(b, [&](const void* at) { pm.flush(at, word_bytes); });
    pm.fence();
    return made;
}

/// Visits the heads of a chain's blocks, in order. Requires: the chain is sound (inspect.hpp).
template <class Visit>
void for_each_more(const pool::impl& pool, std::uint64_t first, Visit&& visit) {
    for (std::uint64_t at = first; at != 0;) {
        auto& head = *static_cast<more_head*>(pool.at(at));
        visit(head);
        at = head.next;
    }
}

inline constexpr unsigned no_place = ~0U;

/// The places of a thread's lock log behind those of its own block, and what they hold: volatile.
class more_places {
public:
    /// A place that holds this; no_place: none does.
    unsigned find(std::uint64_t word) const noexcept {
        if (held_.empty()) [[likely]]
            return no_place;
        const auto it = held_.find(word);
        return it == held_.end() ? no_place : it->second;
    }
    /// A free place; no_place: every place holds something.
    unsigned free() const noexcept { return free_.empty() ? no_place : free_.back(); }
    /// Requires: free() has returned 'place'.
    void hold(unsigned place, std::uint64_t word);
    /// Requires: the place holds this.
    void let_go(unsigned place, std::uint64_t word) noexcept;

    lock_place& at(unsigned place) noexcept;
    template <class Visit> void for_each_held(Visit&& visit) const {
        for (const auto& [word, place] : held_) visit(word);
    }
    unsigned held_count() const noexcept { return static_cast<unsigned>(held_.size()); }
    /// The number of the first place that is not there.
    unsigned end() const noexcept { return parts_.empty() ? lock_places : parts_.back().end(); }
    /// Adds a block behind the others. Its places hold what its words in the pool already contain.
    void add(more_head& block);

private:
    struct part {
        lock_place* places;
        unsigned first, count;
        unsigned end() const noexcept { return first + count; }
    };
    std::vector<part> parts_;
    std::unordered_multimap<std::uint64_t, unsigned> held_; // word -> place
    std::vector<unsigned> free_;                            // used from the back
};

} // namespace hf::justdo
