// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a cache evicts. There is no list in the order of use, which every read would have to change:
// an eviction looks at some entries, from where the last one stopped, and takes those that were not
// used for longest.
#include <mod/cache_impl.hpp>
#include <mod/node_space.hpp>
#include <mod/store_impl.hpp>

#include <chrono>
#include <functional>
#include <iterator>
#include <utility>

namespace hf::mod {
namespace {

using detail::cache_entries;
using detail::cache_entry;
using detail::cache_trie;

constexpr std::uint64_t looked_at_each = 16; // entries, for each that must go
constexpr std::size_t refused_max = 512;     // entries in a row that find no nodes to be erased
constexpr std::size_t others_max = 256;      // entries that go for the nodes that a stretch lacks
constexpr unsigned waits_max = 64;           // for readers: half of them yield, half sleep

} // namespace

// Makes bytes_ what 'gone', which is erased, leaves of 'left', and counts it.
void cache::impl::account(std::uint64_t left, const std::vector<candidate>& gone) noexcept {
    for (const candidate& each : gone) {
        left -= std::min(left, each.bytes);
        count(each.over ? expirations_ : evictions_);
    }
    bytes_ = left;
}

// In one commit. Returns how many it found: in a damaged pool a walk meets some that a search does
// not find.
result<std::size_t> cache::impl::erase_all(std::span<const candidate> all) {
    std::vector<candidate> gone;
    status erased = items_.update([&](auto& batch) {
        for (const candidate& each : all)
            if (batch.erase(each.key)) gone.push_back(each);
    });
    if (!erased.ok()) return erased;
    account(bytes(), gone);
    return gone.size();
}

// The same where the pool may be full. An erasure needs nodes, too: it makes its path anew. Where
// all of them find too few, fewer may find enough, and what those give up serves the next. 'all'
// keeps those that find none even alone, behind the others. Errors: it erased nothing.
result<std::size_t> cache::impl::erase_in_pieces(std::vector<candidate>& all) {
    std::size_t count = 0;
    for (bool more = true; more && !all.empty();) {
        more = false;
        std::vector<candidate> refused;
        status why;
        for (std::size_t from = 0, piece = all.size(); from < all.size();) {
            const std::size_t tried = std::min(piece, all.size() - from);
            if (const auto erased = erase_all(std::span(all).subspan(from, tried))) {
                count += *erased;
                more = more || *erased != 0;
                from += tried;
                piece = 2 * tried;
            } else if (erased.error().code() != errc::pool_full) {
                return erased.error();
            } else if (tried > 1) {
                piece = tried / 2;
            } else {
                why = erased.error();
                refused.push_back(all[from++]);
                if (refused.size() == refused_max) from = all.size();
            }
        }
        if (count == 0 && !why.ok()) return why;
        all = std::move(refused);
    }
    return count;
}

// Erases the first one that finds nodes for it. If all fail, the first has those of the reserve.
bool cache::impl::erase_first(std::span<const candidate> all) {
    for (const candidate& each : all.first(std::min<std::size_t>(all.size(), refused_max))) {
        const auto erased = erase_all({&each, 1});
        if (!erased && erased.error().code() != errc::pool_full) return false;
        if (erased && *erased != 0) return true;
    }
    if (reserve_.empty() || all.empty()) return false;
    give_up_reserve();
    const auto erased = erase_all(all.first(1));
    (void)frees_what_goes();
    hold_reserve();
    return erased && *erased != 0;
}

// Fills the reserve, as far as there is memory: two nodes of each size of leaf, and a path of inner
// ones for as many entries as a pool can have.
void cache::impl::hold_reserve() {
    if (reserve_whole_) return;
    give_up_reserve();
    constexpr unsigned levels = 8, leaves = 2;
    reserve_.reserve(levels + leaves * cache_trie::capacity);
    mod::store& memory = items_.its_root()->its_store();
    node_space& space = memory.internals().space();
    // Known slots before chunks that others could have.
    if (!memory.wait_for_trace().ok() || !space.load_all().ok()) return;
    reserve_whole_ = true;
    node_cache from;
    const auto hold = [&](std::uint64_t bytes, unsigned count) {
        for (; count > 0; --count)
            if (const ref node = space.take(from, bytes); node != 0) reserve_.push_back(node);
            else reserve_whole_ = false;
    };
    hold(sizeof(detail::inner), levels);
    for (unsigned entries = 1, last = class_count; entries <= cache_trie::capacity; ++entries) {
        const std::uint64_t bytes = cache_trie::layout.bytes(entries);
        if (class_of(bytes) != std::exchange(last, class_of(bytes))) hold(bytes, leaves);
    }
    space.give_all(from);
}

void cache::impl::give_up_reserve() noexcept {
    node_space& space = items_.its_root()->its_store().internals().space();
    for (const ref node : reserve_) space.give_now(node);
    reserve_.clear();
    reserve_whole_ = false;
}

// Evicts what is over the bound. Where no entry finds nodes to be erased, all go: that needs none.
status cache::impl::evict_surplus() {
    while (bytes() > max_bytes_) {
        auto gone = to_go(bytes() - max_bytes_, nullptr);
        const auto erased = erase_in_pieces(gone);
        if (erased && *erased == 0) break; // damaged: a search finds none of them
        if (erased || (erased.error().code() == errc::pool_full && erase_first(gone))) continue;
        if (erased.error().code() != errc::pool_full) return erased.error();
        const std::size_t all = items_.size();
        if (status cleared = items_.clear(); !cleared.ok()) return cleared;
        evictions_.fetch_add(all, std::memory_order_relaxed);
        bytes_ = 0;
    }
    return {};
}

cache::impl::candidate cache::impl::candidate_of(std::string_view key, std::string_view stored,
                                                 std::uint64_t now) const noexcept {
    const cache_entry found(stored);
    const std::uint32_t used = uses_.at(key).load(std::memory_order_relaxed);
    const std::uint32_t puts = puts_.load(std::memory_order_relaxed);
    const std::uint64_t idle = used != 0 ? puts - used
                                         : (std::uint64_t{1} << 32) + now -
                                               std::min<std::uint64_t>(now, found.head.stored_s);
    return {key, stored, bytes_of_stored(key, stored), idle, found.is_over(now)};
}

// The next entries in the order of hashes, without 'spared': at least so many, and so many bytes of
// them; or all.
std::vector<cache::impl::candidate> cache::impl::look(std::uint64_t entries, std::uint64_t weight,
                                                      const std::string_view* spared) {
    using iterator = cache_entries::iterator;
    std::vector<candidate> seen;
    seen.reserve(2 * looked_at_each);
    std::uint64_t sum = 0;
    bool turned = false;
    const std::uint64_t now = now_s();
    iterator at(items_.base(), items_.word(), iterator::from_hash{hand_});
    for (std::uint64_t left = items_.size(); left > 0; --left) {
        if (seen.size() >= entries && sum >= weight) break;
        if (at == items_.end() && !std::exchange(turned, true)) at = items_.begin();
        if (at == items_.end()) break; // damaged: it is said to have more
        const auto [key, stored] = *at;
        if (spared == nullptr || key != *spared) {
            seen.push_back(candidate_of(key, stored, now));
            sum += seen.back().bytes;
        }
        ++at;
    }
    hand_ = at == items_.end() ? 0 : hash<std::string>{}((*at).first);
    return seen;
}

// Entries of at least so many bytes: of those that it looks at, what has expired, and then what was
// not used for longest.
std::vector<cache::impl::candidate> cache::impl::to_go(std::uint64_t need,
                                                       const std::string_view* spared) {
    const std::uint64_t most = need > UINT64_MAX / looked_at_each ? need : need * looked_at_each;
    auto seen = look(looked_at_each, most, spared);
    // A heap: few are taken out.
    const auto stays = [](const candidate& a, const candidate& b) {
        return a.over != b.over ? b.over : a.idle < b.idle;
    };
    std::ranges::make_heap(seen, stays);
    std::uint64_t freed = 0;
    auto staying = seen.end();
    while (staying != seen.begin() && (freed < need || seen.front().over)) {
        std::ranges::pop_heap(seen.begin(), staying, stays);
        freed += (--staying)->bytes;
    }
    seen.erase(seen.begin(), staying);
    return seen;
}

// Behind a commit: gives back what it gave up. False: somebody reads a version that has it, so that
// more evictions would free nothing either. A get does so for a moment, longer if its thread has to
// wait for a processor: it gets some time.
bool cache::impl::frees_what_goes() {
    mod::store& memory = items_.its_root()->its_store();
    for (unsigned wait = 0;; ++wait) {
        if (!memory.collect().ok()) return false;
        if (!mod::store::impl::holds_back(*items_.its_root())) return true;
        if (wait == waits_max) return false;
        if (wait < waits_max / 2) std::this_thread::yield();
        else std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
}

// In a full pool: erases an entry whose memory a string of so many bytes can have (0: any). Without
// such an entry, or with 'whole_chunk', it erases all entries in a stretch of memory with room for
// the string, from the chunk of the entry that was not used for longest. False: it gave nothing
// back.
bool cache::impl::clear_memory(std::string_view spared, std::size_t string_bytes,
                               bool whole_chunk) {
    constexpr std::uint64_t looked_at_max = 512;
    if (mod::store::impl::holds_back(*items_.its_root()) && !frees_what_goes()) return false;
    hold_reserve();
    auto seen = look(whole_chunk ? UINT64_MAX : looked_at_max, 0, &spared);
    std::ranges::sort(seen, std::ranges::greater{}, &candidate::idle);
    if (!whole_chunk) {
        std::vector<candidate> serving = seen;
        std::erase_if(serving, [&](const candidate& each) {
            return string_bytes != 0 &&
                   !string_memory_serves(each.key.size() + each.stored.size(), string_bytes);
        });
        if (erase_first(serving)) return frees_what_goes();
    }
    const auto chunk_of = [&](std::string_view stored) {
        return reinterpret_cast<std::uintptr_t>(stored.data()) / chunk_bytes_;
    };
    const std::uintptr_t chunks =
        (slots_at(1) + string_bytes + sizeof(detail::blob)) / chunk_bytes_ + 1;
    const auto its = items_.get(spared);
    const auto first = std::ranges::find_if(seen, [&](const candidate& each) {
        return !its || chunk_of(*its) - chunk_of(each.stored) >= chunks; // unsigned: see below
    });
    if (first == seen.end()) return erase_first(seen) && frees_what_goes();
    const auto in_stretch = [&, from = chunk_of(first->stored)](const candidate& each) {
        return chunk_of(each.stored) - from < chunks; // unsigned: none before it, too
    };
    std::vector<candidate> stretch;
    std::ranges::copy_if(seen, std::back_inserter(stretch), in_stretch);
    std::erase_if(seen, in_stretch);
    std::span<const candidate> others(seen);
    // Those that find no nodes keep the stretch: the nodes of their size are with others.
    bool any = false;
    for (std::size_t more = std::min<std::size_t>(others.size(), others_max);; --more) {
        const auto erased = erase_in_pieces(stretch);
        if (!erased && erased.error().code() != errc::pool_full) return false;
        any = any || (erased && *erased != 0);
        if (stretch.empty() || more == 0) break;
        any = erase_first(others.first(1)) || any;
        others = others.subspan(1);
    }
    return any && frees_what_goes();
}

} // namespace hf::mod
