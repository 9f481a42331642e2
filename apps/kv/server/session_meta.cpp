// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The meta commands of a session: asks of the store, in the words of the classic commands, and
// replies.
#include "session.hpp"

namespace hf::kv {
namespace {

constexpr std::string_view flags_of_get = "stcflhOk";
constexpr std::string_view flags_of_set = "Okc";
constexpr std::string_view flags_of_delete = "Ok";
constexpr std::string_view flags_of_delta = "ctOk";

void begin_hit(byte_buffer& out, bool value, std::size_t bytes) {
    out.append(value ? "VA " : "HD");
    if (value) append_number(out, bytes);
}

void append_get(byte_buffer& out, const meta_request& m, const item_view& is, std::uint32_t now) {
    begin_hit(out, m.value, is.value.size());
    const meta_facts facts{.key = m.asks.key,
                           .binary_key = (is.marks & mark_binary) != 0,
                           .cas = is.cas,
                           .flags = is.flags,
                           .value_bytes = is.value.size(),
                           .exptime = is.exptime,
                           .last_access = is.last_access,
                           .now = now,
                           .fetched = is.fetched,
                           .made = is.made};
    append_meta_flags(out, m, flags_of_get, facts);
    if ((is.marks & mark_sent) != 0) out.append(" Z");
    if ((is.marks & mark_stale) != 0) out.append(" X");
    if (is.won) out.append(" W");
    out.append("\r\n");
    if (!m.value) return;
    out.append(is.value);
    out.append("\r\n");
}

// The whole reply of a request that found nothing, or was refused by the item.
void append_code(byte_buffer& out, std::string_view code, const meta_request& m,
                 std::string_view flags, const meta_facts& facts) {
    out.append(code);
    append_meta_flags(out, m, flags, facts);
    out.append("\r\n");
}

meta_facts facts_of(const meta_request& m) {
    return {.key = m.asks.key, .binary_key = m.asks.binary_key};
}

} // namespace

void session::meta_get(const meta_request& m, byte_buffer& out) {
    store& items = *serving_->items;
    const request& r = m.asks;
    counted_->add(r.touches ? count::cmd_touch : count::cmd_get);
    const std::uint32_t now = items.now();
    look looked(*this, r.key);
    const auto show = [&](const item_view& found) {
        looked.found(found.value.size());
        append_get(out, m, found, now);
    };
    bool there = false, changes = r.touches || r.vivifies || r.recaches;
    if (!changes) {
        there = items.get(
            r.key, *counted_,
            [&](const item_view& found) {
                // The first client that meets a stale item wins, and the item stays.
                changes = (found.marks & (mark_stale | mark_sent)) == mark_stale;
                if (!changes) show(found);
            },
            r.unseen);
    }
    if (changes) {
        const bool counted_already = there;
        there = items.get_and_change(r, *counted_, show);
        if (r.touches) counted_->add(there ? count::touch_hits : count::touch_misses);
        else if (!counted_already) counted_->add(there ? count::get_hits : count::get_misses);
    }
    looked.tell(there);
    if (there) return;
    if (items.damaged(r.key)) out.append(reply::damaged);
    else if (!m.quiet) append_code(out, "EN", m, flags_of_delete, facts_of(m));
}

void session::meta_set_reply(const meta_request& m, outcome result, const change& done,
                             byte_buffer& out) {
    if (result == outcome::stored && m.quiet) return;
    std::string_view code;
    switch (result) {
    case outcome::stored: code = "HD"; break;
    case outcome::exists: code = "EX"; break;
    case outcome::not_found: code = "NF"; break;
    case outcome::not_stored: code = "NS"; break;
    default: out.append(words_for(result, m.asks)); return;
    }
    meta_facts facts = facts_of(m);
    facts.cas = done.cas;
    append_code(out, code, m, flags_of_set, facts);
}

void session::meta_delete(const meta_request& m, byte_buffer& out) {
    change done;
    const outcome result = serving_->items->remove(m.asks, *counted_, done);
    tell_met(m.asks.key, done);
    if (result == outcome::done && m.quiet) return;
    const std::string_view code = result == outcome::done        ? "HD"
                                  : result == outcome::exists    ? "EX"
                                  : result == outcome::not_found ? "NF"
                                                                 : "";
    if (code.empty()) out.append(words_for(result, m.asks));
    else append_code(out, code, m, flags_of_delete, facts_of(m));
}

void session::meta_delta(const meta_request& m, byte_buffer& out) {
    store& items = *serving_->items;
    request r = m.asks;
    r.what = m.adds ? verb::incr : verb::decr;
    change done;
    const outcome result = items.change_number(r, *counted_, done);
    tell_met(r.key, done);
    meta_facts facts = facts_of(m);
    if (result == outcome::not_found || result == outcome::exists)
        return append_code(out, result == outcome::exists ? "EX" : "NF", m, flags_of_delete, facts);
    if (result != outcome::done) return out.append(words_for(result, r));
    if (m.quiet && !done.made) return;
    char digits[20];
    const std::string_view number(digits, format_number(digits, done.number));
    facts.cas = done.cas;
    facts.exptime = done.exptime;
    facts.now = items.now();
    facts.made = done.made;
    begin_hit(out, m.value, number.size());
    append_meta_flags(out, m, flags_of_delta, facts);
    out.append("\r\n");
    if (!m.value) return;
    out.append(number);
    out.append("\r\n");
}

// Memcached's class is here the power of two that the item's bytes need.
void session::meta_debug(const meta_request& m, byte_buffer& out) {
    store& items = *serving_->items;
    counted_->add(count::cmd_meta);
    const auto show = [&](const item_view& found) {
        const std::uint32_t now = items.now();
        const std::size_t bytes = item_overhead_bytes + m.asks.key.size() + found.value.size();
        out.append("ME ");
        append_meta_key(out, m.asks.key, (found.marks & mark_binary) != 0);
        out.append(found.exptime == 0 || found.exptime > now ? " exp=-" : " exp=");
        append_number(out, found.exptime == 0 ? 1 : found.exptime - now);
        out.append(" la=");
        append_number(out, now - found.last_access);
        out.append(" cas=");
        append_number(out, found.cas);
        out.append(found.fetched ? " fetch=yes cls=" : " fetch=no cls=");
        append_number(out, size_class_of(bytes));
        out.append(" size=");
        append_number(out, bytes);
        out.append("\r\n");
    };
    if (items.get(m.asks.key, *counted_, show, true)) return;
    out.append(items.damaged(m.asks.key) ? reply::damaged : "EN\r\n");
}

} // namespace hf::kv
