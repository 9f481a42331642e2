// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The settings of a server, for every kind of store.
#pragma once

#include <kv/store/face.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace hf::kv {

/// Named after memcached's level of the protocol: clients read the leading numbers.
inline constexpr std::string_view version_text = "1.6.18-holdfast-0.1.0";

/// The protocol of clients; negotiated: decided by the first byte of each.
enum class protocol : std::uint8_t { negotiated, ascii, binary };

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
        16; // shown by `stats settings`, and not obeyed: replies are gathered anyway
};

struct settings {
    store_options store;
    tls_settings secured;
    std::uint32_t threads = 4;
    std::uint32_t connections_max = 1024;
    std::uint32_t backlog = 1024;
    std::uint32_t idle_timeout_s = 0;     // between requests; 0: none
    std::uint32_t request_timeout_s = 60; // without progress inside one; 0: none
    /// Limit of half-sent requests and unread replies, all clients together.
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
    bool track_sizes = false;                  // from the start
    std::size_t journal_bytes_max = 64 << 10;  // of each thread: lines not yet taken for watchers
    std::size_t watcher_bytes_max = 256 << 10; // of each watcher: what it has not read yet
    protocol speaks = protocol::negotiated;
    std::string user;
    char prefix_delimiter = '\0'; // given: prefixes are counted from the start
};

} // namespace hf::kv
