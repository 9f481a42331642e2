// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The volatile side of a cache: the sum of its bytes, when which hash was used last, time, and the
// values that are being computed. Nothing of it is stored: an open counts the bytes anew.
//
// (1) One lock makes changes: what a change has decided on is still true when it commits. bytes_
//     changes with a commit, under that lock.
// (2) uses_ has a place for each hash, and hashes may share one: that makes an entry seem younger,
//     never older. A place is the number of puts at its last use; 0: before the open.
// (3) An erasure makes nodes before it gives any up. reserve_ has those of a few, once the pool was
//     full: or nothing could be evicted when the last of them have gone to others.
#pragma once

#include <mod/cache_entries.hpp>

#include <holdfast/mod/cache.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <condition_variable>
#include <cstdlib>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <thread>
#include <vector>

namespace hf::mod {
namespace detail {

/// Cache time: invariant (5) of cache.hpp.
class cache_clock {
public:
    explicit cache_clock(std::uint64_t (*tests)() noexcept) noexcept : tests_(tests) {}
    /// newest_s: at most latest_put_s. A system clock past that was never set: time goes on from
    /// newest_s.
    void start(std::uint64_t newest_s) noexcept {
        began_s_ = running_s();
        const std::uint64_t system = tests_ != nullptr ? tests_() : system_s();
        base_s_ = std::max(system > latest_put_s ? 0 : system, newest_s);
    }
    std::uint64_t now_s() const noexcept {
        return base_s_ + std::max(running_s(), began_s_) - began_s_;
    }

private:
    static std::uint64_t system_s() noexcept {
        return static_cast<std::uint64_t>(std::max<std::time_t>(std::time(nullptr), 0));
    }
    std::uint64_t running_s() const noexcept {
        if (tests_ != nullptr) return tests_();
        timespec up{};
        ::clock_gettime(CLOCK_BOOTTIME, &up);
        return static_cast<std::uint64_t>(up.tv_sec);
    }
    std::uint64_t (*tests_)() noexcept;
    std::uint64_t base_s_ = 0, began_s_ = 0;
};

/// What reads count, spread over lines so that threads do not wait for each other's.
struct alignas(64) read_counts {
    std::atomic<std::uint64_t> hits{0}, misses{0};
};
inline constexpr std::size_t read_counts_of = 16;

/// A value that one thread computes and others wait for.
struct flight {
    const std::thread::id maker = std::this_thread::get_id();
    bool landed = false;
    std::optional<std::string> value; // none: the maker failed
};

} // namespace detail

class cache::impl {
public:
    enum class only : std::uint8_t { always, if_missing, if_there };
    impl(const pool& in, std::string_view name, const cache_options& how,
         detail::cache_entries items);
    impl(impl&&) = delete;
    ~impl();
    /// Takes the root for this cache. False: another one of this process has it.
    bool list();

    status fail(errc code, const std::string& why) const;
    result<std::uint32_t> default_ttl() const { return ttl_of({}); }
    /// Counts the bytes, finds the newest time, and evicts what is over the bound.
    status begin();
    cached_value view(std::string_view key);
    std::optional<std::string> peek(std::string_view key) const;
    bool contains(std::string_view key) const;
    result<bool> store(std::string_view key, std::string_view value, std::optional<seconds> ttl,
                       only when);
    result<bool> touch(std::string_view key, std::optional<seconds> ttl);
    result<bool> erase(std::string_view key);
    result<std::string> compute(std::string_view key,
                                const std::function<result<std::string>()>& make,
                                std::optional<seconds> ttl);
    status clear();
    result<std::size_t> expire();
    detail::cache_entries::version snapshot() const { return items_.snapshot(); }
    bool is_over(const detail::cache_entry& of) const noexcept {
        return of.head.ttl_s != 0 && of.is_over(now_s());
    }
    std::size_t size() const noexcept { return items_.size(); }
    std::uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }
    std::uint64_t max_bytes() const noexcept { return max_bytes_; }
    std::uint64_t bytes_of(std::size_t key_bytes, std::size_t value_bytes) const noexcept;
    cache_statistics statistics() const;
    root* its_root() const noexcept { return items_.its_root(); }

private:
    static void count(std::atomic<std::uint64_t>& to) noexcept {
        to.fetch_add(1, std::memory_order_relaxed);
    }
    struct candidate {
        std::string_view key;
        std::string_view stored;
        std::uint64_t bytes;
        std::uint64_t idle; // puts since the last use; more than 2^32 if that was before the open
        bool over;
    };
    struct free_it {
        void operator()(void* memory) const noexcept { std::free(memory); }
    };
    /// Zeros that take no memory before they are used.
    struct use_table {
        explicit use_table(std::size_t places)
            : mask(places - 1),
              all(static_cast<std::uint32_t*>(std::calloc(places, sizeof(std::uint32_t)))) {
            if (all == nullptr) throw std::bad_alloc();
        }
        std::atomic_ref<std::uint32_t> at(std::string_view key) const noexcept {
            return std::atomic_ref(all.get()[hash<std::string>{}(key)&mask]);
        }
        std::size_t mask;
        std::unique_ptr<std::uint32_t[], free_it> all;
    };
    static std::size_t places_for(std::uint64_t max_bytes) noexcept {
        return std::bit_ceil(std::clamp<std::size_t>(max_bytes / 64, 1 << 10, 1 << 24));
    }

    std::uint64_t now_s() const noexcept { return clock_.now_s(); }
    std::uint64_t bytes_of_stored(std::string_view key, std::string_view stored) const noexcept {
        return bytes_of(key.size(),
                        stored.size() - std::min(stored.size(), sizeof(detail::cache_head)));
    }
    void note_use(std::string_view key) noexcept {
        const auto place = uses_.at(key);
        const std::uint32_t now = puts_.load(std::memory_order_relaxed);
        // Stored only when it changes: a line in which nothing does stays shared among readers.
        if (place.load(std::memory_order_relaxed) != now)
            place.store(now, std::memory_order_relaxed);
    }
    result<std::uint32_t> ttl_of(std::optional<seconds> wanted) const;

    // Requires: changes_ held.
    std::optional<detail::cache_entry> alive(std::string_view key) const;
    status keep(std::string_view key, detail::cache_head head, std::string_view value);
    status keep_once(std::string_view key);
    template <class Change>
    status in_room(std::string_view key, std::size_t string_bytes, Change&& change);
    candidate candidate_of(std::string_view key, std::string_view stored,
                           std::uint64_t now) const noexcept;
    std::vector<candidate> look(std::uint64_t entries, std::uint64_t weight,
                                const std::string_view* spared);
    std::vector<candidate> to_go(std::uint64_t need, const std::string_view* spared);
    result<std::size_t> erase_all(std::span<const candidate> all);
    result<std::size_t> erase_in_pieces(std::vector<candidate>& all);
    bool erase_first(std::span<const candidate> all);
    status evict_surplus();
    void account(std::uint64_t left, const std::vector<candidate>& gone) noexcept;
    bool clear_memory(std::string_view spared, std::size_t string_bytes, bool whole_chunk);
    bool frees_what_goes();
    void hold_reserve();
    void give_up_reserve() noexcept;

    const std::string name_, path_;
    const std::uint64_t chunk_bytes_, pool_bytes_max_;
    const bool read_only_;
    const std::uint64_t max_bytes_;
    const seconds ttl_;
    detail::cache_entries items_;
    detail::cache_clock clock_;
    bool listed_ = false;

    std::mutex changes_; // (1)
    std::atomic<std::uint64_t> bytes_{0};
    std::uint64_t hand_ = 0;   // the hash at which the next look begins
    std::string stored_;       // what keep() stores
    std::vector<ref> reserve_; // (3): free nodes
    bool reserve_whole_ = false;
    use_table uses_; // (2)
    std::atomic<std::uint32_t> puts_{1};

    std::mutex flights_lock_;
    std::condition_variable landed_;
    std::map<std::string, std::shared_ptr<detail::flight>, std::less<>> flights_;
    std::map<std::thread::id, std::shared_ptr<detail::flight>> waiting_; // threads, and for what
    bool waits_for_itself(const detail::flight& wanted) const; // Requires: flights_lock_ held

    std::array<detail::read_counts, detail::read_counts_of> reads_;
    std::atomic<std::uint64_t> evictions_{0}, expirations_{0}, not_stored_{0};
};

} // namespace hf::mod
