// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makes room when the pool has reached its limit. Sampling approximates least recently used, as in
// Redis: look at some items of a random instance, and evict the one unused for longest. There are
// no lists, so nothing must be kept durable or rebuilt.
//
// A freed block serves only requests of its own size class until its whole chunk is free. So
// victims come from the requested class. If it has none, or has much younger items than others, a
// whole window of memory is cleared: every item in it is evicted. Items of whole chunks are too few
// to be met by sampling: they wait in a queue in the order of their use.
//
// Dead items are reclaimed without evictions (-M), too. Then a window is cleared at a time: living
// items gather in other chunks, and whole chunks become free for any size.
#include "../../hash.hpp"
#include "section_store.hpp"
#include "sections.hpp"
#include <kv/protocol/journal.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/author/blocks.hpp>
#include <holdfast/author/staged.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <shared_mutex>
#include <utility>

namespace hf::kv {
namespace {

constexpr unsigned attempts_max = 32;
constexpr unsigned sample_items = 12;             // looked at to find one victim
constexpr std::uintptr_t window_bytes = 64 << 10; // the allocator's chunk, or a multiple of it
constexpr std::uintptr_t block_step = 16;         // every block starts at a multiple of this

constexpr std::uintptr_t round_up(std::uintptr_t number, std::uintptr_t step) noexcept {
    return (number + step - 1) / step * step;
}

std::uint64_t random_word() noexcept {
    thread_local std::uint64_t state = reinterpret_cast<std::uintptr_t>(&state) | 1;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 0x9e3779b97f4a7c15ULL;
}

// The hash of what looks like an item in this block, 0 when nothing does. The block may be freed,
// and filled by its new owner, while it is looked at here; what was read is believed only after the
// item has been found in its table under the lock.
__attribute__((no_sanitize("thread", "address"))) std::uint64_t
hash_if_item(std::uintptr_t address, std::size_t block, std::uint64_t seed) noexcept {
    if (block < sizeof(item)) return 0;
    const auto* const raw = reinterpret_cast<const volatile item*>(address);
    const std::size_t key_bytes = raw->key_bytes;
    if (key_bytes == 0 || key_bytes > std::min(key_bytes_max, block - sizeof(item))) return 0;
    const auto* const bytes = reinterpret_cast<const volatile char*>(raw + 1);
    const std::uint64_t hash = raw->node.hash;
    char key[key_bytes_max];
    for (std::size_t i = 0; i < key_bytes; ++i) key[i] = bytes[i];
    return apps::hash_of(key, key_bytes, seed) == hash ? hash : 0;
}

item* random_item(structures::hash_table& table) noexcept {
    for (unsigned probe = 0; probe < 4; ++probe)
        if (auto* node = structures::first_from(&table, random_word()))
            return reinterpret_cast<item*>(node);
    return nullptr;
}

/// The same; if chance finds none in a table of few items, the first one.
item* some_item(structures::hash_table& table) noexcept {
    if (item* const found = random_item(table); found != nullptr) return found;
    constexpr unsigned ranges = 64; // of hashes
    for (std::uint64_t i = 0; i < ranges; ++i)
        if (auto* node = structures::first_from(&table, i << 58))
            return reinterpret_cast<item*>(node);
    return nullptr;
}

/// Calls look(const item&) for up to 'count' items: for every item if there are no more, else for
/// random ones, perhaps some twice. The second way also serves a table that was far larger once: it
/// has too many empty buckets to walk.
template <class Look>
void look_at_some(structures::hash_table& table, std::uint64_t count, Look look) {
    constexpr unsigned buckets_max = 64;
    const std::uint64_t here = structures::size(&table);
    if (here <= count &&
        !structures::reserved(&table, buckets_max * structures::hash_table::nodes_per_bucket + 1)) {
        structures::for_each(&table, [&](structures::hash_node* node) {
            look(*reinterpret_cast<const item*>(node));
        });
        return;
    }
    for (std::uint64_t i = 0; i < std::min(here, count); ++i)
        if (const item* const it = some_item(table); it != nullptr) look(*it);
}

} // namespace

staged section_store::stage(std::size_t key_bytes, std::size_t value_bytes,
                            thread_counts& counted) {
    const std::size_t bytes = item_bytes(key_bytes, value_bytes);
    for (unsigned attempt = 0;; ++attempt) {
        auto block = hf::staged::in(pool_, bytes);
        if (block) return std::move(*block);
        const errc why = block.error().code(); // of a disk that fails the log has a line
        if (why != errc::pool_full && why != errc::io_error) return {};
        if (attempt == attempts_max || !make_room(bytes, attempt, counted)) return {};
    }
}

// The result of a look at one instance.
struct section_store::sample {
    item* usable = nullptr; // longest unused item whose block the request can have
    item* oldest = nullptr; // longest unused item of any size
};

bool section_store::evict_some(std::size_t bytes, thread_counts& counted, std::uintptr_t& oldest) {
    const std::size_t wanted = rounded_size(pool_, bytes);
    const auto serves = [&](const item& it) {
        const auto block = rounded_size(pool_, item_bytes(it.key_bytes, it.value_bytes));
        // Blocks of whole chunks come back as chunks, which serve anyone.
        return block == wanted || (block > wanted && block >= window_bytes);
    };
    for (unsigned tries = 0; tries < 32; ++tries) {
        instance& in = root_->instances[random_word() % instance_count];
        const std::unique_lock held(in.lock, std::try_to_lock);
        if (!held || structures::size(&in.table) == 0 || !believed(in)) continue;
        const std::uint32_t when = now();
        sample seen;
        for (unsigned i = 0; i < sample_items; ++i) {
            item* const it = random_item(in.table);
            if (it == nullptr) continue;
            if (!is_live(*it, when)) {
                const bool enough = serves(*it);
                give_up(in, *it, when, counted);
                if (enough) return true;
                seen = {}; // may have pointed to it
                continue;
            }
            if (seen.oldest == nullptr || it->last_access < seen.oldest->last_access)
                seen.oldest = it;
            if ((seen.usable == nullptr || it->last_access < seen.usable->last_access) &&
                serves(*it))
                seen.usable = it;
        }
        if (seen.oldest != nullptr) oldest = reinterpret_cast<std::uintptr_t>(seen.oldest);
        if (seen.usable == nullptr) continue;
        // Classes age alike in the long run: now and then the class with the old items shrinks.
        const std::uint32_t age = when - seen.usable->last_access;
        if (when - seen.oldest->last_access > 2 * age + 60 && random_word() % 64 == 0) return false;
        give_up(in, *seen.usable, when, counted);
        return true;
    }
    return false;
}

bool section_store::make_room(std::size_t bytes, unsigned attempt, thread_counts& counted) {
    if (evict_ && attempt < attempts_max / 2) {
        std::uintptr_t oldest = 0;
        const bool whole_chunks = rounded_size(pool_, bytes) >= window_bytes;
        if (whole_chunks ? evict_large(bytes, counted) : evict_some(bytes, counted, oldest))
            return true;
        if (oldest != 0 && clear_window(oldest, bytes, evict_, counted)) return true;
    }
    const std::uintptr_t window = choose_window(bytes, evict_);
    (void)clear_window(window, bytes, evict_, counted); // false: other threads took what was in it
    return window != 0;
}

// Blocks that cannot be evicted: the root and the segments of the tables. Sorted.
std::vector<std::uintptr_t> section_store::pinned_blocks() {
    const std::scoped_lock held{look_lock_};
    (void)look_at_frame();
    return pinned_;
}

// An address in a window for 'bytes' that has an item which may go, and nothing that must stay: the
// address of a randomly met item, moved aside if something is in its way. 0: none was met.
std::uintptr_t section_store::choose_window(std::size_t bytes, bool living) {
    const std::uintptr_t span = round_up(bytes, window_bytes);
    const auto pool_begin = reinterpret_cast<std::uintptr_t>(root_) - pool_.offset_of(root_);
    const auto pinned = pinned_blocks();
    for (unsigned tries = 0; tries < instance_count; ++tries) {
        instance& in = root_->instances[random_word() % instance_count];
        const std::shared_lock held(in.lock);
        const item* const it = believed(in) ? random_item(in.table) : nullptr;
        if (it == nullptr || (!living && is_live(*it, now()))) continue;
        const auto address = reinterpret_cast<std::uintptr_t>(it);
        if (!living && span == window_bytes)
            return address; // what goes serves its own size at least
        const auto next = std::ranges::upper_bound(pinned, address);
        const std::uintptr_t from =
            next == pinned.begin() ? pool_begin : round_up(*std::prev(next) + 1, window_bytes);
        const std::uintptr_t to = (next == pinned.end() ? pool_begin + pool_.size_bytes() : *next) /
                                  window_bytes * window_bytes;
        if (address < from || address >= to || from + span > to) continue;
        return std::clamp(address / window_bytes * window_bytes, from, to - span);
    }
    return 0;
}

// Gives up every item, or the dead ones alone, in a stretch of memory that has room for 'bytes' and
// begins with the chunk of this address; 0: in none. True when something went.
bool section_store::clear_window(std::uintptr_t around, std::size_t bytes, bool living,
                                 thread_counts& counted) {
    const std::uintptr_t begin = around / window_bytes * window_bytes;
    const std::uintptr_t end = around == 0 ? 0 : begin + round_up(bytes, window_bytes);
    bool any = false;
    for (std::uintptr_t at = begin; at < end;) {
        // Only allocated blocks: the allocator finds them after every opening.
        const std::size_t block = block_bytes(pool_, reinterpret_cast<const void*>(at));
        if (const std::uint64_t hash = hash_if_item(at, block, seed_); hash != 0)
            any |= give_up_linked(at, hash, living, counted);
        at += std::max<std::uintptr_t>(block, block_step);
    }
    // The window is of use to other sizes only when no block of it is at hand.
    if (any) return_spare_blocks(pool_);
    return any;
}

item* section_store::linked_at(instance& in, std::uintptr_t address, std::uint64_t hash) noexcept {
    for (auto* node = structures::chain(&in.table, hash); node != nullptr && node->hash == hash;
         node = node->next)
        if (reinterpret_cast<std::uintptr_t>(node) == address) return reinterpret_cast<item*>(node);
    return nullptr;
}

// Takes back a dead item, or evicts a living one; watchers hear of an eviction before it happens.
void section_store::give_up(instance& in, item& it, std::uint32_t when, thread_counts& counted) {
    const bool live = is_live(it, when);
    journal* const events = live ? wanting(counted, watched::evictions) : nullptr;
    if (events != nullptr) {
        const item_view is = view_of(it);
        events->evicted(watched_of(it.key(), is.value.size()), is.fetched,
                        is.exptime == 0 ? -1 : std::int64_t{is.exptime} - when,
                        when - is.last_access);
    }
    unlink(in, &it);
    counted.add(live ? count::evictions : count::reclaimed);
}

bool section_store::give_up_linked(std::uintptr_t address, std::uint64_t hash, bool living,
                                   thread_counts& counted) {
    instance& in = at(hash);
    const std::lock_guard held(in.lock);
    item* const it = believed(in) ? linked_at(in, address, hash) : nullptr;
    const std::uint32_t when = now();
    if (it == nullptr || (!living && is_live(*it, when))) return false;
    give_up(in, *it, when, counted);
    return true;
}

bool section_store::is_large(const item& it) noexcept {
    return item_bytes(it.key_bytes, it.value_bytes) > window_bytes / 2;
}

// Entries of items that are replaced stay behind. When there are too many, all are forgotten and
// find_large() starts again.
void section_store::note_large(const item& it) {
    const std::lock_guard held(large_lock_);
    if (large_.size() > 2 * pool_.growth_limit() / window_bytes + 1024) {
        large_.clear();
        large_found_ = false;
    }
    large_.push_back({reinterpret_cast<std::uintptr_t>(&it), it.node.hash, it.last_access});
}

// Finds the large items that were stored before this process started, when they are first needed.
void section_store::find_large() {
    {
        const std::lock_guard held(large_lock_);
        if (std::exchange(large_found_, true)) return;
    }
    std::vector<large_item> found;
    for (instance& in : root_->instances) {
        const std::shared_lock held(in.lock);
        if (!believed(in)) continue;
        structures::for_each(&in.table, [&](structures::hash_node* node) {
            const auto& it = *reinterpret_cast<const item*>(node);
            if (!is_large(it)) return;
            found.push_back({reinterpret_cast<std::uintptr_t>(node), node->hash, it.last_access});
        });
    }
    std::ranges::sort(found, {}, &large_item::last_access);
    const std::lock_guard held(large_lock_);
    large_.insert(large_.begin(), found.begin(), found.end());
}

bool section_store::evict_large(std::size_t bytes, thread_counts& counted) {
    find_large();
    const std::size_t wanted = rounded_size(pool_, bytes);
    std::uintptr_t smaller = 0;
    for (unsigned tries = 0; tries < 64; ++tries) {
        large_item next{};
        {
            const std::lock_guard held(large_lock_);
            if (large_.empty()) break;
            next = large_.front();
            large_.pop_front();
        }
        instance& in = at(next.hash);
        const std::lock_guard held(in.lock);
        item* const it = believed(in) ? linked_at(in, next.address, next.hash) : nullptr;
        if (it == nullptr) continue; // replaced or removed since
        const std::uint32_t when = now();
        if (it->last_access > next.last_access && is_live(*it, when)) {
            note_large(*it); // used since: queue again
            continue;
        }
        const bool enough =
            rounded_size(pool_, item_bytes(it->key_bytes, it->value_bytes)) >= wanted;
        give_up(in, *it, when, counted);
        if (enough) return true;
        smaller = next.address;
        break;
    }
    // A smaller one leaves a gap: its neighbours make it wide enough.
    return clear_window(smaller, bytes, true, counted);
}

void section_store::reap(thread_counts& counted) {
    return_spare_blocks(pool_); // in a full pool others need this thread's spare blocks
    for (unsigned windows = 0; windows < 4; ++windows)
        if (!clear_window(choose_window(1, false), 1, false, counted)) return;
}

std::vector<size_class_view> section_store::sample_classes(std::uint64_t& total_bytes) {
    constexpr unsigned per_instance = 8;
    std::array<size_class_view, 64> classes{};
    std::uint64_t looked_at = 0, looked_at_bytes = 0, items = 0;
    const std::uint32_t when = now();
    for (instance& in : root_->instances) {
        const std::shared_lock held(in.lock);
        if (!believed(in)) continue;
        items += structures::size(&in.table);
        look_at_some(in.table, per_instance, [&](const item& it) {
            const std::size_t bytes = item_bytes(it.key_bytes, it.value_bytes);
            auto& c = classes[static_cast<std::size_t>(std::bit_width(bytes - 1))];
            ++c.items;
            c.item_bytes += bytes;
            c.oldest_age_s = std::max<std::uint64_t>(c.oldest_age_s, when - it.last_access);
            ++looked_at;
            looked_at_bytes += bytes;
        });
    }
    std::vector<size_class_view> found;
    total_bytes = 0;
    if (looked_at == 0) return found;
    const double scale = static_cast<double>(items) / static_cast<double>(looked_at);
    const auto scaled = [&](std::uint64_t n) {
        return static_cast<std::uint64_t>(static_cast<double>(n) * scale + 0.5);
    };
    total_bytes = scaled(looked_at_bytes);
    for (std::size_t log2 = 0; log2 < classes.size(); ++log2) {
        auto& c = classes[log2];
        if (c.items == 0) continue;
        found.push_back({1ULL << log2, scaled(c.items), scaled(c.item_bytes), c.oldest_age_s});
    }
    return found;
}

} // namespace hf::kv
