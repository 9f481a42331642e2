// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A session's lines for watching clients, in memcached's words; and how its own client becomes a
// watcher.
#include "session.hpp"

namespace hf::kv {
namespace {

std::string_view name_of(verb command) noexcept {
    switch (command) {
    case verb::add: return "add";
    case verb::replace: return "replace";
    case verb::append: return "append";
    case verb::prepend: return "prepend";
    case verb::cas: return "cas";
    default: return "set";
    }
}

std::string_view name_of(outcome result) noexcept {
    switch (result) {
    case outcome::stored: return "stored";
    case outcome::exists: return "exists";
    case outcome::not_found: return "not_found";
    case outcome::too_large: return "too_large";
    case outcome::no_memory: return "no_memory";
    default: return "not_stored";
    }
}

} // namespace

void session::look::tell(bool there) const {
    if (events_ == nullptr) return;
    if (there) return events_->fetched(watched_of(key_, value_bytes_, client_), "found");
    const std::string_view status = counted_->get(count::get_expired) != expired_   ? "expired"
                                    : counted_->get(count::get_flushed) != flushed_ ? "flushed"
                                                                                    : "not_found";
    events_->fetched({.key = key_, .client = client_}, status);
}

// A client that stores, counts or deletes looks for the item, and memcached reports that, too.
void session::tell_met(std::string_view key, const change& done) const {
    journal* const events = wanting(*counted_, watched::fetchers);
    if (events == nullptr) return;
    if (done.met) events->fetched(watched_of(key, done.value_bytes, number_), "found");
    else events->fetched({.key = key, .client = number_}, "not_found");
}

void session::tell_stored(const request& r, std::size_t value_bytes, outcome result,
                          const change& done) const {
    journal* const events = wanting(*counted_, watched::mutations);
    if (events == nullptr) return;
    const std::uint32_t now = serving_->items->now(), until = expiry_of(r.exptime, now);
    const bool extended =
        result == outcome::stored && (r.what == verb::append || r.what == verb::prepend);
    if (extended) value_bytes += done.value_bytes;
    events->stored(watched_of(r.key, value_bytes, number_), name_of(result), name_of(r.what),
                   until > now ? until - now : 0);
}

// The answer, none when the client becomes one that watches: the hub says OK.
std::string_view session::watch(const request& r, progress& p) const {
    if (serving_->chosen.watch_disabled) return reply::watch_refused;
    p.watches = static_cast<watched>(r.delta);
    p.close = true;
    return {};
}

} // namespace hf::kv
