// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "session.hpp"

#include "connection_list.hpp"
#include <kv/store/memory_limit.hpp>

#include <csignal>
#include <cstdio>
#include <unistd.h>

namespace hf::kv {
namespace {

// Answers that are sent in parts; others are served between the parts.
bool is_long_answer(verb what) noexcept {
    return what == verb::retrieve || what == verb::dump || what == verb::connections;
}

} // namespace

session::progress session::run(std::string_view input, byte_buffer& out,
                               std::size_t out_bytes_max) {
    progress p;
    while (p.consumed < input.size() && !p.close) {
        if (out.size() >= out_bytes_max) {
            p.paused = true;
            return p;
        }
        const std::string_view rest = input.substr(p.consumed);
        if (swallow_ > 0) {
            const std::size_t gone = swallow_ < rest.size() ? swallow_ : rest.size();
            swallow_ -= gone;
            p.consumed += gone;
            continue;
        }
        if (speaks_ == protocol::negotiated)
            speaks_ = static_cast<unsigned char>(rest.front()) == binary::request_magic
                          ? protocol::binary
                          : protocol::ascii;
        const bool whole =
            speaks_ == protocol::binary ? packet(rest, out, p) : line(rest, out, out_bytes_max, p);
        if (!whole) return p;
        p.finished = true;
    }
    return p;
}

// False: the request has not fully arrived, or the output has no room for the rest of its answer.
bool session::line(std::string_view rest, byte_buffer& out, std::size_t out_bytes_max,
                   progress& p) {
    const std::size_t length = line_bytes(rest, scanned_);
    if (length == 0) {
        scanned_ = rest.size();
        if (!may_be_long(rest) || rest.size() > retrieval_bytes_max) {
            out.append(reply::line_too_long);
            p.close = true;
        }
        return false;
    }
    scanned_ = length - 1; // should the request have to wait for its value
    const std::string_view text = without_end(rest.substr(0, length));
    const request r = parse(text);
    if (serving_->verbosity.load(std::memory_order_relaxed) > 1)
        std::fprintf(stderr, "<%d %.*s\n", number_, static_cast<int>(text.size()), text.data());
    if (journal* const events = wanting(*counted_, watched::commands)) events->said(text, number_);
    if (carries_value(r.what)) {
        if (!value_request(r, nullptr, rest, length, out, p)) return false;
    } else if (r.what == verb::meta) {
        if (!meta_command(rest, r.keys, length, out, p)) return false;
    } else if (is_long_answer(r.what)) {
        if (!(r.what == verb::dump          ? dump(r, out, out_bytes_max)
              : r.what == verb::connections ? list_connections(out, out_bytes_max)
                                            : retrieve(r, text, out, out_bytes_max))) {
            p.paused = true;
            return false;
        }
        p.consumed += length;
    } else {
        simple_request(r, out, p);
        p.consumed += length;
    }
    scanned_ = 0;
    return true;
}

// False: the value has not fully arrived.
bool session::meta_command(std::string_view rest, std::string_view line, std::size_t length,
                           byte_buffer& out, progress& p) {
    meta_request m;
    parse_meta(line, m);
    if (carries_value(m.asks.what)) return value_request(m.asks, &m, rest, length, out, p);
    p.consumed += length;
    switch (m.asks.what) {
    case verb::meta_get: meta_get(m, out); break;
    case verb::meta_delete: meta_delete(m, out); break;
    case verb::meta_delta: meta_delta(m, out); break;
    case verb::meta_debug: meta_debug(m, out); break;
    default: // errors are never quiet
        out.append(m.asks.reply);
        swallow_ = m.passed_over_bytes;
    }
    return true;
}

// False: the value has not fully arrived.
bool session::value_request(const request& r, const meta_request* meta, std::string_view rest,
                            std::size_t line, byte_buffer& out, progress& p) {
    store& items = *serving_->items;
    if (items.too_large(r.key.size(), r.value_bytes)) {
        counted_->add(count::store_too_large);
        tell_stored(r, 0, outcome::too_large, {});
        // A client that cannot store the new value must not read the old one.
        if (r.what == verb::set || meta != nullptr) forget(r.key);
        if (!r.noreply) out.append(reply::too_large);
        swallow_ = std::size_t{r.value_bytes} + 2;
        p.consumed += line;
        return true;
    }
    const std::size_t whole = line + r.value_bytes + 2;
    if (rest.size() < whole) {
        p.wanted = whole;
        p.value = true;
        return false;
    }
    p.consumed += whole;
    const std::string_view value = rest.substr(line, r.value_bytes);
    if (meta == nullptr) serving_->prefixes.add(prefix_counts::what::set, r.key);
    std::string_view answer = reply::bad_chunk; // also if a meta command is quiet
    if (rest.substr(line + r.value_bytes, 2) == "\r\n") {
        change done;
        const outcome result = items.write(r, value, *counted_, done);
        tell_met(r.key, done);
        tell_stored(r, value.size(), result, done);
        if (result == outcome::no_memory && (r.what == verb::set || meta != nullptr)) forget(r.key);
        if (meta != nullptr) {
            meta_set_reply(*meta, result, done, out);
            return true;
        }
        answer = words_for(result, r);
    } else {
        counted_->add(count::cmd_set);
    }
    if (!r.noreply) out.append(answer);
    return true;
}

// False: the output is full, and keys remain.
bool session::retrieve(const request& r, std::string_view line, byte_buffer& out,
                       std::size_t out_bytes_max) {
    store& items = *serving_->items;
    std::string_view keys = served_ > 0 ? line.substr(served_) : r.keys;
    for (std::string_view key = next_word(keys); !key.empty(); key = next_word(keys)) {
        look looked(*this, key);
        const auto visit = [&](const item_view& found) {
            looked.found(found.value.size());
            append_value(out, key, found.flags, found.value, r.with_cas ? &found.cas : nullptr);
        };
        counted_->add(r.touches ? count::cmd_touch : count::cmd_get);
        const bool there = r.touches ? touch(key, r, visit) : items.get(key, *counted_, visit);
        looked.tell(there);
        serving_->prefixes.add(there ? prefix_counts::what::hit : prefix_counts::what::get, key);
        if (!there && items.damaged(key)) { // no miss, as nobody knows
            served_ = 0;
            out.append(reply::damaged);
            return true;
        }
        if (out.size() >= out_bytes_max && !keys.empty()) {
            served_ = static_cast<std::size_t>(keys.data() - line.data());
            return false;
        }
    }
    served_ = 0;
    out.append(reply::end);
    return true;
}

// False: the output is full, and connections remain.
bool session::list_connections(byte_buffer& out, std::size_t out_bytes_max) {
    if (serving_->connected != nullptr)
        listed_ = serving_->connected->append_to(out, listed_, out_bytes_max);
    if (listed_ != 0) return false;
    out.append(reply::end);
    return true;
}

// The signal that a person would send: the loops end as they do for that.
std::string_view session::shut_down(std::string_view words, progress& p) const {
    if (!serving_->chosen.shutdown_enabled) return reply::shutdown_refused;
    const std::string_view how = next_word(words);
    if ((!how.empty() && how != "graceful") || !next_word(words).empty())
        return reply::bad_shutdown;
    p.close = true;
    (void)::kill(::getpid(), SIGTERM);
    return {};
}

void session::refresh_certificates(byte_buffer& out) const {
    if (serving_->secured == nullptr) return out.append(reply::no_tls);
    const status read = serving_->secured->load();
    if (read.ok()) return out.append(reply::ok);
    out.append("Error ");
    out.append(read.what());
    out.append("\r\n");
}

// A value that cannot be replaced by its client's new one.
void session::forget(std::string_view key) {
    request plain;
    plain.key = key;
    change done;
    serving_->items->remove(plain, *counted_, done);
    tell_met(key, done);
}

outcome session::touch_only(const request& r) {
    store& items = *serving_->items;
    look looked(*this, r.key);
    request one = r;
    one.touches = true;
    counted_->add(count::cmd_touch);
    const bool there =
        touch(r.key, one, [&](const item_view& found) { looked.found(found.value.size()); });
    looked.tell(there);
    return there ? outcome::done : items.damaged(r.key) ? outcome::damaged : outcome::not_found;
}

void session::simple_request(const request& r, byte_buffer& out, progress& p) {
    store& items = *serving_->items;
    std::string_view answer = r.reply;
    char number_text[24];
    switch (r.what) {
    case verb::incr:
    case verb::decr: {
        change done;
        const outcome result = items.change_number(r, *counted_, done);
        tell_met(r.key, done);
        answer = words_for(result, r);
        if (result == outcome::done) {
            const std::size_t digits = format_number(number_text, done.number);
            number_text[digits] = '\r';
            number_text[digits + 1] = '\n';
            answer = {number_text, digits + 2};
        }
        break;
    }
    case verb::touch: answer = words_for(touch_only(r), r); break;
    case verb::remove: {
        serving_->prefixes.add(prefix_counts::what::removal, r.key);
        change done;
        answer = words_for(items.remove(r, *counted_, done), r);
        tell_met(r.key, done);
        break;
    }
    case verb::watch: answer = watch(r, p); break;
    case verb::shutdown: answer = shut_down(r.keys, p); break;
    case verb::memory_limit:
        answer = limit_memory(items.pool(), r.delta << 20).ok() ? reply::ok : reply::limit_refused;
        break;
    case verb::refresh_certs: return refresh_certificates(out);
    case verb::flush_all:
        if (serving_->chosen.flush_disabled) {
            answer = reply::flush_refused;
            break;
        }
        counted_->add(count::cmd_flush);
        items.flush_all(r.exptime);
        answer = reply::ok;
        break;
    case verb::stats: append_stats(out, r.keys, *serving_); return;
    case verb::verbosity:
        serving_->verbosity = static_cast<int>(r.delta > 3 ? 3 : r.delta);
        answer = reply::ok;
        break;
    case verb::version:
        out.append("VERSION ");
        out.append(version_text);
        answer = "\r\n";
        break;
    case verb::quit: p.orderly = true; [[fallthrough]];
    case verb::close: p.close = true; return;
    default: break;
    }
    if (!r.noreply) out.append(answer);
}

std::string_view session::words_for(outcome result, const request& r) noexcept {
    switch (result) {
    case outcome::stored: return reply::stored;
    case outcome::not_stored: return reply::not_stored;
    case outcome::exists: return reply::exists;
    case outcome::not_found: return reply::not_found;
    case outcome::done: return r.what == verb::touch ? reply::touched : reply::deleted;
    case outcome::not_a_number: return reply::not_a_number;
    case outcome::too_large: return reply::too_large;
    case outcome::damaged: return reply::damaged;
    case outcome::no_memory: break;
    }
    return carries_value(r.what) ? reply::no_memory : reply::no_memory_delta;
}

} // namespace hf::kv
