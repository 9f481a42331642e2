// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One client's conversation: bytes in, bytes out, requests executed on the store in between. It
// uses no socket, so a test can try any byte string on it.
//
// (1) A reply enters the output only after the store has committed what the reply acknowledges. In
//     mode power the sender must first make sure that this is on the disk (worker.hpp (6)).
// (2) run() stops when the output has reached its limit; a retrieval goes on where it stopped. So
//     the output exceeds the limit by at most one item, or by the lines that a dump has for a few
//     items.
// (3) The first byte that a client sends decides its protocol, if the settings leave that open.
#pragma once

#include "service.hpp"
#include <kv/protocol/binary.hpp>
#include <kv/protocol/journal.hpp>
#include <kv/protocol/meta.hpp>
#include <kv/store/store.hpp>

#include <cstddef>
#include <memory>
#include <string_view>

namespace hf::kv {

class session {
public:
    session(service& serving, thread_counts& counted, int number) noexcept
        : serving_(&serving), counted_(&counted), number_(number), speaks_(serving.chosen.speaks) {}

    struct progress {
        std::size_t consumed = 0; // bytes of the input that need not be offered again
        std::size_t wanted = 0; // unconsumed bytes needed to go on; 0: not known, at least one more
        bool value = false;     // what is wanted is the rest of a value
        bool paused = false;    // the output limit was reached
        bool finished = false;  // a request was, at least one
        bool close = false;     // hang up when the output is sent
        bool orderly = false;   // the client asked for that
        /// The client gets events from now on; nothing more is executed for it here.
        watched watches = watched::nothing;
    };
    /// Executes the requests at the front of 'input', as many as are complete.
    progress run(std::string_view input, byte_buffer& out, std::size_t out_bytes_max);

    /// Whether the rest of a refused value is still to come.
    bool swallowing() const noexcept { return swallow_ > 0; }
    /// The protocol of the client; negotiated until its first byte has come.
    protocol speaks() const noexcept { return speaks_; }

private:
    bool line(std::string_view rest, byte_buffer& out, std::size_t out_bytes_max, progress& p);
    /// 'meta' when the request is one; its answers have other words.
    bool value_request(const request& r, const meta_request* meta, std::string_view rest,
                       std::size_t line, byte_buffer& out, progress& p);
    bool meta_command(std::string_view rest, std::string_view line, std::size_t length,
                      byte_buffer& out, progress& p);
    // session_meta.cpp
    void meta_get(const meta_request& m, byte_buffer& out);
    static void meta_set_reply(const meta_request& m, outcome result, const change& done,
                               byte_buffer& out);
    void meta_delete(const meta_request& m, byte_buffer& out);
    void meta_delta(const meta_request& m, byte_buffer& out);
    void meta_debug(const meta_request& m, byte_buffer& out);
    // session_watch.cpp
    class look;
    void tell_met(std::string_view key, const change& done) const;
    void tell_stored(const request& r, std::size_t value_bytes, outcome result,
                     const change& done) const;
    std::string_view watch(const request& r, progress& p) const;
    // session_binary.cpp
    bool packet(std::string_view rest, byte_buffer& out, progress& p);
    bool packet_with_value(const binary::command& c, std::string_view rest, byte_buffer& out,
                           progress& p);
    void packet_retrieval(const binary::command& c, byte_buffer& out);
    void packet_delta(const binary::command& c, byte_buffer& out);
    void packet_stats(const binary::command& c, byte_buffer& out);
    void packet_simple(const binary::command& c, byte_buffer& out, progress& p);
    static binary::status status_for(outcome result, verb asked) noexcept;
    bool retrieve(const request& r, std::string_view line, byte_buffer& out,
                  std::size_t out_bytes_max);
    template <class Visit> bool touch(std::string_view key, const request& r, Visit&& visit);
    bool dump(const request& r, byte_buffer& out, std::size_t out_bytes_max); // session_dump.cpp
    bool list_connections(byte_buffer& out, std::size_t out_bytes_max);
    outcome touch_only(const request& r);
    void forget(std::string_view key);
    std::string_view shut_down(std::string_view words, progress& p) const;
    void refresh_certificates(byte_buffer& out) const;
    void simple_request(const request& r, byte_buffer& out, progress& p);
    static std::string_view words_for(outcome result, const request& r) noexcept;

    service* serving_;
    thread_counts* counted_;
    int number_; // how -vv names the connection
    protocol speaks_;
    std::size_t swallow_ = 0; // bytes of a refused value still to come
    std::size_t scanned_ = 0; // of the unfinished line: known to have no end
    struct dump_state {
        explicit dump_state(store& items) : at(items) {}
        store::place at;           // how far it has come
        std::uint64_t classes = 0; // a bit each
        std::uint64_t lines_left = 0;
        std::size_t bytes_left = 0;
    };
    std::unique_ptr<dump_state> dumped_; // the dump in progress
    std::size_t served_ = 0; // of the retrieval in progress: offset of the next key in its line
    std::size_t listed_ = 0; // of the list of connections in progress: the socket to go on from
};

/// One look for an item, for clients that watch fetchers.
class session::look {
public:
    look(const session& in, std::string_view key) noexcept
        : events_(wanting(*in.counted_, watched::fetchers)), counted_(in.counted_), key_(key),
          client_(in.number_) {
        if (events_ == nullptr) return;
        expired_ = counted_->get(count::get_expired);
        flushed_ = counted_->get(count::get_flushed);
    }
    void found(std::size_t value_bytes) noexcept { value_bytes_ = value_bytes; }
    void tell(bool there) const;

private:
    journal* events_;
    const thread_counts* counted_;
    std::string_view key_;
    int client_;
    std::uint64_t expired_ = 0, flushed_ = 0;
    std::size_t value_bytes_ = 0;
};

template <class Visit>
bool session::touch(std::string_view key, const request& r, Visit&& visit) {
    request one = r;
    one.key = key;
    const bool there = serving_->items->get_and_change(one, *counted_, visit);
    counted_->add(there ? count::touch_hits : count::touch_misses);
    return there;
}

} // namespace hf::kv
