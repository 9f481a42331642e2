// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What every store under holdfast-kv has in common: options, answers, and how long items live.
#pragma once

#include <kv/protocol/protocol.hpp>

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

/// The treatment of a pool that a failure of the machine may have torn (errc::torn).
enum class when_torn : std::uint8_t {
    refuse,
    salvage, // open it: its items are whole, their values may be of other moments
    discard, // set it aside and begin with an empty one
};

struct store_options {
    std::string path;
    hf::mode mode = hf::mode::process;
    std::uint64_t max_bytes = 64ULL << 20;   // the pool grows to, at first (memory_limit.hpp)
    std::uint32_t item_bytes_max = 1U << 20; // of an item: header, key and value
    when_torn torn = when_torn::refuse;
    bool create = true;                 // make the pool if it is missing
    bool evict = true;                  // false: refuse to store when the pool is full
    bool look_through = false;          // all of the pool before it is used; refuse a damaged one
    std::uint32_t (*clock)() = nullptr; // Unix seconds; null: the system's (tests set it)
    /// Gets a line for people when damage is found while the store is used; null: stderr does.
    void (*on_damage)(const std::string& line) = nullptr;
};

// The marks of an item that meta commands set; durable.
inline constexpr std::uint8_t mark_stale = 1;  // was invalidated
inline constexpr std::uint8_t mark_sent = 2;   // a client has won the right to renew it
inline constexpr std::uint8_t mark_binary = 4; // its key was sent in base64

/// An item as a reader sees it during a call.
struct item_view {
    std::string_view value;
    std::uint32_t flags;
    std::uint64_t cas;
    std::uint32_t exptime; // this and what follows: as before this look
    std::uint8_t marks;
    bool fetched;
    std::uint32_t last_access;
    bool made = false; // by this request
    bool won = false;  // the right to renew it, by this request
};

/// The report of a call that changes an item.
struct change {
    std::uint64_t cas = 0;         // new
    std::uint64_t number = 0;      // new
    std::uint32_t exptime = 0;     // old
    bool made = false;             // of a number, which was not there
    bool met = false;              // there was a live one
    std::uint64_t value_bytes = 0; // old, when there was one

    void meet(std::uint64_t old_value_bytes) noexcept {
        met = true;
        value_bytes = old_value_bytes;
    }
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

/// Whether CAS numbers are compared before a value of this length is parsed as a number. So
/// memcached does it: an empty value, and one that it keeps in pieces, is never a number, whatever
/// CAS the client compares.
constexpr bool compared_first(std::size_t value_bytes) noexcept {
    return value_bytes > 0 && value_bytes <= 512U << 10;
}
/// Whether a value of this length can be a number at all.
constexpr bool may_be_number(std::size_t value_bytes) noexcept {
    return value_bytes > 0 && value_bytes <= 20;
}

/// The item after a look with consequences (gat, mg): its expiry time, its marks, and which client
/// won.
struct item_state {
    std::uint32_t exptime;
    std::uint8_t marks;
    bool won = false;
};
inline item_state state_after(const request& what, item_state is, bool made,
                              std::uint32_t now) noexcept {
    item_state next = is;
    if (made) next.exptime = expiry_of(what.made_exptime, now);
    else if (what.touches) next.exptime = expiry_of(what.exptime, now);
    if (what.what != verb::meta_get) return next;
    const std::uint32_t left = what.recaches_last ? next.exptime : is.exptime;
    const bool runs_out = what.recaches && left != 0 && left < expiry_of(what.recache_exptime, now);
    const bool sent = (is.marks & mark_sent) != 0;
    next.won = made || (!sent && (runs_out || (is.marks & mark_stale) != 0));
    if (next.won) next.marks |= mark_sent;
    return next;
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
    /// The state after a flush_all that takes effect 'delay_s' from 'now'. next_cas() returns a
    /// number above that of every item so far.
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
