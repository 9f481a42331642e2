// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mod::cache: a durable map of byte strings that keeps within a number of bytes and forgets: what
// has expired, and what was not used for longest. It outlives its process: the next one starts with
// a warm cache.
//
//     auto pages = *hf::mod::cache::open(pool, "pages", {.max_bytes = 64 << 20, .ttl = 10min});
//     pages.put("/index", html);                       // evicts what it needs, in one commit
//     if (auto page = pages.get("/index")) send(*page);
//     auto page = pages.get_or_compute("/news", [] { return render("/news"); });  // once per key
//
// (1) bytes() is at most max_bytes after every call that changes something and reports no error.
//     It counts the memory of every entry: the slot in which key, value and a head of 8 bytes
//     lie, and entry_nodes_bytes for its share of the map's nodes. A slot has a multiple of 16
//     bytes up to 1 KiB, then one of four sizes to each doubling up to 8 KiB; a larger entry takes
//     whole chunks of 64 KiB. The pool needs room besides: give it 1.5 times max_bytes.
// (2) A change is one failure-atomic section with one ordering point, evictions included. A crash
//     keeps all of it or nothing.
// (3) A read writes nothing to the pool and waits for no change. It notes the use in volatile
//     memory. After a crash or a clean end, recency is that of the puts, in seconds: the entries
//     are all there, and the reads before are forgotten.
// (4) Recency is approximate. An eviction looks at 16 entries for each one that it must remove, in
//     the order of hashes from where the last one stopped, and removes those that were not used for
//     longest. What has expired among them goes first. Two reads between the same two puts are
//     equally recent.
// (5) Time never goes back. It starts, at open, with the system's clock or the newest time that an
//     entry was stored at, whichever is later; then it runs as long as the machine has been up,
//     suspended or not. So a system clock that is set back revives nothing and drops nothing. One
//     that is set forward counts from the next open. While time waits for a clock that was wrong,
//     entries live longer than they should, by the time between two openings. A time past 2096 is
//     no clock's: nothing goes on from it, and an entry of that time that can expire has expired.
//
// An open looks at every entry once, to count the bytes: they are not stored.
// Differs from kv's store, which has the same map below: that one is bounded by its pool.
#pragma once

#include <holdfast/author/mod/store.hpp>
#include <holdfast/pool.hpp>
#include <holdfast/result.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace hf::mod {

/// A time to live without an end.
inline constexpr std::chrono::seconds forever = std::chrono::seconds::max();

struct cache_options {
    std::uint64_t max_bytes = 0;        // above 0; not stored: the next open may give another
    std::chrono::seconds ttl = forever; // of entries that are put without one of their own
    durability when_durable = durability::by_next_section;
    /// Seconds since 1970, for tests: in place of the system's clock and of the time since it was
    /// read. Null: those.
    std::uint64_t (*clock_s)() noexcept = nullptr;
};

struct cache_statistics {
    std::uint64_t hits = 0;
    std::uint64_t misses = 0;
    std::uint64_t evictions = 0;   // entries that were alive
    std::uint64_t expirations = 0; // expired entries that were removed or replaced
    std::uint64_t not_stored = 0;  // computed values that a put refused
};

/// A value that was found, in place. It stays readable while this object lives, whatever is put or
/// evicted meanwhile; memory that is given up waits for it.
///
/// Requires: it ends before the pool is closed.
class cached_value {
public:
    cached_value() noexcept = default;
    explicit operator bool() const noexcept { return static_cast<bool>(kept_); }
    std::string_view operator*() const noexcept { return bytes_; }
    const std::string_view* operator->() const noexcept { return &bytes_; }

private:
    friend class cache;
    cached_value(version kept, std::string_view bytes) noexcept
        : kept_(std::move(kept)), bytes_(bytes) {}
    version kept_;
    std::string_view bytes_;
};

/// A named cache in a pool: a handle, cheap to copy. The last copy must end before the pool is
/// closed.
///
/// Threads: all members on any thread at any time. Changes wait for each other; reads do not
///          wait for changes.
class cache {
public:
    using seconds = std::chrono::seconds;
    /// An entry's share of the map's nodes: 11 to 17 bytes, as the number of entries goes.
    static constexpr std::uint64_t entry_nodes_bytes = 16;

    /// The cache of this name; made if it is missing. If it has more than max_bytes, entries are
    /// evicted here.
    ///
    /// Cost:     reads every entry.
    /// Ordering: 0 points; 1 if it evicts, at most 4 to create it; more in a pool that was full.
    /// Errors:   bad_argument (max_bytes 0, a wrong ttl, a wrong name), in_use (this process has it
    ///           open already: copy that handle), wrong_layout (the name belongs to
    ///           another structure), pool_full, limit_reached. In a pool that is open read-only:
    ///           it is found there, and evicts nothing.
    static result<cache> open(const pool& in, std::string_view name, const cache_options& how);

    /// A copy of the key's value; none if the key is missing or has expired.
    ///
    /// Cost:     O(log16 n) lines, and the copy. Ordering: 0, as of all reads.
    std::optional<std::string> get(std::string_view key) const;
    /// The same without a copy.
    cached_value view(std::string_view key) const;
    /// Whether the key is there and alive. Counts as no use, and in no statistics.
    bool contains(std::string_view key) const;

    /// Stores the value under the key, in place of an older one. Makes room first, if it must.
    /// ttl: a second to 136 years, or forever; none: the cache's.
    ///
    /// Cost:     O(log16 n) new nodes, and as many for each entry that it evicts.
    /// Ordering: 1 point, 2 with durability::on_return.
    /// Crash:    all of it, evictions included, or nothing.
    /// Errors:   bad_argument (a wrong ttl; the entry is larger than max_bytes), pool_full.
    ///           A full pool evicts until there is room, in commits of their own. While a reader
    ///           holds back what is evicted, a put waits for about 20 ms, then evicts no more. An
    ///           entry of more than 8 KiB needs whole chunks in a row, and may find none: then
    ///           others may have been evicted for nothing. The key has its old value after an error.
    status put(std::string_view key, std::string_view value, std::optional<seconds> ttl = {});
    /// put, unless the key is there and alive. Returns whether it stored. Ordering: 0 if not.
    result<bool> add(std::string_view key, std::string_view value, std::optional<seconds> ttl = {});
    /// put, if the key is there and alive. Returns whether it stored. Ordering: 0 if not.
    result<bool> replace(std::string_view key, std::string_view value,
                         std::optional<seconds> ttl = {});
    /// Gives the entry another time to live, from now on. Returns whether it was there and alive.
    /// Cost and ordering: as put.
    result<bool> touch(std::string_view key, std::optional<seconds> ttl = {});
    /// Erases the key. Returns whether it was there and alive.
    ///
    /// Ordering: 1 point, 2 with durability::on_return; 0 if there was nothing.
    result<bool> erase(std::string_view key);

    /// The key's value; if it is missing, what make() returns, which is put: a string, a
    /// result<std::string>, or a status that says why it has no value. Of several threads
    /// that ask for a missing key one calls make(); the others wait, and get its value. When make()
    /// fails or throws, its caller gets that, and one of the others makes the value anew. A value
    /// that cannot be stored is returned all the same, and counted (not_stored).
    ///
    /// Errors:   those of make(); bad_argument: make() asks for its own key, or for one whose
    ///           maker waits for this one, in this cache; a wrong ttl.
    template <std::invocable Make>
    result<std::string> get_or_compute(std::string_view key, Make&& make,
                                       std::optional<seconds> ttl = {}) {
        const auto once = [&]() -> result<std::string> {
            if constexpr (std::is_convertible_v<std::invoke_result_t<Make&>, std::string>)
                return std::string(make());
            else return make();
        };
        return compute(key, once, ttl);
    }

    /// Removes all entries. Ordering: 1 point.
    status clear();
    /// Removes what has expired; returns the number of entries. Without it they go when room is
    /// needed and an eviction meets them.
    ///
    /// Cost:     reads every entry. Ordering: 1 point for each 256 that have expired.
    result<std::size_t> expire();

    /// Goes through the entries of one version that are alive, in the order of hashes, and keeps
    /// that version readable. Not thread-safe.
    class cursor {
    public:
        /// A key and its value; none at the end.
        std::optional<std::pair<std::string_view, std::string_view>> next();

    private:
        friend class cache;
        struct place;
        explicit cursor(std::shared_ptr<place> begin) noexcept : at_(std::move(begin)) {}
        std::shared_ptr<place> at_;
    };
    /// The entries of the version that is current now. Counts as no use.
    cursor entries() const;
    /// Calls visit(key, value) for each of them, until it returns false.
    template <class Visit> void for_each(Visit&& visit) const {
        for (cursor left = entries(); const auto found = left.next();)
            if (!visit(found->first, found->second)) return;
    }

    /// Entries, those that have expired and were not removed yet included.
    std::size_t size() const noexcept;
    /// (1); in a process that reads beside a writer: as of open().
    std::uint64_t bytes() const noexcept;
    std::uint64_t max_bytes() const noexcept;
    /// Since open().
    cache_statistics statistics() const;
    /// What an entry counts in bytes(), in this pool.
    std::uint64_t bytes_of(std::size_t key_bytes, std::size_t value_bytes) const noexcept;

    // For authors: the root.
    root* its_root() const noexcept;

private:
    class impl;
    result<std::string> compute(std::string_view key,
                                const std::function<result<std::string>()>& make,
                                std::optional<seconds> ttl);
    explicit cache(std::shared_ptr<impl> made) noexcept : impl_(std::move(made)) {}
    std::shared_ptr<impl> impl_;
};

} // namespace hf::mod
