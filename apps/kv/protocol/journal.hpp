// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Events of one thread, as lines for clients that `watch`. The thread writes; now and then the hub
// (watch.hpp) takes what has gathered. No sockets.
//
// (1) An event that nobody watches costs a load.
// (2) A thread waits only while a full buffer is exchanged for an empty one. A line that finds no
//     room is dropped, and counted.
#pragma once

#include "byte_buffer.hpp"
#include "counters.hpp"
#include "protocol.hpp"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string_view>

namespace hf::kv {

/// Kinds of events; a watcher wants some.
enum class watched : std::uint16_t {
    nothing = 0,
    fetchers = 1,    // every look for an item
    mutations = 2,   // every attempt to store one
    evictions = 4,   // items given up for room
    connections = 8, // begun and ended
    commands = 16,   // lines as clients send them
    others = 32,     // of machinery that is not here
};
constexpr watched operator|(watched a, watched b) noexcept {
    return static_cast<watched>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
constexpr bool has(watched all, watched one) noexcept {
    return (static_cast<unsigned>(all) & static_cast<unsigned>(one)) != 0;
}

/// An item, or a look for one, as lines report it.
struct watched_item {
    std::string_view key;
    std::uint64_t value_bytes = 0;
    unsigned size_class = 0; // 0: it has none
    int client = 0;
};

/// An item that is there, of a class that its size has here.
inline watched_item watched_of(std::string_view key, std::uint64_t value_bytes, int client = 0) {
    return {key, value_bytes, size_class_of(item_overhead_bytes + key.size() + value_bytes),
            client};
}

class journal {
public:
    /// 'wanted': the kinds that any watcher wants. 'number' gives lines their order. Both outlive
    /// the journal.
    journal(const std::atomic<watched>& wanted, std::atomic<std::uint64_t>& number,
            std::size_t bytes_max) noexcept
        : wanted_(&wanted), number_(&number), bytes_max_(bytes_max) {}

    bool wants(watched kind) const noexcept {
        return has(wanted_->load(std::memory_order_relaxed), kind);
    }

    /// 'status' is memcached's word: found, not_found, flushed, expired.
    void fetched(const watched_item& item, std::string_view status);
    void stored(const watched_item& item, std::string_view status, std::string_view command,
                std::uint32_t ttl_s);
    /// 'left_s': until it would have expired, -1: never.
    void evicted(const watched_item& item, bool fetched, std::int64_t left_s,
                 std::uint32_t unused_s);
    void connected(std::string_view from, int client);
    /// 'why': normal, error, idle_timeout, shutdown.
    void disconnected(std::string_view from, std::string_view why, int client);
    void said(std::string_view line, int client);

    /// Before each line in what take() gives.
    struct entry {
        std::uint64_t number;
        watched kind;
        std::uint16_t bytes;
    };
    /// Exchanges the gathered lines for 'empty'.
    void take(byte_buffer& empty);
    std::uint64_t written() const noexcept { return written_.load(std::memory_order_relaxed); }
    std::uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }

private:
    void add(watched kind, std::string_view text);

    const std::atomic<watched>* wanted_;
    std::atomic<std::uint64_t>* number_;
    std::size_t bytes_max_;
    std::mutex lock_;
    byte_buffer lines_;
    std::atomic<std::uint64_t> written_{0}, dropped_{0};
};

/// The thread's journal when somebody wants events of this kind, or null.
inline journal* wanting(const thread_counts& of, watched kind) noexcept {
    return of.events != nullptr && of.events->wants(kind) ? of.events : nullptr;
}

/// "a%20key", as memcached's uriencode(): for a word of a line.
void append_encoded(byte_buffer& out, std::string_view key);

} // namespace hf::kv
