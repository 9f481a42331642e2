// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The store under holdfast-kv: memcached's operations, by sections, on items
// in a pool.
//
// (1) When a call that changes something returns, the change has been committed: it may be
//     acknowledged; in mode power, when the hf::durable_together around the calls has ended. A
//     crash leaves each call done or not begun.
// (2) Blocks are staged, filled and made durable before the lock is taken, except where the new
//     value depends on the old one; then nothing is evicted while a lock is held.
// (3) A thread holds at most one instance's lock at a time.
// (4) What is in an instance is followed only after believed() has said so, under its lock.
#pragma once

#include "face.hpp"
#include "item_store.hpp"
#include "items.hpp"
#include <kv/protocol/counters.hpp>
#include <kv/protocol/protocol.hpp>

#include <holdfast/author/staged.hpp>
#include <holdfast/pool.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

namespace hf::kv {

class section_store {
public:
    static result<std::unique_ptr<section_store>> open(const store_options& options);

    section_store(const section_store&) = delete;
    section_store& operator=(const section_store&) = delete;

    /// Calls visit(item_view) under the instance's lock and returns true when the key is there.
    /// False also when damaged(key).
    /// 'counted' is the calling thread's.
    ///
    /// Ordering: 0 points.
    template <class Visit>
    bool get(std::string_view key, thread_counts& counted, Visit&& visit, bool unseen = false);
    /// get, and in the same step the request's changes of expiry times, making an item on a miss,
    /// and winning (state_after()).
    ///
    /// Ordering: those of one section, none when nothing changes; one more if an item is made.
    /// Counts:   no hit and no miss; the caller knows which.
    template <class Visit>
    bool get_and_change(const request& what, thread_counts& counted, Visit&& visit);

    /// set, add, replace, cas, append, prepend.
    ///
    /// Ordering: those of one section, and one to make the item durable (pmem mode).
    outcome write(const request& what, std::string_view value, thread_counts& counted,
                  change& done);
    /// incr, decr.
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
    /// Everything stored before now, or before 'delay_s' from now, is gone from then on.
    void flush_all(std::int64_t delay_s);

    bool too_large(std::size_t key_bytes, std::size_t value_bytes) const noexcept {
        return item_bytes(key_bytes, value_bytes) + 2 > item_bytes_max_;
    }

    counter_board& counted() noexcept { return counters_; }
    hf::pool& pool() noexcept { return pool_; }
    std::uint64_t item_count() const noexcept;
    /// Whether damage was found in the instance that has the key: whether it is there is not known.
    bool damaged(std::string_view key) const noexcept {
        return damaged_instances() != 0 &&
               seen_[hash_of(key) >> 56].load(std::memory_order_relaxed) == sight::damaged;
    }
    std::uint64_t damaged_instances() const noexcept {
        return damaged_instances_.load(std::memory_order_relaxed);
    }
    /// Checks every instance that this process has not checked yet; returns the first fault.
    ///
    /// Cost:    some 0.1 s for a million items (docs/guide/kv.md).
    /// Threads: any.
    status look_through();
    bool evicts() const noexcept { return evict_; }
    std::uint32_t item_bytes_max() const noexcept { return item_bytes_max_; }
    std::uint32_t now() const noexcept { return clock_(); }
    /// Estimates the classes of item sizes from a sample of all items; 'total_bytes' of all of
    /// them.
    std::vector<size_class_view> sample_classes(std::uint64_t& total_bytes);
    /// How far visit_next() has come.
    struct place {
        explicit place(section_store&) noexcept {}
        std::size_t instance = 0;
        std::uint64_t order = 0; // in its table, structures::for_each_in_bucket()
        bool damaged = false;    // an instance was passed over
    };
    /// Calls visit(key, item_view) for some more of the live items; false: those were the last. It
    /// meets an item once that is there from the first call to the last, and one that comes or goes
    /// meanwhile at most once.
    ///
    /// Threads: any; visit() is called under an instance's lock, for a few items at a time.
    template <class Visit> bool visit_next(place& at, Visit&& visit);
    /// Looks at a few items and removes those that are gone, with their neighbours: called every
    /// second by each thread.
    void reap(thread_counts& counted);
    /// Engine that this store was compiled for.
    static const char* engine_name() noexcept;

private:
    section_store(hf::pool opened, const store_options& options);

    static status look_before(const store_options& options);
    // looking.cpp
    enum class sight : std::uint8_t { unknown, sound, damaged };
    /// Whether the instance may be followed (4). Requires: its lock, shared at least.
    bool believed(const instance& in) {
        const auto seen = seen_[number_of(in)].load(std::memory_order_acquire);
        return seen == sight::sound || (seen == sight::unknown && look_at(in).ok());
    }
    std::size_t number_of(const instance& in) const noexcept {
        return static_cast<std::size_t>(&in - root_->instances);
    }
    status look_at(const instance& in);
    status look_at_frame();
    status frame_fault();
    status fault_in(const instance& in) const;
    const char* fault_of(const item* it, const instance& in) const noexcept;
    status corrupt_at(const void* at, const std::string& what) const;
    bool pinned(const void* block) const noexcept;
    bool pin(const void* block);
    std::uint64_t hash_of(std::string_view key) const noexcept;
    instance& at(std::uint64_t hash) noexcept { return instance_of(*root_, hash); }
    static item* find(const instance& in, std::string_view key, std::uint64_t hash) noexcept;
    life life_of(const item& it, std::uint32_t now) const noexcept;
    bool is_live(const item& it, std::uint32_t now) const noexcept {
        return life_of(it, now) == life::live;
    }
    static void mark_access(item& it, std::uint32_t now) noexcept;
    static void mark_fetched(item& it, std::uint32_t now) noexcept;
    static item_view view_of(const item& it) noexcept;
    static bool refuses(const item& it, const request& what) noexcept {
        return what.compares && what.cas != 0 && it.cas != what.cas;
    }
    std::uint64_t next_cas() noexcept { return cas_.fetch_add(1, std::memory_order_relaxed); }
    void renew_if_flushed(item& fresh);
    void forget_dead(std::string_view key, std::uint64_t hash, thread_counts& counted);
    void count_dead(life how, thread_counts& counted);

    item* change_locked(instance& in, const request& what, std::uint64_t hash, staged& fresh,
                        item_view& seen, thread_counts& counted);
    outcome decide_cas(const request& what, const item* old, item& fresh, thread_counts& counted);
    outcome extend(const request& what, std::string_view value, thread_counts& counted,
                   change& done);
    item* number_in(const request& what, item* old, staged& fresh, std::uint32_t when,
                    thread_counts& counted, change& done);
    /// Lets a section adopt 'fresh' in the place of 'old'; the item that it has become.
    item* link(instance& in, item* old, staged& fresh, thread_counts& counted);
    void insert(instance& in, item* fresh);
    static void unlink(instance& in, item* old);

    // eviction.cpp
    struct sample;
    staged stage(std::size_t key_bytes, std::size_t value_bytes, thread_counts& counted);
    bool make_room(std::size_t bytes, unsigned attempt, thread_counts& counted);
    bool evict_some(std::size_t bytes, thread_counts& counted, std::uintptr_t& oldest);
    std::uintptr_t choose_window(std::size_t bytes, bool living);
    bool clear_window(std::uintptr_t around, std::size_t bytes, bool living,
                      thread_counts& counted);
    void give_up(instance& in, item& it, std::uint32_t when, thread_counts& counted);
    bool give_up_linked(std::uintptr_t address, std::uint64_t hash, bool living,
                        thread_counts& counted);
    bool evict_large(std::size_t bytes, thread_counts& counted);
    static item* linked_at(instance& in, std::uintptr_t address, std::uint64_t hash) noexcept;
    std::vector<std::uintptr_t> pinned_blocks();
    static bool is_large(const item& it) noexcept;
    void note_large(const item& it);
    void find_large();

    // An item as it was when it was queued; it is checked under the lock before use.
    struct large_item {
        std::uintptr_t address;
        std::uint64_t hash;
        std::uint32_t last_access;
    };

    hf::pool pool_;
    kv_root* root_ = nullptr;
    std::uint64_t seed_ = 0;
    std::uint32_t item_bytes_max_;
    bool evict_; // living items; dead ones are reclaimed in any case
    std::uint32_t (*clock_)();
    void (*on_damage_)(const std::string& line);
    std::atomic<std::uint64_t> cas_;
    std::mutex flush_lock_;
    // The contents of root_, published after its section committed.
    std::atomic<std::uint64_t> flush_cas_{0}, flush_times_{0};
    std::mutex large_lock_; // taken while an instance's lock is held, never the other way round
    std::deque<large_item> large_;
    bool large_found_ = false;

    std::array<std::atomic<sight>, instance_count> seen_{};
    std::atomic<std::uint64_t> damaged_instances_{0};
    // Guards what follows; taken while an instance's lock is held, never the other way round.
    std::mutex look_lock_;
    bool frame_seen_ = false;
    status frame_;                       // what was found in it
    std::vector<std::uintptr_t> pinned_; // blocks other than items: the root, segments; sorted
    counter_board counters_;
};

// A reader copies under the lock, so that no block it looks at is freed meanwhile.
template <class Visit>
bool section_store::get(std::string_view key, thread_counts& counted, Visit&& visit, bool unseen) {
    const std::uint64_t hash = hash_of(key);
    instance& in = at(hash);
    const std::uint32_t when = clock_();
    life how = life::live;
    std::shared_lock held(in.lock); // also when 'visit' finds no memory and throws
    item* const it = believed(in) ? find(in, key, hash) : nullptr;
    if (it != nullptr && (how = life_of(*it, when)) == life::live) {
        visit(view_of(*it));
        if (!unseen) mark_fetched(*it, when);
        held.unlock();
        counted.add(count::get_hits);
        return true;
    }
    held.unlock();
    counted.add(count::get_misses);
    if (it != nullptr) {
        count_dead(how, counted);
        forget_dead(key, hash, counted);
    }
    return false;
}

template <class Visit> bool section_store::visit_next(place& at, Visit&& visit) {
    constexpr unsigned buckets_a_time = 16;
    if (at.instance == instance_count) return false;
    instance& in = root_->instances[at.instance];
    const std::uint32_t when = clock_();
    const std::shared_lock held(in.lock);
    const bool seen = believed(in);
    at.damaged |= !seen;
    const auto show = [&](structures::hash_node* node) {
        const item& it = *reinterpret_cast<const item*>(node);
        if (life_of(it, when) == life::live) visit(it.key(), view_of(it));
    };
    for (unsigned i = 0; seen && i < buckets_a_time; ++i) {
        at.order = structures::for_each_in_bucket(&in.table, at.order, show);
        if (at.order == 0) break;
    }
    if (!seen) at.order = 0;
    if (at.order == 0) ++at.instance;
    return at.instance < instance_count;
}

template <class Visit>
bool section_store::get_and_change(const request& what, thread_counts& counted, Visit&& visit) {
    const std::uint64_t hash = hash_of(what.key);
    instance& in = at(hash);
    staged fresh; // made when the item turns out to be missing
    for (;;) {
        std::unique_lock held(in.lock);
        const bool seen = believed(in);
        item_view view{};
        item* const it = seen ? change_locked(in, what, hash, fresh, view, counted) : nullptr;
        if (it != nullptr) visit(view);
        held.unlock();
        const bool again = it == nullptr && seen && what.vivifies && !fresh;
        if (again) fresh = stage(what.key.size(), 0, counted); // (2): then look again
        if (again && fresh) continue;
        return it != nullptr;
    }
}

static_assert(item_store<section_store>);

} // namespace hf::kv
