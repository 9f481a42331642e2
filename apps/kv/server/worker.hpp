// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One serving thread: an event loop, the connections given to it, the buffers they share.
//
// (1) Reads go into a buffer of the worker and replies are gathered in another. A connection owns
//     memory only for a request that has arrived in part, or for replies its client has not taken
//     yet.
// (2) While replies wait for the client, nothing more is read from it or executed for it.
// (3) The memory of (1) grows with what has arrived, not with what was announced. It is limited for
//     all connections together: one that would pass the limit is closed.
// (4) One event serves a bounded number of bytes: a client that reads as fast as it is served, and
//     has asked for a million items, delays no other client.
// (5) A connection with half a request, or with replies not taken, makes progress or is closed.
// (6) In mode power the requests of one turn of the loop, from all clients, become durable
//     together. With them everything becomes durable that their answers may show of other threads'
//     work. The turn waits for the disk once, or not at all if nothing needs it. No answer of the
//     turn leaves before. (4) holds for the turn as a whole; a connection has one event in it.
#pragma once

#include "connection_list.hpp"
#include "session.hpp"
#include "stream.hpp"

#include <holdfast/pool.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_set>
#include <vector>

struct event;
struct event_base;

namespace hf::kv {

class connection;
class tls;
class watch_hub;

class worker {
public:
    /// 'secured': puts TLS over the clients that use it.
    worker(service& serving, connection_list& connected, watch_hub& hub, tls& secured);
    worker(const worker&) = delete;
    worker& operator=(const worker&) = delete;
    ~worker();

    status start();
    /// Hands over an accepted, non-blocking socket. From any thread.
    void take(int socket, bool secured, const client_address& from);
    /// Ends the loop after the event in progress; join() waits for it and hangs up.
    void stop();
    void join();

private:
    friend class connection;
    static void on_wake(int, short, void* self);
    static void on_tick(int, short, void* self);
    struct arrival {
        int socket;
        bool secured;
        client_address from;
    };
    void run();
    void accept(arrival client);
    void close(connection* gone, std::string_view why = {});
    void close_for_memory(connection* gone);
    void close_overdue();
    void publish_counters();
    // Mode power (6); in the other modes nothing is gathered.
    bool gathers() const noexcept { return gathers_; }
    void begin_turn();
    void hold(connection* answered, std::size_t bytes);
    void end_turn();
    bool turn_is_full() const noexcept;

    service* serving_;
    connection_list& connected_;
    watch_hub* hub_;
    tls* secured_;
    thread_counts* counted_;
    event_base* base_ = nullptr;
    event* wake_ = nullptr;
    event* tick_ = nullptr;
    int wake_fd_ = -1;
    std::mutex inbox_lock_;
    std::vector<arrival> inbox_;
    bool stopping_ = false;
    std::uint32_t seconds_ = 0; // since the start, by ticks
    std::unordered_set<connection*> connections_;
    byte_buffer in_, out_; // (1)
    // The turn's answers: the clients, with their bytes of out_, in this order.
    struct held_answers {
        connection* to; // null: it is gone
        std::size_t bytes;
    };
    const bool gathers_;
    std::optional<durable_together> turn_;
    std::vector<held_answers> held_;
    std::size_t held_bytes_ = 0; // of out_: all of held_
    std::size_t turn_bytes_ = 0; // of requests
    std::thread thread_;
};

/// One client. Its events call it; it deletes itself through its worker.
class connection {
public:
    connection(worker& home, stream&& client, const client_address& from);
    connection(const connection&) = delete;
    connection& operator=(const connection&) = delete;
    ~connection();
    bool add_events();

    /// Waits for the client in the middle of something, which (5) limits.
    bool unfinished() const noexcept;
    /// Seconds, as its worker counts, since it last got on.
    std::uint32_t waiting_s() const noexcept;
    /// Reports to clients that watch connections: it begins, or it ends for this reason.
    void tell_begin(journal& to) const;
    void tell_end(journal& to, std::string_view why) const;

private:
    friend class worker;
    static void on_readable(int, short, void* self);
    static void on_writable(int, short, void* self);
    template <class Serve> static void on_event(connection* c, Serve&& serve);
    bool read_and_serve();
    bool send_and_serve();
    bool serve(byte_buffer& input);
    bool serve_in_turn(byte_buffer& input);
    void execute(byte_buffer& input);
    bool answer(std::string_view answers);
    bool answer_held(std::string_view answers);
    bool send_pending();
    bool send(std::string_view answers);
    bool update_events();
    void show_state() const noexcept;
    void get_on() noexcept;
    void moved(std::size_t bytes) noexcept;
    bool within_memory() noexcept;
    void refuse_for_memory() noexcept;
    bool hand_over(watched kinds);
    void keep_rest(byte_buffer& input);
    bool stays_within_memory();

    worker* home_;
    stream client_;
    std::unique_ptr<connection_list::entry> listed_; // the hub's once it watches
    event* readable_ = nullptr;
    event* writable_ = nullptr;
    bool writing_ = false;               // waiting for the client to take replies (2)
    bool more_ = false;                  // requests wait for the next turn (4)
    bool closing_ = false;               // hang up when they are taken
    bool orderly_ = false;               // the client hung up, or asked for it
    bool watching_ = false;              // is the hub's now
    bool paused_ = false;                // the replies reached their limit
    bool wants_value_ = false;           // a value has begun to arrive
    bool held_ = false;                  // its replies wait for the end of the turn (6)
    watched watches_ = watched::nothing; // kinds that it wants from the hub
    std::uint32_t since_s_;              // when it last got on (5)
    std::size_t moved_ = 0;              // bytes read and sent since
    std::size_t charged_ = 0;            // of (3)
    std::size_t wanted_ = 0;
    session talk_;
    byte_buffer in_, out_;
};

} // namespace hf::kv
