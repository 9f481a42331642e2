// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One serving thread: an event loop, the connections given to it, the buffers they share.
//
// (1) Reads go into a buffer of the worker and replies are gathered in another; a connection owns
//     memory only for a request that has arrived in part or replies its client has not taken yet.
// (2) While replies wait for the client, nothing more is read from it or executed for it.
#pragma once

#include "session.hpp"

#include <mutex>
#include <thread>
#include <unordered_set>
#include <vector>

struct event;
struct event_base;

namespace hf::kv {

class connection;

class worker {
public:
    explicit worker(service& serving);
    worker(const worker&) = delete;
    worker& operator=(const worker&) = delete;
    ~worker();

    void start();
    /// Hands over an accepted, non-blocking socket. From any thread.
    void take(int socket);
    /// Ends the loop after the event in progress; join() waits for it and hangs up.
    void stop();
    void join();

private:
    friend class connection;
    static void on_wake(int, short, void* self);
    static void on_tick(int, short, void* self);
    void run();
    void close(connection* gone);
    void publish_counters();

    service* serving_;
    thread_counts* counted_;
    event_base* base_ = nullptr;
    event* wake_ = nullptr;
    event* tick_ = nullptr;
    int wake_fd_ = -1;
    std::mutex inbox_lock_;
    std::vector<int> inbox_;
    bool stopping_ = false;
    std::unordered_set<connection*> connections_;
    byte_buffer in_, out_; // (1)
    std::thread thread_;
};

/// One client. Its events call it; it deletes itself through its worker.
class connection {
public:
    connection(worker& home, int socket);
    connection(const connection&) = delete;
    connection& operator=(const connection&) = delete;
    ~connection();
    bool add_events();

private:
    static void on_readable(int, short, void* self);
    static void on_writable(int, short, void* self);
    bool read_and_serve();
    bool serve(byte_buffer& input);
    bool send_pending();
    bool send_gathered();
    bool update_events();

    worker* home_;
    int socket_;
    event* readable_ = nullptr;
    event* writable_ = nullptr;
    bool writing_ = false; // waiting for the client to take replies (2)
    bool closing_ = false; // hang up when they are taken
    std::size_t wanted_ = 0;
    session talk_;
    byte_buffer in_, out_;
};

} // namespace hf::kv
