// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What all connections share beside the store: settings, and the counters that `stats` reports.
#pragma once

#include "prefix_counts.hpp"
#include "settings.hpp"
#include <kv/store/store.hpp>

#include <holdfast/result.hpp>

#include <atomic>
#include <cstdint>
#include <ctime>
#include <string_view>

namespace hf::kv {

class connection_list;

/// The part of `stats` about clients that watch (watch.hpp).
class watch_counts {
public:
    struct totals {
        std::uint64_t watchers = 0, written = 0, dropped = 0, sent = 0, skipped = 0;
    };
    watch_counts() = default;
    watch_counts(const watch_counts&) = delete;
    watch_counts& operator=(const watch_counts&) = delete;
    virtual ~watch_counts() = default;
    virtual totals counted() const = 0;
};

/// The part of `stats` about TLS, and the action of `refresh_certs` (tls.hpp).
class tls_state {
public:
    struct totals {
        std::uint64_t handshake_errors = 0, sessions = 0;
        std::time_t loaded_at = 0;
    };
    tls_state() = default;
    tls_state(const tls_state&) = delete;
    tls_state& operator=(const tls_state&) = delete;
    virtual ~tls_state() = default;
    virtual totals counted() const = 0;
    /// Reads certificate and key, again where they have been read: for clients that come from here
    /// on. After an error all is as it was.
    virtual status load() = 0;
};

struct service {
    settings chosen;
    store* items = nullptr;
    std::uint32_t started = 0; // Unix second
    std::atomic<int> verbosity{0};
    std::atomic<std::uint32_t> curr_connections{0};
    std::atomic<std::uint64_t> total_connections{0};
    std::atomic<std::uint64_t> rejected_connections{0};
    std::atomic<std::uint64_t> connection_bytes{0}; // reserved by all connections
    prefix_counts prefixes;
    std::atomic<bool> tracks_sizes{false};      // `stats sizes` reports them
    watch_counts* watching = nullptr;           // null: no watchers
    tls_state* secured = nullptr;               // null: nobody is
    const connection_list* connected = nullptr; // null: unknown
};

/// The answer to `stats` with these words behind it.
void append_stats(byte_buffer& out, std::string_view words, service& serving);

} // namespace hf::kv
