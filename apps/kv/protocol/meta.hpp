// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memcached's meta commands as bytes: mg, ms, md, ma and me with their flags. They are translated
// into the classic commands (request, protocol.hpp), so the store has one logic.
//
// (1) parse_meta() accepts any line; what memcached 1.6.18 refuses gets the same refusal.
// (2) A reply's flags come in the order of the request's.
#pragma once

#include "protocol.hpp"

#include <array>
#include <cstdint>
#include <string_view>

namespace hf::kv {

inline constexpr std::size_t meta_words_max = 19; // command and key with them

struct meta_request {
    /// 'what' is meta_get, meta_delete, meta_delta, meta_debug, or one that carries a value; or
    /// reply.
    request asks;
    bool value = false; // to be sent back
    bool quiet = false; // the usual answer is left out
    bool adds = true;   // meta_delta: up, not down
    /// verb::reply: bytes of a value that follows nevertheless.
    std::size_t passed_over_bytes = 0;

    std::array<std::string_view, meta_words_max> words; // the flags are in [first_flag, word_count)
    std::size_t word_count = 0;
    std::size_t first_flag = 0;
    std::array<char, key_bytes_max> decoded_key; // what asks.key is a view of, when it is binary

    std::string_view flag(std::size_t at) const noexcept { return words[at]; }
};

/// Understands a line that parse() has called meta. 'to' must not be copied afterwards.
void parse_meta(std::string_view line, meta_request& to) noexcept;

/// The facts about an item that a reply may contain.
struct meta_facts {
    std::string_view key;
    bool binary_key = false; // the item's own
    std::uint64_t cas = 0;
    std::uint32_t flags = 0;
    std::size_t value_bytes = 0;
    std::uint32_t exptime = 0; // before T or N had its effect
    std::uint32_t last_access = 0;
    std::uint32_t now = 0;
    bool fetched = false;
    bool made = false;
};

/// Appends, for each flag of the request that 'allowed' names, what it asks back.
void append_meta_flags(byte_buffer& out, const meta_request& of, std::string_view allowed,
                       const meta_facts& is);
/// The key as a meta reply has it, in base64 when it is binary.
void append_meta_key(byte_buffer& out, std::string_view key, bool binary);
void append_number(byte_buffer& out, std::uint64_t number);

} // namespace hf::kv
