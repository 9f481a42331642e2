// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The memcached binary protocol as bytes: packets of a header, extras, a key and a value. Like meta
// commands, packets are translated into the classic commands (request, protocol.hpp), so the store
// has one logic. Answers and refusals are those of memcached 1.6.18, with the exceptions that
// parse_packet() names.
//
// (1) Every view in a command points into the bytes it was parsed from.
// (2) parse_packet() accepts any header and any key: an invalid packet becomes a refusal.
// (3) Numbers are big-endian.
#pragma once

#include "protocol.hpp"

#include <cstdint>
#include <string_view>

namespace hf::kv::binary {

inline constexpr std::size_t header_bytes = 24;
inline constexpr unsigned char request_magic = 0x80;
inline constexpr unsigned char response_magic = 0x81;

enum class opcode : std::uint8_t {
    get = 0x00,
    set = 0x01,
    add = 0x02,
    replace = 0x03,
    remove = 0x04,
    incr = 0x05,
    decr = 0x06,
    quit = 0x07,
    flush = 0x08,
    getq = 0x09,
    noop = 0x0a,
    version = 0x0b,
    getk = 0x0c,
    getkq = 0x0d,
    append = 0x0e,
    prepend = 0x0f,
    stat = 0x10,
    setq = 0x11, // setq to prependq: as set to prepend
    addq = 0x12,
    replaceq = 0x13,
    removeq = 0x14,
    incrq = 0x15,
    decrq = 0x16,
    quitq = 0x17,
    flushq = 0x18,
    appendq = 0x19,
    prependq = 0x1a,
    verbosity = 0x1b,
    touch = 0x1c,
    gat = 0x1d,
    gatq = 0x1e,
    sasl_list = 0x20,
    sasl_auth = 0x21,
    sasl_step = 0x22,
    gatk = 0x23,
    gatkq = 0x24,
};

enum class status : std::uint16_t {
    ok = 0x00,
    not_found = 0x01,
    exists = 0x02,
    too_large = 0x03,
    bad_arguments = 0x04,
    not_stored = 0x05,
    not_a_number = 0x06,
    refused = 0x20,
    unknown = 0x81,
    no_memory = 0x82,
    damaged = 0x84, // the protocol's "internal error"
};
/// Memcached's text for that status.
std::string_view text_of(status s) noexcept;

struct header {
    std::uint8_t code = 0;
    std::uint8_t extras_bytes = 0;
    std::uint16_t key_bytes = 0;
    std::uint32_t body_bytes = 0; // extras, key and value
    std::uint32_t opaque = 0;     // the client's, sent back
    std::uint64_t cas = 0;

    /// The bytes that must be there before a packet is understood: all except the value. At most 66
    /// KB.
    std::size_t front_bytes() const noexcept {
        return header_bytes + extras_bytes + std::size_t{key_bytes};
    }
};
/// Requires: input.size() >= header_bytes.
header header_of(std::string_view input) noexcept;

struct command {
    header head;
    /// 'reply' (with 'refused', or noop's success), 'retrieve' (of 'key'; also touch), 'incr' or
    /// 'decr', 'remove', 'flush_all', 'stats', 'verbosity', 'version', 'quit', or one that carries
    /// a value.
    request asks;
    bool quiet = false;       // a miss, or what is not a retrieval's success, has no answer
    bool sends_key = false;   // of a retrieval
    bool sends_value = false; // of a retrieval
    status refused = status::ok;
    bool hangs_up = false;             // behind the refusal
    std::size_t passed_over_bytes = 0; // of a refused packet: they follow its front
};

/// Understands a packet by its front, whose magic is known to be a request's.
///
/// Requires: front.size() >= header_of(front).front_bytes().
/// As in memcached, if the body of `stat`, `touch` or `gat` is too long, the surplus bytes are the
/// client's next request. Differs from memcached: of the body of an unknown command exactly the
/// rest is skipped. `verbosity` is there.
command parse_packet(std::string_view front) noexcept;

/// A whole answer.
void append_response(byte_buffer& out, const header& to, status s, std::string_view extras,
                     std::string_view key, std::string_view value, std::uint64_t cas = 0);
/// The answer of this status with its text.
void append_refusal(byte_buffer& out, const header& to, status s);
/// Big-endian bytes of a number, for extras and values.
struct big_endian_32 {
    explicit big_endian_32(std::uint32_t number) noexcept;
    std::string_view view() const noexcept { return {bytes, sizeof bytes}; }
    char bytes[4];
};
struct big_endian_64 {
    explicit big_endian_64(std::uint64_t number) noexcept;
    std::string_view view() const noexcept { return {bytes, sizeof bytes}; }
    char bytes[8];
};

} // namespace hf::kv::binary
