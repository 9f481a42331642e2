// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The store under holdfast-kv-mod: memcached's operations on one durable map, by functional
// shadowing. The interface is that of section_store.hpp.
//
// (1) An item's value in the map is a head of 24 bytes (cas, flags, times) and the client's bytes.
//     Every change, that of an expiry time too, makes a new value; nothing is stored to in place.
// (2) When a call that changes something returns, the change has been committed: it may be
//     acknowledged (mode pmem: durability::on_return; mode power: when the hf::durable_together
//     around the calls has ended).
// (3) Readers look at a snapshot, which no writer blocks. Writers wait for each other: what a
//     writer has decided on is still true when it commits.
// (4) The time of an item's last use is kept in volatile memory only, by hash and not exactly.
//     After a restart its time of storing replaces it.
#pragma once

#include "face.hpp"
#include "item_store.hpp"
#include <kv/protocol/counters.hpp>
#include <kv/protocol/protocol.hpp>

#include <holdfast/mod/map.hpp>
#include <holdfast/pool.hpp>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hf::kv {

class mod_store {
public:
    static result<std::unique_ptr<mod_store>> open(const store_options& options);

    mod_store(const mod_store&) = delete;
    mod_store& operator=(const mod_store&) = delete;

    /// Calls visit(item_view) and returns true when the key is there. Ordering: 0 points.
    template <class Visit>
    bool get(std::string_view key, thread_counts& counted, Visit&& visit, bool unseen = false);
    template <class Visit>
    bool get_and_change(const request& what, thread_counts& counted, Visit&& visit);

    /// set, add, replace, cas, append, prepend. Ordering: 1 point, 2 in mode pmem; so below.
    outcome write(const request& what, std::string_view value, thread_counts& counted,
                  change& done);
    outcome change_number(const request& what, thread_counts& counted, change& done);
    outcome touch(std::string_view key, std::int64_t exptime, thread_counts& counted);
    outcome remove(const request& what, thread_counts& counted, change& done);
    outcome remove(const request& what, thread_counts& counted) {
        change unused;
        return remove(what, counted, unused);
    }
    outcome remove(std::string_view key, thread_counts& counted) {
        request plain;
        plain.key = key;
        return remove(plain, counted);
    }
    void flush_all(std::int64_t delay_s);

    bool too_large(std::size_t key_bytes, std::size_t value_bytes) const noexcept {
        return item_overhead_bytes + key_bytes + value_bytes + 2 >
               item_bytes_max_; // as in the other engines
    }

    counter_board& counted() noexcept { return counters_; }
    hf::pool& pool() noexcept { return pool_; }
    /// Never known here: keys in a damaged part of the map are missing.
    static bool damaged(std::string_view) noexcept { return false; }
    static std::uint64_t damaged_instances() noexcept { return 0; }
    std::uint64_t item_count() const noexcept { return items_.size(); }
    bool evicts() const noexcept { return evict_; }
    std::uint32_t item_bytes_max() const noexcept { return item_bytes_max_; }
    std::uint32_t now() const noexcept { return clock_(); }
    std::vector<size_class_view> sample_classes(std::uint64_t& total_bytes);
    void reap(thread_counts& counted);
    struct place;
    /// As in section_store.hpp, of the items that there were when 'at' was made. Memory of what is
    /// replaced or removed meanwhile is not free before 'at' is gone.
    template <class Visit> bool visit_next(place& at, Visit&& visit);
    static const char* engine_name() noexcept { return "mod"; }

    /// For tests: whether what the map holds are items.
    bool whole();

private:
    using item_map = mod::map<std::string, std::string>;
    using flush_map = mod::map<std::uint32_t, flush_state>; // one entry, of key 0
    struct item_head {
        std::uint64_t cas; // unique for this content; grows over restarts
        std::uint32_t flags;
        std::uint32_t exptime; // Unix second from which the item is gone; 0: never
        std::uint32_t stored;
        std::uint32_t marks; // mark_stale and its like (face.hpp)
    };
    static_assert(sizeof(item_head) == 24 && std::is_trivially_copyable_v<item_head>);
    struct item {
        item_head head;
        std::string_view value;
    };
    /// An empty item for a value that is shorter than a head, in a damaged pool.
    static item item_in(std::string_view bytes) noexcept {
        item found{};
        if (bytes.size() < sizeof found.head) return found;
        std::memcpy(&found.head, bytes.data(), sizeof found.head);
        found.value = bytes.substr(sizeof found.head);
        return found;
    }

    mod_store(hf::pool opened, const store_options& options, item_map items, flush_map flushes,
              item_map ballast);
    life life_of(const item_head& of, std::uint32_t when) const noexcept;
    enum class use : std::uint8_t { stored, read, other };
    std::atomic<std::uint64_t>& used_at(std::string_view key) noexcept;
    void mark_access(std::string_view key, std::uint32_t when, use how) noexcept;
    item_view view_of(std::string_view key, const item& it) noexcept;
    static bool refuses(const item& it, const request& what) noexcept {
        return what.compares && what.cas != 0 && it.head.cas != what.cas;
    }
    std::uint32_t last_access(std::string_view key, const item_head& of) noexcept;
    std::uint64_t next_cas() noexcept { return cas_.fetch_add(1, std::memory_order_relaxed); }
    void count_dead(life how, thread_counts& counted);

    // Requires: lock_ held.
    bool find_live(std::string_view key, std::uint32_t when, item& found);
    void begin_value(const item_head& head);
    bool keep(std::string_view key, thread_counts& counted);
    bool give_up(std::string_view key);
    bool make_room(std::size_t bytes, thread_counts& counted);
    bool may_go(const item_head& of, std::uint32_t when) const noexcept;
    std::string one_to_go();
    void tell_evicted(std::string_view key, const item& it, std::uint32_t when,
                      thread_counts& counted);
    bool give_up_all(const std::vector<std::string>& keys, thread_counts& counted);
    bool clear_chunk(const std::string& around, thread_counts& counted);
    bool clear_for_large(std::size_t bytes, thread_counts& counted);
    void give_up_run(thread_counts& counted);
    bool evict_some(std::size_t bytes, thread_counts& counted);
    void fill_ballast();
    bool change_locked(const request& what, item_view& seen, thread_counts& counted);
    void forget_dead(std::string_view key, thread_counts& counted);
    template <class Visit> void walk(unsigned count, Visit&& visit);

    hf::pool pool_;
    item_map items_;
    flush_map flushes_;
    item_map ballast_; // what an eviction in a full pool needs for its copies
    std::uint32_t item_bytes_max_;
    bool evict_; // living items; dead ones are reclaimed in any case
    std::uint32_t (*clock_)();
    std::atomic<std::uint64_t> cas_;
    // The contents of flushes_, published after its commit.
    std::atomic<std::uint64_t> flush_cas_{0}, flush_times_{0};
    // By the key's hash: [seconds:63][read since it was stored:1], see (4).
    std::vector<std::atomic<std::uint64_t>> used_;
    std::mutex lock_;
    std::string hand_;  // where the next walk through the items begins
    std::string value_; // the bytes that keep() stores
    counter_board counters_;
};

struct mod_store::place {
    explicit place(mod_store& of) : items(of.items_.snapshot()), next(items.begin()) {}
    place(const place&) = delete;
    place& operator=(const place&) = delete;
    decltype(std::declval<item_map&>().snapshot()) items;
    decltype(items.begin()) next;
    static constexpr bool damaged = false; // not known here
};

template <class Visit> bool mod_store::visit_next(place& at, Visit&& visit) {
    const std::uint32_t when = clock_();
    for (unsigned i = 0; i < 16 && at.next != at.items.end(); ++i, ++at.next) {
        const auto [key, bytes] = *at.next;
        const item it = item_in(bytes);
        if (life_of(it.head, when) == life::live) visit(key, view_of(key, it));
    }
    return at.next != at.items.end();
}

template <class Visit>
bool mod_store::get(std::string_view key, thread_counts& counted, Visit&& visit, bool unseen) {
    const std::uint32_t when = clock_();
    life how = life::live;
    bool there = false;
    {
        const auto now_items = items_.snapshot();
        if (const auto bytes = now_items.get(key)) {
            const item it = item_in(*bytes);
            there = true;
            how = life_of(it.head, when);
            if (how == life::live) {
                visit(view_of(key, it));
                if (!unseen) mark_access(key, when, use::read);
                counted.add(count::get_hits);
                return true;
            }
        }
    }
    counted.add(count::get_misses);
    if (there) {
        count_dead(how, counted);
        forget_dead(key, counted);
    }
    return false;
}

template <class Visit>
bool mod_store::get_and_change(const request& what, thread_counts& counted, Visit&& visit) {
    const std::lock_guard held(lock_);
    item_view view{};
    if (!change_locked(what, view, counted)) return false;
    const auto bytes = items_.get(what.key);
    if (!bytes) return false; // damaged
    view.value = item_in(*bytes).value;
    visit(view);
    return true;
}

static_assert(item_store<mod_store>);

} // namespace hf::kv
