// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "binary.hpp"

#include <cstring>

namespace hf::kv::binary {
namespace {

template <class Number> Number number_at(std::string_view bytes, std::size_t at) noexcept {
    Number number = 0;
    for (std::size_t i = 0; i < sizeof number; ++i)
        number = static_cast<Number>(number << 8 | static_cast<unsigned char>(bytes[at + i]));
    return number;
}

template <class Number> void put(char* to, Number number) noexcept {
    for (std::size_t i = sizeof number; i-- > 0; number = static_cast<Number>(number >> 4 >> 4))
        to[i] = static_cast<char>(number & 0xff);
}

// The opcode whose answers are not left out.
opcode loud(opcode code, bool& quiet) noexcept {
    quiet = true;
    switch (code) {
    case opcode::getq: return opcode::get;
    case opcode::getkq: return opcode::getk;
    case opcode::gatq: return opcode::gat;
    case opcode::gatkq: return opcode::gatk;
    default: break;
    }
    if (code >= opcode::setq && code <= opcode::quitq)
        return static_cast<opcode>(static_cast<unsigned>(code) - 0x10);
    if (code == opcode::flushq) return opcode::flush;
    if (code == opcode::appendq) return opcode::append;
    if (code == opcode::prependq) return opcode::prepend;
    quiet = false;
    return code;
}

void refuse(command& c, status s, bool hang_up) noexcept {
    c.asks.what = verb::reply;
    c.refused = s;
    c.hangs_up = hang_up;
}

// The parts that a packet must have.
struct shape {
    bool key;
    bool value; // may have one
    std::size_t extras_bytes;
};
bool has(const header& is, shape wanted) noexcept {
    const std::size_t value_bytes = is.body_bytes - is.key_bytes - is.extras_bytes;
    return (is.key_bytes > 0) == wanted.key && is.extras_bytes == wanted.extras_bytes &&
           (wanted.value || value_bytes == 0);
}

// A CAS number makes a cas of each of the three.
bool parse_storage(verb what, std::string_view extras, command& c) noexcept {
    if (!has(c.head, {.key = true, .value = true, .extras_bytes = 8})) return false;
    c.asks.what = c.head.cas != 0 ? verb::cas : what;
    c.asks.cas = c.head.cas;
    c.asks.flags = number_at<std::uint32_t>(extras, 0);
    c.asks.exptime = number_at<std::uint32_t>(extras, 4);
    return true;
}

bool parse_extension(verb what, command& c) noexcept {
    if (!has(c.head, {.key = true, .value = true, .extras_bytes = 0})) return false;
    c.asks.what = what;
    c.asks.compares = c.head.cas != 0;
    c.asks.cas = c.head.cas;
    return true;
}

// For a retrieval that does not touch, memcached does not check that the body ends here: it ignores
// the bytes that follow.
bool parse_retrieval(bool touches, std::string_view extras, command& c) noexcept {
    if (!has(c.head, {.key = true, .value = touches, .extras_bytes = touches ? 4U : 0U}))
        return false;
    c.asks.what = verb::retrieve;
    c.asks.touches = touches;
    if (touches) c.asks.exptime = number_at<std::uint32_t>(extras, 0);
    return true;
}

bool parse_delta(verb what, std::string_view extras, command& c) noexcept {
    constexpr std::uint32_t makes_none = 0xffffffff;
    if (!has(c.head, {.key = true, .value = false, .extras_bytes = 20})) return false;
    const auto exptime = number_at<std::uint32_t>(extras, 16);
    c.asks.what = what;
    c.asks.delta = number_at<std::uint64_t>(extras, 0);
    c.asks.initial = number_at<std::uint64_t>(extras, 8);
    c.asks.vivifies = exptime != makes_none;
    c.asks.made_exptime = exptime;
    c.asks.compares = c.head.cas != 0;
    c.asks.cas = c.head.cas;
    return true;
}

bool parse_removal(command& c) noexcept {
    if (!has(c.head, {.key = true, .value = false, .extras_bytes = 0})) return false;
    c.asks.what = verb::remove;
    c.asks.compares = c.head.cas != 0;
    c.asks.cas = c.head.cas;
    return true;
}

bool parse_flush(std::string_view extras, command& c) noexcept {
    if (!has(c.head, {.key = false, .value = false, .extras_bytes = extras.empty() ? 0U : 4U}))
        return false;
    c.asks.what = verb::flush_all;
    if (!extras.empty()) c.asks.exptime = number_at<std::uint32_t>(extras, 0);
    return true;
}

bool parse_verbosity(std::string_view extras, command& c) noexcept {
    if (!has(c.head, {.key = false, .value = false, .extras_bytes = 4})) return false;
    c.asks.what = verb::verbosity;
    c.asks.delta = number_at<std::uint32_t>(extras, 0);
    return true;
}

bool parse_stat(std::string_view key, command& c) noexcept {
    if (!has(c.head, {.key = !key.empty(), .value = true, .extras_bytes = 0})) return false;
    c.asks.what = verb::stats; // of its body nothing is asked, either
    c.asks.keys = key;
    return true;
}

// False: not a packet of that command.
bool parse_known(opcode code, std::string_view extras, std::string_view key, command& c) noexcept {
    constexpr shape bare{.key = false, .value = false, .extras_bytes = 0};
    c.sends_key = code == opcode::getk || code == opcode::gatk;
    c.sends_value = code != opcode::touch;
    switch (code) {
    case opcode::get:
    case opcode::getk: return parse_retrieval(false, extras, c);
    case opcode::touch:
    case opcode::gat:
    case opcode::gatk: return parse_retrieval(true, extras, c);
    case opcode::set: return parse_storage(verb::set, extras, c);
    case opcode::add: return parse_storage(verb::add, extras, c);
    case opcode::replace: return parse_storage(verb::replace, extras, c);
    case opcode::append: return parse_extension(verb::append, c);
    case opcode::prepend: return parse_extension(verb::prepend, c);
    case opcode::remove: return parse_removal(c);
    case opcode::incr: return parse_delta(verb::incr, extras, c);
    case opcode::decr: return parse_delta(verb::decr, extras, c);
    case opcode::flush: return parse_flush(extras, c);
    case opcode::verbosity: return parse_verbosity(extras, c);
    case opcode::stat: return parse_stat(key, c);
    case opcode::noop: return has(c.head, bare);
    case opcode::version: c.asks.what = verb::version; return has(c.head, bare);
    case opcode::quit: c.asks.what = verb::quit; return has(c.head, bare);
    case opcode::sasl_list: refuse(c, status::unknown, false); return has(c.head, bare);
    case opcode::sasl_auth:
    case opcode::
        sasl_step: // its body is a name and a password; there is nothing to check them with
        if (!extras.empty() || key.empty()) return false;
        break;
    default: break;
    }
    refuse(c, status::unknown, false);
    c.passed_over_bytes = c.head.body_bytes - c.head.key_bytes - c.head.extras_bytes;
    return true;
}

} // namespace

std::string_view text_of(status s) noexcept {
    switch (s) {
    case status::ok: return {};
    case status::not_found: return "Not found";
    case status::exists: return "Data exists for key.";
    case status::too_large: return "Too large.";
    case status::bad_arguments: return "Invalid arguments";
    case status::not_stored: return "Not stored.";
    case status::not_a_number: return "Non-numeric server-side value for incr or decr";
    case status::refused: return "Auth failure.";
    case status::unknown: return "Unknown command";
    case status::no_memory: return "Out of memory";
    case status::damaged: return "the part of the pool that holds this key is damaged";
    }
    return {};
}

header header_of(std::string_view input) noexcept {
    return {.code = number_at<std::uint8_t>(input, 1),
            .extras_bytes = number_at<std::uint8_t>(input, 4),
            .key_bytes = number_at<std::uint16_t>(input, 2),
            .body_bytes = number_at<std::uint32_t>(input, 8),
            .opaque = number_at<std::uint32_t>(input, 12),
            .cas = number_at<std::uint64_t>(input, 16)};
}

command parse_packet(std::string_view front) noexcept {
    command c;
    c.head = header_of(front);
    const header& is = c.head;
    // Lengths that do not add up do not show where the next packet begins.
    if (std::size_t{is.key_bytes} + is.extras_bytes > is.body_bytes) {
        refuse(c, status::unknown, true);
        return c;
    }
    const std::string_view extras = front.substr(header_bytes, is.extras_bytes);
    const std::string_view key = front.substr(header_bytes + is.extras_bytes, is.key_bytes);
    if (key.size() > key_bytes_max) {
        refuse(c, status::bad_arguments, true);
        return c;
    }
    c.asks.key = key;
    c.asks.value_bytes = is.body_bytes - is.key_bytes - is.extras_bytes;
    const opcode code = loud(static_cast<opcode>(is.code), c.quiet);
    if (!parse_known(code, extras, key, c)) refuse(c, status::bad_arguments, true);
    return c;
}

void append_response(byte_buffer& out, const header& to, status s, std::string_view extras,
                     std::string_view key, std::string_view value, std::uint64_t cas) {
    const std::size_t body = extras.size() + key.size() + value.size();
    char* at = out.room(header_bytes + body);
    at[0] = static_cast<char>(response_magic);
    at[1] = static_cast<char>(to.code);
    put(at + 2, static_cast<std::uint16_t>(key.size()));
    at[4] = static_cast<char>(extras.size());
    at[5] = 0; // raw bytes, the only type of data
    put(at + 6, static_cast<std::uint16_t>(s));
    put(at + 8, static_cast<std::uint32_t>(body));
    put(at + 12, to.opaque);
    put(at + 16, cas);
    at += header_bytes;
    for (const std::string_view part : {extras, key, value}) {
        if (!part.empty()) std::memcpy(at, part.data(), part.size());
        at += part.size();
    }
    out.commit(header_bytes + body);
}

void append_refusal(byte_buffer& out, const header& to, status s) {
    append_response(out, to, s, {}, {}, text_of(s));
}

big_endian_32::big_endian_32(std::uint32_t number) noexcept { put(bytes, number); }
big_endian_64::big_endian_64(std::uint64_t number) noexcept { put(bytes, number); }

} // namespace hf::kv::binary
