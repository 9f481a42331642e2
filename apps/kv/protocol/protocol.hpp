// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The memcached text protocol as bytes: requests out of a buffer, replies into one. No I/O, no
// state, no store. Replies and refusals are those of memcached 1.6, byte for byte.
//
// (1) Every view in a request points into the line it was parsed from.
// (2) parse() accepts any bytes: what is not a request becomes the reply memcached gives to it.
#pragma once

#include "byte_buffer.hpp"

#include <bit>
#include <cstdint>
#include <string_view>

namespace hf::kv {

inline constexpr std::size_t key_bytes_max = 250;
/// A line without an end is given up beyond this; retrievals may be longer.
inline constexpr std::size_t line_bytes_max = 2048;
inline constexpr std::size_t retrieval_bytes_max = 8U << 20;

/// The memory of an item besides its key and its value.
inline constexpr std::size_t item_overhead_bytes = 48;

/// Greatest number of a class of sizes; class N has items of up to 2^N bytes.
inline constexpr unsigned size_class_max = 63;
constexpr unsigned size_class_of(std::size_t bytes) noexcept {
    return static_cast<unsigned>(std::bit_width(bytes - 1));
}

enum class verb : std::uint8_t {
    reply,    // nothing to do: 'reply' is the whole answer
    retrieve, // get, gets, gat, gats: 'keys', 'with_cas', 'touches', 'exptime'
    set,
    add,
    replace,
    append,
    prepend,
    cas,
    incr,
    decr,
    touch,
    remove,    // delete
    flush_all, // 'exptime' is the delay
    stats,     // 'keys' holds the words after the command
    watch,     // 'delta': kinds of events (watched, journal.hpp)
    verbosity, // 'delta' is the level
    shutdown,  // 'keys' holds the words after the command
    refresh_certs,
    memory_limit, // cache_memlimit: 'delta' megabytes
    dump,         // lru_crawler metadump: bit N of 'delta' asks for class N of sizes
    // stats cachedump, 'lists': of the class that `stats items` numbers 'delta', 'initial' lines at
    // most
    connections, // stats conns
    meta_get,    // mg
    meta_delete, // md
    meta_delta,  // ma
    meta_debug,  // me
    meta,        // one of these or ms: 'keys' holds the line, parse_meta() understands it
    version,
    quit,
    close, // not our protocol (HTTP): hang up without an answer
};

struct request {
    verb what = verb::reply;
    bool noreply = false;
    bool with_cas = false;
    bool touches = false;
    bool lists = false;
    std::uint32_t flags = 0;
    std::int64_t exptime = 0;      // seconds, as the client gave it
    std::uint32_t value_bytes = 0; // of the value that follows the line, its \r\n not counted
    std::uint64_t cas = 0;
    std::uint64_t delta = 0;
    std::string_view key;
    std::string_view keys; // retrieve: separated by spaces, none longer than the limit
    std::string_view reply;

    // Said by meta commands only (meta.hpp).
    bool compares = false;      // append, prepend, delete, incr, decr: the item must have 'cas'
    bool invalidates = false;   // keep an older item, or one to delete, and mark it stale
    bool vivifies = false;      // on a miss, make an item that lives 'made_exptime'
    bool recaches = false;      // the client that meets less than 'recache_exptime' left wins
    bool recaches_last = false; // counted after 'touches' has had its effect
    bool unseen = false;        // this look does not count
    bool binary_key = false;    // arrived in base64, and goes back in base64
    std::int64_t made_exptime = 0;
    std::int64_t recache_exptime = 0;
    std::uint64_t initial = 0; // of a number that is made
};

/// Whether a value follows the request's line.
constexpr bool carries_value(verb what) noexcept { return what >= verb::set && what <= verb::cas; }

/// Understands one line, given without its line end.
///
/// Cost: one pass over the line.
request parse(std::string_view line) noexcept;

/// Length of the first line of 'input' with its line end, 0 when it has none. Starts looking at
/// 'from', so that a long line arriving in pieces is searched once.
std::size_t line_bytes(std::string_view input, std::size_t from = 0) noexcept;
/// The line without "\r\n" or "\n".
std::string_view without_end(std::string_view line) noexcept;
/// Whether a line that has no end yet may still become a request.
bool may_be_long(std::string_view input) noexcept;

/// Takes the next word from the front of 'words'; empty if it has no more.
std::string_view next_word(std::string_view& words) noexcept;

/// A number as memcached reads one from a value: digits, then nothing or white space.
bool parse_number(std::string_view text, std::uint64_t& number) noexcept;
/// The same with a sign.
bool parse_signed(std::string_view text, std::int64_t& number) noexcept;
/// A client's flags, a level, a percentage: memcached takes any 64 bits and keeps the lower half.
bool parse_flags(std::string_view text, std::uint32_t& flags) noexcept;

/// The second from which an item is gone that a client gave this expiry time; 0: never.
/// Memcached's rule: up to thirty days it counts from now, beyond that from 1970.
inline std::uint32_t expiry_of(std::int64_t exptime, std::uint32_t now) noexcept {
    constexpr std::int64_t relative_max_s = 60 * 60 * 24 * 30;
    if (exptime == 0) return 0;
    if (exptime < 0) return 1; // long gone
    if (exptime <= relative_max_s) return now + static_cast<std::uint32_t>(exptime);
    return exptime > UINT32_MAX ? UINT32_MAX : static_cast<std::uint32_t>(exptime);
}

/// "VALUE key flags bytes[ cas]\r\n" with the value and its line end.
void append_value(byte_buffer& out, std::string_view key, std::uint32_t flags,
                  std::string_view value, const std::uint64_t* cas);
/// "STAT name value\r\n".
void append_stat(byte_buffer& out, std::string_view name, std::string_view value);
void append_stat(byte_buffer& out, std::string_view name, std::uint64_t value);
/// Decimal digits of 'number' at 'to' (room for 20); returns how many.
std::size_t format_number(char* to, std::uint64_t number) noexcept;

namespace reply {
inline constexpr std::string_view ok = "OK\r\n";
inline constexpr std::string_view end = "END\r\n";
inline constexpr std::string_view reset = "RESET\r\n";
inline constexpr std::string_view stored = "STORED\r\n";
inline constexpr std::string_view not_stored = "NOT_STORED\r\n";
inline constexpr std::string_view exists = "EXISTS\r\n";
inline constexpr std::string_view not_found = "NOT_FOUND\r\n";
inline constexpr std::string_view deleted = "DELETED\r\n";
inline constexpr std::string_view touched = "TOUCHED\r\n";
inline constexpr std::string_view error = "ERROR\r\n";
inline constexpr std::string_view bad_format = "CLIENT_ERROR bad command line format\r\n";
inline constexpr std::string_view bad_delete =
    "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n";
inline constexpr std::string_view bad_chunk = "CLIENT_ERROR bad data chunk\r\n";
inline constexpr std::string_view bad_delta = "CLIENT_ERROR invalid numeric delta argument\r\n";
inline constexpr std::string_view bad_exptime = "CLIENT_ERROR invalid exptime argument\r\n";
inline constexpr std::string_view not_a_number =
    "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n";
inline constexpr std::string_view line_too_long = "CLIENT_ERROR line too long\r\n";
inline constexpr std::string_view too_large = "SERVER_ERROR object too large for cache\r\n";
inline constexpr std::string_view no_memory = "SERVER_ERROR out of memory storing object\r\n";
inline constexpr std::string_view no_memory_delta = "SERVER_ERROR out of memory\r\n";
inline constexpr std::string_view no_memory_request =
    "SERVER_ERROR out of memory reading request\r\n";
inline constexpr std::string_view flush_refused = "CLIENT_ERROR flush_all not allowed\r\n";
inline constexpr std::string_view limit_too_small =
    "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m\r\n";
inline constexpr std::string_view limit_in_bytes =
    "MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes\r\n";
inline constexpr std::string_view limit_refused =
    "MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust\r\n";
inline constexpr std::string_view no_tls = "Error TLS not enabled\r\n";
inline constexpr std::string_view shutdown_refused = "ERROR: shutdown not enabled\r\n";
inline constexpr std::string_view bad_shutdown = "CLIENT_ERROR invalid shutdown mode\r\n";
inline constexpr std::string_view damaged =
    "SERVER_ERROR the part of the pool that holds this key is damaged\r\n";
inline constexpr std::string_view detail_usage = "CLIENT_ERROR usage: stats detail on|off|dump\r\n";
inline constexpr std::string_view watch_refused = "CLIENT_ERROR watch commands not allowed\r\n";
inline constexpr std::string_view watch_pipelined =
    "ERROR cannot pipeline other commands before watch\r\n";
inline constexpr std::string_view too_many_watchers =
    "WATCHER_TOO_MANY log watcher limit reached\r\n";
inline constexpr std::string_view no_watcher = "WATCHER_FAILED failed to add log watcher\r\n";
inline constexpr std::string_view list_refused = "CLIENT_ERROR stats cachedump not allowed\r\n";
inline constexpr std::string_view bad_line = "CLIENT_ERROR bad command line\r\n";
inline constexpr std::string_view bad_list_class = "CLIENT_ERROR Illegal slab id\r\n";
inline constexpr std::string_view bad_class = "BADCLASS invalid class id\r\n";
inline constexpr std::string_view no_reassign = "CLIENT_ERROR slab reassignment disabled\r\n";
inline constexpr std::string_view no_crawler = "CLIENT_ERROR lru crawler disabled\r\n";
inline constexpr std::string_view crawler_failed = "ERROR failed to start lru crawler thread\r\n";
inline constexpr std::string_view bad_sleep = "CLIENT_ERROR sleep must be one second or less\r\n";
inline constexpr std::string_view bad_percents = "ERROR hot and warm pcts must not exceed 80\r\n";
inline constexpr std::string_view bad_factors =
    "ERROR hot/warm age factors must be greater than 0\r\n";
inline constexpr std::string_view dump_refused = "ERROR metadump not allowed\r\n";
inline constexpr std::string_view dump_damaged =
    "SERVER_ERROR parts of the pool are damaged: items are missing\r\n";
inline constexpr std::string_view too_many_connections = "ERROR Too many open connections\r\n";
} // namespace reply

} // namespace hf::kv
