// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a cache has in its pool: a trie of byte strings, whose values begin with a head.
#pragma once

#include <holdfast/author/mod/key.hpp>
#include <holdfast/mod/detail/hash_trie.hpp>
#include <holdfast/mod/detail/keyed.hpp>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace hf::mod::detail {

/// The first bytes of a value.
struct cache_head {
    std::uint32_t stored_s; // the cache's time of the put, in seconds since 1970
    std::uint32_t ttl_s;    // time to live; 0: no end
};
static_assert(sizeof(cache_head) == 8 && std::is_trivially_copyable_v<cache_head>);

/// The last second of a put that a clock may say, in 2096. Later ones come from a clock that was
/// never set, or from a damaged pool: no time goes on from them. A process that runs for ten years
/// from here on still has seconds that stored_s can hold.
inline constexpr std::uint32_t latest_put_s = UINT32_MAX - 10U * 366 * 24 * 3600;

/// A value in the pool. One that is too short for a head, in a damaged pool, is one that expired.
struct cache_entry {
    cache_head head{0, 1};
    std::string_view value;

    explicit cache_entry(std::string_view stored) noexcept {
        if (stored.size() < sizeof head) return;
        std::memcpy(&head, stored.data(), sizeof head);
        value = stored.substr(sizeof head);
    }
    bool is_over(std::uint64_t now_s) const noexcept {
        if (head.ttl_s == 0) return false;
        if (head.stored_s > latest_put_s && head.stored_s > now_s) return true; // nobody knows when
        return std::uint64_t{head.stored_s} + head.ttl_s <= now_s;
    }
};

struct cache_trie : trie<std::string, std::string, hash<std::string>, equal_to<std::string>> {
    static constexpr const kind& its_kind = cache_kind;
};

class cache_entries : public keyed_handle<cache_entries, cache_trie> {
    using keyed_handle::keyed_handle;
};

} // namespace hf::mod::detail
