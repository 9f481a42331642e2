// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The packets of a session that speaks the binary protocol: asks of the store, in the words of the
// classic commands, and answers.
#include "session.hpp"

#include <cstdio>

namespace hf::kv {

using binary::append_refusal;
using binary::append_response;
using binary::command;
using binary::status;

// False: the packet has not fully arrived.
bool session::packet(std::string_view rest, byte_buffer& out, progress& p) {
    if (static_cast<unsigned char>(rest.front()) != binary::request_magic) {
        p.close = true; // where the next packet begins is not known; memcached says nothing either
        return true;
    }
    p.wanted = binary::header_bytes;
    if (rest.size() < p.wanted) return false;
    const binary::header head = binary::header_of(rest);
    p.wanted = head.front_bytes();
    if (rest.size() < p.wanted) return false;
    p.wanted = 0;
    const command c = binary::parse_packet(rest.substr(0, head.front_bytes()));
    if (carries_value(c.asks.what)) return packet_with_value(c, rest, out, p);
    if (serving_->verbosity.load(std::memory_order_relaxed) > 1)
        std::fprintf(stderr, "<%d binary command 0x%02x\n", number_, unsigned{head.code});
    p.consumed += head.front_bytes();
    switch (c.asks.what) {
    case verb::reply: swallow_ = c.passed_over_bytes; break;
    case verb::retrieve: packet_retrieval(c, out); return true;
    case verb::incr:
    case verb::decr: packet_delta(c, out); return true;
    case verb::stats: packet_stats(c, out); return true;
    default: packet_simple(c, out, p); return true;
    }
    p.close = c.hangs_up;
    if (c.refused != status::ok) append_refusal(out, c.head, c.refused);
    else append_response(out, c.head, status::ok, {}, {}, {}); // noop
    return true;
}

status session::status_for(outcome result, verb asked) noexcept {
    switch (result) {
    case outcome::stored:
    case outcome::done: return status::ok;
    case outcome::exists: return status::exists;
    case outcome::not_found: return status::not_found;
    case outcome::not_stored:
        // Each of memcached's own.
        return asked == verb::add       ? status::exists
               : asked == verb::replace ? status::not_found
                                        : status::not_stored;
    case outcome::not_a_number: return status::not_a_number;
    case outcome::too_large: return status::too_large;
    case outcome::damaged: return status::damaged;
    case outcome::no_memory: break;
    }
    return status::no_memory;
}

bool session::packet_with_value(const command& c, std::string_view rest, byte_buffer& out,
                                progress& p) {
    store& items = *serving_->items;
    const request& r = c.asks;
    const std::size_t front = c.head.front_bytes();
    const bool is_set = c.head.code == static_cast<std::uint8_t>(binary::opcode::set) ||
                        c.head.code == static_cast<std::uint8_t>(binary::opcode::setq);
    if (items.too_large(r.key.size(), r.value_bytes)) {
        counted_->add(count::store_too_large);
        tell_stored(r, 0, outcome::too_large, {});
        // A client that cannot store the new value must not read the old one.
        if (is_set) forget(r.key);
        append_refusal(out, c.head, status::too_large);
        swallow_ = r.value_bytes;
        p.consumed += front;
        return true;
    }
    const std::size_t whole = front + r.value_bytes;
    if (rest.size() < whole) {
        p.wanted = whole;
        p.value = true;
        return false;
    }
    p.consumed += whole;
    serving_->prefixes.add(prefix_counts::what::set, r.key);
    change done;
    const outcome result = items.write(r, rest.substr(front, r.value_bytes), *counted_, done);
    tell_met(r.key, done);
    tell_stored(r, r.value_bytes, result, done);
    if (result == outcome::no_memory && is_set) forget(r.key);
    const status s = status_for(result, r.what);
    if (s != status::ok) append_refusal(out, c.head, s);
    else if (!c.quiet) append_response(out, c.head, s, {}, {}, {}, done.cas);
    return true;
}

// get, touch and gat, with the key or without.
void session::packet_retrieval(const command& c, byte_buffer& out) {
    store& items = *serving_->items;
    const request& r = c.asks;
    const std::string_view key = c.sends_key ? r.key : std::string_view();
    look looked(*this, r.key);
    const auto visit = [&](const item_view& found) {
        looked.found(found.value.size());
        append_response(out, c.head, status::ok, binary::big_endian_32(found.flags).view(), key,
                        c.sends_value ? found.value : std::string_view(), found.cas);
    };
    counted_->add(r.touches ? count::cmd_touch : count::cmd_get);
    const bool there = r.touches ? touch(r.key, r, visit) : items.get(r.key, *counted_, visit);
    looked.tell(there);
    serving_->prefixes.add(there ? prefix_counts::what::hit : prefix_counts::what::get, r.key);
    if (there) return;
    if (items.damaged(r.key)) append_refusal(out, c.head, status::damaged); // no miss
    else if (c.quiet) return;
    else if (c.sends_key) append_response(out, c.head, status::not_found, {}, key, {});
    else append_refusal(out, c.head, status::not_found);
}

void session::packet_delta(const command& c, byte_buffer& out) {
    change done;
    const outcome result = serving_->items->change_number(c.asks, *counted_, done);
    tell_met(c.asks.key, done);
    const status s = status_for(result, c.asks.what);
    if (s != status::ok) return append_refusal(out, c.head, s);
    if (c.quiet) return;
    append_response(out, c.head, s, {}, {}, binary::big_endian_64(done.number).view(), done.cas);
}

// The lines of `stats`, each in a packet; a packet without a name ends them.
void session::packet_stats(const command& c, byte_buffer& out) {
    byte_buffer lines;
    append_stats(lines, c.asks.keys, *serving_);
    std::string_view text = lines.view();
    if (c.asks.keys == "detail dump") // in one, as memcached
        append_response(out, c.head, status::ok, {}, "detailed", text);
    if (text == reply::error || text == reply::detail_usage)
        return append_refusal(out, c.head, status::not_found);
    constexpr std::string_view opening = "STAT ";
    while (text.starts_with(opening)) {
        const std::string_view line = without_end(text.substr(0, line_bytes(text)));
        text.remove_prefix(line_bytes(text));
        const std::string_view fact = line.substr(opening.size());
        const std::size_t space = fact.find(' ');
        append_response(out, c.head, status::ok, {}, fact.substr(0, space), fact.substr(space + 1));
    }
    if (text.empty()) return; // of stat sizes_enable, which memcached does not end
    append_response(out, c.head, status::ok, {}, {}, {});
}

void session::packet_simple(const command& c, byte_buffer& out, progress& p) {
    store& items = *serving_->items;
    status s = status::ok;
    change done;
    std::string_view value;
    switch (c.asks.what) {
    case verb::remove:
        serving_->prefixes.add(prefix_counts::what::removal, c.asks.key);
        s = status_for(items.remove(c.asks, *counted_, done), c.asks.what);
        tell_met(c.asks.key, done);
        break;
    case verb::flush_all:
        if (serving_->chosen.flush_disabled) {
            s = status::refused;
            break;
        }
        counted_->add(count::cmd_flush);
        items.flush_all(c.asks.exptime);
        break;
    case verb::verbosity:
        serving_->verbosity = static_cast<int>(c.asks.delta > 3 ? 3 : c.asks.delta);
        break;
    case verb::version: value = version_text; break;
    default: p.close = p.orderly = true; // quit
    }
    if (s != status::ok) append_refusal(out, c.head, s);
    else if (!c.quiet) append_response(out, c.head, s, {}, {}, value);
}

} // namespace hf::kv
