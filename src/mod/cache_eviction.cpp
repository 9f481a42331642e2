// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a cache evicts. There is no list in the order of use, which every read would have to change:
// an eviction looks at some entries, from where the last one stopped, and takes those that were not
// used for longest.
#include <mod/cache_impl.hpp>
#include <mod/node_space.hpp>
#include <mod/store_impl.hpp>

#include <utility>

namespace hf::mod {
namespace {

using detail::cache_entries;
using detail::cache_entry;

constexpr std::uint64_t looked_at_each = 16; // entries, for each that must go

} // namespace

// Makes bytes_ what 'gone', which is erased, leaves of 'left', and counts it.
void cache::impl::account(std::uint64_t left, const std::vector<candidate>& gone) noexcept {
    for (const candidate& each : gone) {
        left -= std::min(left, each.bytes);
        count(each.over ? expirations_ : evictions_);
    }
    bytes_ = left;
}

// Returns how many it found: in a damaged pool a walk meets some that a search does not find.
result<std::size_t> cache::impl::erase_all(const std::vector<candidate>& all) {
    std::vector<candidate> gone;
    status erased = items_.update([&](auto& batch) {
        for (const candidate& each : all)
            if (batch.erase(each.key)) gone.push_back(each);
    });
    if (!erased.ok()) return erased;
    account(bytes(), gone);
    return gone.size();
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

// In a full pool: erases an entry whose memory a string of so many bytes can have. If it meets no
// such entry, or with 'whole_chunk', it erases all entries in a stretch of memory with room for the
// string, from the chunk of the entry that was not used for longest.
bool cache::impl::clear_memory(std::size_t string_bytes, bool whole_chunk) {
    constexpr std::uint64_t looked_at_max = 512;
    const auto longest = [](std::vector<candidate>& of) {
        return std::ranges::max_element(of, {}, &candidate::idle);
    };
    auto seen = look(whole_chunk ? UINT64_MAX : looked_at_max, 0, nullptr);
    if (seen.empty()) return false;
    std::vector<candidate> gone;
    if (!whole_chunk) {
        gone = seen;
        std::erase_if(gone, [&](const candidate& each) {
            return !string_memory_serves(each.key.size() + each.stored.size(), string_bytes);
        });
        if (!gone.empty()) gone = {*longest(gone)};
    }
    if (gone.empty()) {
        const auto chunk_of = [&](const candidate& each) {
            return reinterpret_cast<std::uintptr_t>(each.stored.data()) / chunk_bytes_;
        };
        const std::uintptr_t first = chunk_of(*longest(seen));
        const std::uintptr_t chunks =
            (slots_at(1) + string_bytes + sizeof(detail::blob)) / chunk_bytes_ + 1;
        gone = std::move(seen);
        std::erase_if(gone, [&](const candidate& each) {
            return chunk_of(each) - first >= chunks; // unsigned: those before it, too
        });
    }
    mod::store& memory = items_.its_root()->its_store();
    // An erasure needs nodes, too. Where all of them find too few, each alone may find enough: what
    // one gives up serves the next.
    const auto erased = [&](const std::vector<candidate>& all) {
        const auto count = erase_all(all);
        return count && *count != 0;
    };
    bool any = erased(gone);
    if (!any)
        for (const candidate& each : gone) {
            if (!memory.collect().ok()) return false;
            any = erased({each}) || any;
        }
    return any && memory.collect().ok();
}

} // namespace hf::mod
