// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "server.hpp"

#include "connection_list.hpp"
#include "tls.hpp"
#include "watch.hpp"
#include "worker.hpp"

#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <sys/socket.h>
#include <unistd.h>

namespace hf::kv {
namespace {

// The accepting thread's loop: listening sockets, signals, nothing else.
class acceptor {
public:
    acceptor(service& serving, const listeners& from,
             std::vector<std::unique_ptr<worker>>& workers);
    acceptor(const acceptor&) = delete;
    acceptor& operator=(const acceptor&) = delete;
    ~acceptor();
    void run() { event_base_dispatch(base_); }

private:
    static void on_connection(int fd, short, void* self);
    static void on_signal(int, short, void* self);
    static void on_resume(int, short, void* self);
    void pause();

    service* serving_;
    const listeners* from_;
    std::vector<std::unique_ptr<worker>>* workers_;
    std::size_t next_ = 0;
    event_base* base_;
    std::vector<event*> accepting_;
    std::vector<event*> others_;
    event* resume_ = nullptr;
};

acceptor::acceptor(service& serving, const listeners& from,
                   std::vector<std::unique_ptr<worker>>& workers)
    : serving_(&serving), from_(&from), workers_(&workers), base_(event_base_new()) {
    if (base_ == nullptr) throw std::bad_alloc();
    for (const listeners::socket& each : from.sockets()) {
        accepting_.push_back(
            event_new(base_, each.descriptor, EV_READ | EV_PERSIST, on_connection, this));
        event_add(accepting_.back(), nullptr);
    }
    for (int signal : {SIGTERM, SIGINT, SIGUSR1}) {
        others_.push_back(event_new(base_, signal, EV_SIGNAL | EV_PERSIST, on_signal, this));
        event_add(others_.back(), nullptr);
    }
    resume_ = event_new(base_, -1, 0, on_resume, this);
    others_.push_back(resume_);
}

acceptor::~acceptor() {
    for (event* e : accepting_) event_free(e);
    for (event* e : others_) event_free(e);
    event_base_free(base_);
}

void acceptor::on_connection(int fd, short, void* self) {
    auto* const a = static_cast<acceptor*>(self);
    service& s = *a->serving_;
    const bool secured =
        std::ranges::find(a->from_->sockets(), fd, &listeners::socket::descriptor)->secured;
    for (unsigned taken = 0; taken < 64; ++taken) {
        client_address from{};
        socklen_t from_bytes = sizeof from;
        const int socket = ::accept4(fd, &from.any, &from_bytes, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (socket < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
                a->pause();
            return;
        }
        s.total_connections.fetch_add(1);
        if (s.curr_connections.load() >= s.chosen.connections_max) {
            s.rejected_connections.fetch_add(1);
            if (!secured)
                (void)!::send(socket, reply::too_many_connections.data(),
                              reply::too_many_connections.size(), MSG_NOSIGNAL);
            ::close(socket);
            continue;
        }
        s.curr_connections.fetch_add(1);
        if (s.chosen.unix_path.empty()) {
            const int on = 1;
            ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        } else {
            from = {}; // as memcached reports it
        }
        (*a->workers_)[a->next_++ % a->workers_->size()]->take(socket, secured, from);
    }
}

// Out of descriptors: the waiting clients stay in the backlog until some are closed.
void acceptor::pause() {
    for (event* e : accepting_) event_del(e);
    const timeval soon{0, 10'000};
    event_add(resume_, &soon);
}

void acceptor::on_resume(int, short, void* self) {
    for (event* e : static_cast<acceptor*>(self)->accepting_) event_add(e, nullptr);
}

void acceptor::on_signal(int, short, void* self) {
    event_base_loopbreak(static_cast<acceptor*>(self)->base_);
}

sigset_t stop_signals() {
    sigset_t stops;
    sigemptyset(&stops);
    sigaddset(&stops, SIGTERM);
    sigaddset(&stops, SIGINT);
    sigaddset(&stops, SIGUSR1); // memcached's graceful end
    return stops;
}

} // namespace

void block_stop_signals() {
    const sigset_t stops = stop_signals();
    ::pthread_sigmask(SIG_BLOCK, &stops, nullptr);
}

status serve(service& serving, const listeners& from, tls& secured,
             const std::function<void()>& ready) {
    connection_list connected;
    std::vector<std::unique_ptr<connection_list::entry>> listening;
    for (const listeners::socket& each : from.sockets())
        listening.push_back(std::make_unique<connection_list::entry>(connected, each.descriptor,
                                                                     client_state::listening));
    serving.connected = &connected;
    watch_hub hub(serving);
    serving.watching = &hub;
    std::vector<std::unique_ptr<worker>> workers;
    for (std::uint32_t i = 0; i < serving.chosen.threads; ++i)
        workers.push_back(std::make_unique<worker>(serving, connected, hub, secured));
    status started;
    for (auto& w : workers) // with the signals blocked: they reach the acceptor alone
        if (started.ok()) started = w->start();
    if (started.ok()) {
        ready();
        acceptor accepting(serving, from, workers);
        const sigset_t stops = stop_signals();
        ::pthread_sigmask(SIG_UNBLOCK, &stops, nullptr);
        accepting.run();
    }
    for (auto& w : workers) w->stop();
    for (auto& w : workers) w->join();
    hub.stop();
    serving.watching = nullptr;
    serving.connected = nullptr; // nobody asks any more
    return started;
}

} // namespace hf::kv
