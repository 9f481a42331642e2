// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What every store under holdfast-kv has in common: options, answers, and how long items live.
#pragma once

#include <holdfast/pool.hpp>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>

namespace hf::kv {

enum class outcome : std::uint8_t {
    stored,
    not_stored,
    exists,
    not_found,
    done,
    not_a_number,
    too_large,
    no_memory,
    damaged, // the part of the pool that holds the key
};

struct store_options {
    std::string path;
    hf::mode mode = hf::mode::process;
    std::uint64_t max_bytes = 64ULL << 20;   // limit of the pool, kept in it when it is made
    std::uint32_t item_bytes_max = 1U << 20; // of an item: header, key and value
    bool salvage = false;
    bool create = true;                 // make the pool when there is none
    bool evict = true;                  // false: refuse to store when the pool is full
    bool look_through = false;          // all of the pool before it is used; refuse a damaged one
    std::uint32_t (*clock)() = nullptr; // Unix seconds; null: the system's (tests set it)
    /// Gets a line for people when damage is found while the store is used; null: stderr does.
    void (*on_damage)(const std::string& line) = nullptr;
};

/// What a reader may look at while it is called.
struct item_view {
    std::string_view value;
    std::uint32_t flags;
    std::uint64_t cas;
};

/// One class of item sizes, as `stats items` and `stats slabs` show it.
struct size_class_view {
    std::uint64_t bytes_max, items, item_bytes, oldest_age_s;
};

/// The system's clock: Unix seconds.
inline std::uint32_t system_clock() {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return static_cast<std::uint32_t>(now.tv_sec);
}

/// The second from which an item is gone that a client gave this expiry time; 0: never.
/// Memcached's rule: up to thirty days it counts from now, beyond that from 1970.
inline std::uint32_t expiry_of(std::int64_t exptime, std::uint32_t now) noexcept {
    constexpr std::int64_t relative_max_s = 60 * 60 * 24 * 30;
    if (exptime == 0) return 0;
    if (exptime < 0) return 1; // long gone
    if (exptime <= relative_max_s) return now + static_cast<std::uint32_t>(exptime);
    return exptime > UINT32_MAX ? UINT32_MAX : static_cast<std::uint32_t>(exptime);
}

enum class life : std::uint8_t { live, expired, flushed };

/// flush_all's lasting effect. A delayed flush needs no timer: it is a condition on 'stored'.
struct flush_state {
    std::uint64_t cas = 0;    // items with this cas or a smaller one are gone
    std::uint32_t before = 0; // items stored before this second are gone
    std::uint32_t due = 0;    // from this second on, items stored before it are gone; 0: none

    std::uint64_t times() const noexcept { return std::uint64_t{due} << 32 | before; }
    static flush_state of(std::uint64_t cas, std::uint64_t times) noexcept {
        return {cas, static_cast<std::uint32_t>(times), static_cast<std::uint32_t>(times >> 32)};
    }
    /// The state after a flush_all that is to take effect 'delay_s' from 'now'. next_cas() gives
    /// a number above that of every item so far.
    template <class NextCas>
    flush_state flushed(std::int64_t delay_s, std::uint32_t now, NextCas&& next_cas) const {
        flush_state next = *this;
        if (next.due != 0 && next.due <= now) next.before = std::max(next.before, next.due);
        next.due = 0;
        if (delay_s > 0) next.due = std::max(expiry_of(delay_s, now), now);
        if (next.due <= now) { // now: no later item has a cas as small
            next.due = 0;
            next.cas = next_cas();
        }
        return next;
    }
    life life_of(std::uint64_t item_cas, std::uint32_t exptime, std::uint32_t stored,
                 std::uint32_t now) const noexcept {
        if (exptime != 0 && exptime <= now) return life::expired;
        if (item_cas <= cas || stored < before) return life::flushed;
        return due != 0 && due <= now && stored < due ? life::flushed : life::live;
    }
};

} // namespace hf::kv
