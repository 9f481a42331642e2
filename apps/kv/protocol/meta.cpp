// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "meta.hpp"

#include <limits>

namespace hf::kv {
namespace {

constexpr std::size_t opaque_bytes_max = 32; // its letter counted
constexpr std::string_view bad_token = "CLIENT_ERROR bad token in command line format\r\n";
constexpr std::string_view bad_flag = "CLIENT_ERROR invalid or duplicate flag\r\n";
constexpr std::string_view long_opaque = "CLIENT_ERROR opaque token too long\r\n";

constexpr std::string_view base64_digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// As memcached: ignores other characters, and everything behind the padding. 0: not base64.
std::size_t decode_base64(std::string_view text, char* to) noexcept {
    std::size_t digits = 0;
    for (const char c : text) digits += c == '=' || base64_digits.find(c) != std::string_view::npos;
    if (digits == 0 || digits % 4 != 0) return 0;
    std::size_t bytes = 0, padding = 0;
    std::uint32_t group = 0;
    unsigned filled = 0;
    for (const char c : text) {
        const std::size_t digit = base64_digits.find(c);
        if (c == '=') ++padding;
        else if (digit == std::string_view::npos) continue;
        group = group << 6 | (c == '=' ? 0U : static_cast<std::uint32_t>(digit));
        if (++filled < 4) continue;
        if (padding > 2) return 0;
        for (unsigned i = 0; i < 3 - padding; ++i)
            to[bytes++] = static_cast<char>(group >> (16 - 8 * i));
        if (padding > 0) break;
        filled = 0;
    }
    return bytes;
}

// Reads one flag. Empty: understood; else the refusal. A refusal of the text behind a letter does
// not end the search for repeated and unknown letters, which are worse.
std::string_view read_flag(std::string_view word, meta_request& to, bool& fatal) noexcept {
    request& r = to.asks;
    const std::string_view token = word.substr(1);
    const auto number = [&](std::uint64_t& n) { return parse_number(token, n); };
    const auto time = [&](std::int64_t& s) { return parse_signed(token, s) ? "" : bad_token; };
    std::uint64_t delta = 0;
    switch (word[0]) {
    case 'b': {
        const std::size_t bytes = decode_base64(r.key, to.decoded_key.data());
        if (bytes == 0) return "CLIENT_ERROR error decoding key\r\n";
        r.key = {to.decoded_key.data(), bytes};
        r.binary_key = true;
        return {};
    }
    case 'N': r.vivifies = true; return time(r.made_exptime);
    case 'T':
        r.touches = true;
        r.recaches_last = !r.recaches;
        return time(r.exptime);
    case 'R': r.recaches = true; return time(r.recache_exptime);
    case 'F': return parse_flags(token, r.flags) ? std::string_view() : reply::bad_format;
    case 'C': r.compares = true; return number(r.cas) ? "" : bad_token;
    case 'M': return word.size() == 2 ? "" : "CLIENT_ERROR incorrect length for M token\r\n";
    case 'J': return number(r.initial) ? "" : "CLIENT_ERROR invalid numeric initial value\r\n";
    case 'D':
        if (!number(delta)) return "CLIENT_ERROR invalid numeric delta value\r\n";
        r.delta = delta;
        return {};
    case 'I': r.invalidates = true; return {};
    case 'v': to.value = true; return {};
    case 'q': to.quiet = true; return {};
    case 'u': r.unseen = true; return {};
    case 'O':
    case 'P':
    case 'L':
    case 'k':
    case 's':
    case 't':
    case 'c':
    case 'f':
    case 'l':
    case 'h': return {};
    default: fatal = true; return "CLIENT_ERROR invalid flag\r\n";
    }
}

// The refusal; empty if the flags are valid. 'mode' is the argument of M.
std::string_view read_flags(meta_request& to, char& mode) noexcept {
    std::array<bool, 127> seen{};
    std::string_view wrong;
    for (std::size_t i = to.first_flag; i < to.word_count; ++i) {
        const std::string_view word = to.words[i];
        const auto letter = static_cast<unsigned char>(word[0]);
        if (letter >= seen.size() || seen[letter]) return "CLIENT_ERROR duplicate flag\r\n";
        seen[letter] = true;
        bool fatal = false;
        const std::string_view found = read_flag(word, to, fatal);
        if (fatal) return found;
        // Flags that are not numbers leave an earlier refusal as it is.
        if (!found.empty() && (letter != 'F' || wrong.empty())) wrong = found;
        if (letter == 'M' && word.size() == 2) mode = word[1];
        // After a miss, the last flag decides how long the item lives.
        if (letter == 'T' && to.asks.vivifies) to.asks.made_exptime = to.asks.exptime;
    }
    return wrong;
}

bool has_long_opaque(const meta_request& in) noexcept {
    for (std::size_t i = in.first_flag; i < in.word_count; ++i)
        if (in.words[i][0] == 'O' && in.words[i].size() > opaque_bytes_max) return true;
    return false;
}

void refuse(meta_request& to, std::string_view with) noexcept {
    to.asks.what = verb::reply;
    to.asks.reply = with;
}

void parse_meta_set(meta_request& to) noexcept {
    request& r = to.asks;
    std::int64_t bytes = 0;
    if (to.word_count < 3 || !parse_signed(to.words[2], bytes) || bytes < 0 ||
        bytes > std::numeric_limits<std::int32_t>::max() - 2)
        return refuse(to, reply::bad_format);
    r.value_bytes = static_cast<std::uint32_t>(bytes);
    to.first_flag = 3;
    to.passed_over_bytes = static_cast<std::size_t>(bytes) + 2;
    char mode = 'S';
    if (const auto wrong = read_flags(to, mode); !wrong.empty()) return refuse(to, wrong);
    switch (mode) {
    case 'S': r.what = r.compares ? verb::cas : verb::set; break;
    case 'R': r.what = r.compares ? verb::cas : verb::replace; break;
    case 'E': r.what = verb::add; break;
    case 'A': r.what = verb::append; break;
    case 'P': r.what = verb::prepend; break;
    default: return refuse(to, "CLIENT_ERROR invalid mode for ms M token\r\n");
    }
    if (has_long_opaque(to)) refuse(to, long_opaque);
}

void parse_meta_change(meta_request& to, verb what) noexcept {
    char mode = 'I';
    to.asks.what = what;
    to.asks.delta = 1;
    if (!read_flags(to, mode).empty()) return refuse(to, bad_flag);
    if (what == verb::meta_delta) {
        if (mode != 'I' && mode != '+' && mode != 'D' && mode != '-')
            return refuse(to, "CLIENT_ERROR invalid mode for ma M token\r\n");
        to.adds = mode == 'I' || mode == '+';
    }
    if (has_long_opaque(to)) refuse(to, long_opaque);
}

void parse_meta_debug(meta_request& to) noexcept {
    to.asks.what = verb::meta_debug;
    if (to.word_count < 3 || to.words[2] != "b") return;
    bool fatal = false;
    if (!read_flag("b", to, fatal).empty()) refuse(to, reply::bad_format);
}

} // namespace

void parse_meta(std::string_view line, meta_request& to) noexcept {
    std::string_view rest = line;
    bool too_many = false;
    for (auto word = next_word(rest); !word.empty() && !too_many; word = next_word(rest)) {
        too_many = to.word_count == meta_words_max;
        if (!too_many) to.words[to.word_count++] = word;
    }
    const char command = to.words[0][1];
    if (to.word_count < 2) return refuse(to, command == 'e' ? reply::bad_format : reply::error);
    to.asks.key = to.words[1];
    to.first_flag = 2;
    if (to.asks.key.size() > key_bytes_max || (command == 's' && to.word_count == 2))
        return refuse(to, reply::bad_format);
    if (command == 'e') return parse_meta_debug(to);
    if (too_many)
        return refuse(to, command == 'g' ? "CLIENT_ERROR options flags are too long\r\n"
                                         : "CLIENT_ERROR options flags too long\r\n");
    if (command == 's') return parse_meta_set(to);
    if (command != 'g')
        return parse_meta_change(to, command == 'd' ? verb::meta_delete : verb::meta_delta);
    char mode = 0;
    to.asks.what = verb::meta_get;
    if (const auto wrong = read_flags(to, mode); !wrong.empty()) return refuse(to, wrong);
    if (has_long_opaque(to)) refuse(to, long_opaque);
}

void append_number(byte_buffer& out, std::uint64_t number) {
    char digits[20];
    out.append({digits, format_number(digits, number)});
}

void append_meta_key(byte_buffer& out, std::string_view key, bool binary) {
    if (!binary) return out.append(key);
    for (std::size_t at = 0; at < key.size(); at += 3) {
        const std::size_t bytes = key.size() - at < 3 ? key.size() - at : 3;
        std::uint32_t group = 0;
        for (std::size_t i = 0; i < 3; ++i)
            group = group << 8 | (i < bytes ? static_cast<unsigned char>(key[at + i]) : 0U);
        char text[4];
        for (std::size_t i = 0; i < 4; ++i)
            text[i] = i > bytes ? '=' : base64_digits[group >> (18 - 6 * i) & 63];
        out.append({text, 4});
    }
}

void append_meta_flags(byte_buffer& out, const meta_request& of, std::string_view allowed,
                       const meta_facts& is) {
    std::uint32_t exptime = is.exptime; // as far as the flags have come
    for (std::size_t i = of.first_flag; i < of.word_count; ++i) {
        const std::string_view word = of.words[i];
        std::int64_t given_s = 0;
        if ((word[0] == 'T' || (word[0] == 'N' && is.made)) &&
            parse_signed(word.substr(1), given_s))
            exptime = expiry_of(given_s, is.now);
        if (allowed.find(word[0]) == std::string_view::npos) continue;
        out.append(" ");
        if (word[0] == 'O') {
            out.append(word);
            continue;
        }
        out.append(word.substr(0, 1));
        switch (word[0]) {
        case 'k':
            append_meta_key(out, is.key, is.binary_key);
            if (is.binary_key) out.append(" b");
            break;
        case 'c': append_number(out, is.cas); break;
        case 'f': append_number(out, is.flags); break;
        case 's': append_number(out, is.value_bytes); break;
        case 'h': out.append(is.fetched ? "1" : "0"); break;
        case 'l': append_number(out, is.now - is.last_access); break;
        default: // t
            if (exptime == 0) out.append("-1");
            else append_number(out, exptime - is.now);
        }
    }
}

} // namespace hf::kv
