// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What all connections share beside the store: settings, and the counters that `stats` reports.
#pragma once

#include "prefix_counts.hpp"
#include "store.hpp"

#include <holdfast/result.hpp>

#include <atomic>
#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>

namespace hf::kv {

/// Named after memcached's level of the protocol: clients read the leading numbers.
inline constexpr std::string_view version_text = "1.6.18-holdfast-0.1.0";

/// What clients speak; negotiated: by the first byte of each.
enum class protocol : std::uint8_t { negotiated, ascii, binary };

/// What `stats` tells of clients that watch (watch.hpp).
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

/// Named and numbered as memcached's -o ssl_….
struct tls_settings {
    bool enabled = false;
    std::string chain_cert, ca_cert;
    std::string key;               // empty: it stands with the certificate
    std::string ciphers;           // empty: as OpenSSL has them
    std::uint32_t verify_mode = 0; // of clients' certificates: none, request, require, once
    std::uint32_t key_format = 1;  // PEM, 2: DER
    std::uint32_t min_version = 2; // 1.0, 1.1, 1.2, 1.3
    bool session_cache = false;
    std::uint32_t write_buffer_kb =
        16; // told by `stats settings`, and not obeyed: replies are gathered anyway
};

/// What `stats` tells of TLS, and `refresh_certs` does (tls.hpp).
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
    /// Reads certificate and key, again where they have been read: for clients that come from here on. After an error
    /// all is as it was.
    virtual status load() = 0;
};

struct settings {
    store_options store;
    tls_settings secured;
    std::uint32_t threads = 4;
    std::uint32_t connections_max = 1024;
    std::uint32_t backlog = 1024;
    std::uint32_t idle_timeout_s = 0;     // between requests; 0: none
    std::uint32_t request_timeout_s = 60; // without progress inside one; 0: none
    /// Of half-sent requests and unread replies, all clients together.
    std::uint64_t connection_bytes_max = 256ULL << 20;
    int tcp_port = 11211;  // -1: one that is free, 0: none
    std::string addresses; // separated by commas; empty: all
    std::string unix_path; // set: no TCP
    std::uint32_t unix_mask = 0700;
    std::string pid_file;
    bool daemon = false;
    bool core_files = false;
    bool shutdown_enabled = false;
    bool flush_disabled = false;
    bool dump_disabled = false;
    bool watch_disabled = false;
    std::size_t journal_bytes_max = 64 << 10;  // of each thread: what is yet to be told to watchers
    std::size_t watcher_bytes_max = 256 << 10; // of each watcher: what it has not read yet
    protocol speaks = protocol::negotiated;
    std::string user;
    char prefix_delimiter = '\0'; // given: prefixes are counted from the start
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
    watch_counts* watching = nullptr; // null: there are none
    tls_state* secured = nullptr;     // null: nobody is
};

/// The answer to `stats` with these words behind it.
void append_stats(byte_buffer& out, std::string_view words, service& serving);

} // namespace hf::kv
