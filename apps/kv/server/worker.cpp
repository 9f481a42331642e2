// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "worker.hpp"

#include "tls.hpp"
#include "watch.hpp"

#include <holdfast/author/persist.hpp>

#include <event2/event.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <netdb.h>
#include <string>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace hf::kv {
namespace {

constexpr std::size_t read_bytes = 64 << 10;          // asked for in one read
constexpr std::size_t gathered_bytes_max = 256 << 10; // replies before they are sent
constexpr std::size_t kept_bytes = 2 << 10;           // an idle connection's buffers may keep this

constexpr unsigned rounds_max = 4;                // of gathered replies sent in one event (4)
constexpr std::size_t turn_bytes_max = 256 << 10; // of requests executed before a turn ends (4)
// A request may take long when it is long: this much of it, or of its reply, is progress (5). At
// the default timeout that asks for a kilobyte a second.
constexpr std::size_t progress_bytes = 64 << 10;

} // namespace

connection::connection(worker& home, stream&& client, const client_address& from)
    : home_(&home), client_(std::move(client)),
      listed_(std::make_unique<connection_list::entry>(home.connected_, client_.socket(),
                                                       client_state::new_command, from)),
      since_s_(home.seconds_), talk_(*home.serving_, *home.counted_, client_.socket()) {}

connection::~connection() {
    if (readable_ != nullptr) event_free(readable_);
    if (writable_ != nullptr) event_free(writable_);
    if (client_.broken() && client_.opening()) home_->secured_->count_failure();
    home_->serving_->connection_bytes.fetch_sub(charged_);
}

bool connection::unfinished() const noexcept {
    return !in_.empty() || !out_.empty() || talk_.swallowing() || client_.unfinished();
}

std::uint32_t connection::waiting_s() const noexcept { return home_->seconds_ - since_s_; }

void connection::get_on() noexcept {
    since_s_ = home_->seconds_;
    moved_ = 0;
}

void connection::moved(std::size_t bytes) noexcept {
    moved_ += bytes;
    if (moved_ >= progress_bytes) get_on();
}

// Upholds (3). False: this connection would pass the limit.
bool connection::within_memory() noexcept {
    const std::size_t holds = in_.capacity() + out_.capacity();
    if (holds == charged_) return true;
    auto& all = home_->serving_->connection_bytes;
    const bool grows = holds > charged_;
    const std::uint64_t sum = all.fetch_add(holds - charged_) + (holds - charged_);
    charged_ = holds;
    return !grows || sum <= home_->serving_->chosen.connection_bytes_max;
}

void connection::refuse_for_memory() noexcept {
    if (!out_.empty()) return; // it would stand in the middle of a reply
    if (talk_.speaks() == protocol::binary)
        return; // whose packet it would be an answer to is not known
    (void)client_.send(reply::no_memory_request);
}

namespace {

// "rip=127.0.0.1 rport=4711 transport=tcp", memcached's form of a client's address.
std::string where_from(int socket) {
    sockaddr_storage address{};
    socklen_t bytes = sizeof address;
    char host[NI_MAXHOST] = "unix", port[NI_MAXSERV] = "0";
    const bool known = ::getpeername(socket, reinterpret_cast<sockaddr*>(&address), &bytes) == 0;
    const bool remote = known && address.ss_family != AF_UNIX;
    if (remote)
        ::getnameinfo(reinterpret_cast<sockaddr*>(&address), bytes, host, sizeof host, port,
                      sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
    return std::string("rip=") + host + " rport=" + port +
           (remote || !known ? " transport=tcp" : " transport=local");
}

} // namespace

void connection::tell_begin(journal& to) const {
    to.connected(where_from(client_.socket()), client_.socket());
}

void connection::tell_end(journal& to, std::string_view why) const {
    if (watching_) return; // the client is still there
    if (why.empty()) why = orderly_ ? "normal" : "error";
    to.disconnected(where_from(client_.socket()), why, client_.socket());
}

bool connection::add_events() {
    const int socket = client_.socket();
    readable_ = event_new(home_->base_, socket, EV_READ | EV_PERSIST, on_readable, this);
    writable_ = event_new(home_->base_, socket, EV_WRITE | EV_PERSIST, on_writable, this);
    return readable_ != nullptr && writable_ != nullptr && event_add(readable_, nullptr) == 0;
}

// One event. What it leaves in the worker's buffers is lost when the connection ends.
template <class Serve> void connection::on_event(connection* c, Serve&& serve) {
    worker& home = *c->home_;
    if (c->held_) return; // one event a turn: it will be announced again (6)
    if (home.gathers()) home.begin_turn();
    try {
        if (!serve()) home.close(c);
    } catch (const std::bad_alloc&) {
        home.close_for_memory(c);
    }
    home.publish_counters();
}

void connection::on_readable(int, short, void* self) {
    auto* const c = static_cast<connection*>(self);
    on_event(c, [c] { return c->read_and_serve(); });
}

void connection::on_writable(int, short, void* self) {
    auto* const c = static_cast<connection*>(self);
    on_event(c, [c] { return c->send_and_serve(); });
}

// False, here and below: hang up.
bool connection::read_and_serve() {
    byte_buffer& input = in_.empty() ? home_->in_ : in_;
    const std::size_t held = input.size();
    const std::size_t missing = wanted_ > held ? wanted_ - held : 0;
    // Upholds (3): as much again as has arrived, however long the value is said to be.
    const std::size_t most = std::max(read_bytes, std::min(missing, held));
    const std::size_t limit =
        &input == &in_ && missing > 0 ? std::max(wanted_, held + most) : SIZE_MAX;
    char* const to = input.room(most, limit);
    const bool began = unfinished();
    const ssize_t got = client_.read(to, most);
    if (got == 0) orderly_ = true;
    if (!began && (got > 0 || unfinished())) get_on(); // something begins
    if (got <= 0)
        return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) &&
               update_events();
    input.commit(static_cast<std::size_t>(got));
    moved(static_cast<std::size_t>(got));
    home_->counted_->add(count::bytes_read, static_cast<std::uint64_t>(got));
    return serve(input) && update_events();
}

// Requests that waited behind the replies have arrived already: no readiness will announce them,
// nor what TLS has taken from the socket.
bool connection::send_and_serve() {
    if (!send_pending()) return false;
    if (!out_.empty()) return update_events();
    if (!paused_ && client_.continues()) return read_and_serve();
    return serve(in_) && update_events();
}

// Executes what has arrived, until the replies reach their limit; they stand at the end of the
// worker's buffer.
void connection::execute(byte_buffer& input) {
    const std::uint32_t began_s = listed_->command_s();
    listed_->now(client_state::parse_command);
    listed_->command_at(connection_list::seconds());
    const session::progress p = talk_.run(input.view(), home_->out_, gathered_bytes_max);
    if (!p.finished && (wants_value_ || !p.value)) listed_->command_at(began_s); // none has begun
    wants_value_ = p.value;
    input.consume(p.consumed);
    wanted_ = p.wanted;
    closing_ = p.close;
    orderly_ = p.orderly;
    paused_ = p.paused;
    watches_ = p.watches;
    if (p.finished) get_on();
}

bool connection::serve(byte_buffer& input) {
    if (home_->gathers()) return serve_in_turn(input);
    for (unsigned round = 1;; ++round) {
        execute(input);
        const bool stays = answer(home_->out_.view());
        home_->out_.clear();
        home_->out_.shrink(4 * gathered_bytes_max);
        if (!stays) {
            home_->in_.clear();
            return false;
        }
        if (!more_ || round == rounds_max) break;
    }
    keep_rest(input);
    return stays_within_memory();
}

// Upholds (6): what serve() does behind the execution waits for the end of the turn.
bool connection::serve_in_turn(byte_buffer& input) {
    const std::size_t before = home_->out_.size(), asked = input.size();
    execute(input);
    home_->turn_bytes_ += asked - input.size();
    keep_rest(input);
    home_->hold(this, home_->out_.size() - before);
    return true;
}

bool connection::answer_held(std::string_view answers) {
    held_ = false;
    return answer(answers) && stays_within_memory() && update_events();
}

bool connection::answer(std::string_view answers) {
    if (!send(answers)) return false;
    if (watches_ != watched::nothing && hand_over(watches_)) return false;
    if (closing_ && out_.empty()) return false;
    more_ = paused_ && out_.empty();
    return true;
}

// Makes the client a watcher: its socket belongs to the hub, and the rest of what it has sent is
// ignored. False: it stays here, and gets the reason.
bool connection::hand_over(watched kinds) {
    closing_ = false;
    if (!out_.empty()) { // which the hub cannot send
        out_.append(reply::watch_pipelined);
        return false;
    }
    // Before the hub can hang up: the number may be another client's then.
    event_del(readable_);
    event_del(writable_);
    const std::string_view refused = home_->hub_->add(client_, listed_, kinds);
    watching_ = refused.empty();
    if (watching_) return true;
    event_add(writing_ ? writable_ : readable_, nullptr);
    out_.append(refused);
    return false;
}

// Upholds (1): the worker's buffer is free for the next.
void connection::keep_rest(byte_buffer& input) {
    if (&input == &in_) {
        in_.shrink(kept_bytes);
    } else if (!input.empty()) {
        in_.append(input.view());
        input.clear();
    }
}

bool connection::stays_within_memory() {
    if (within_memory()) return true;
    refuse_for_memory();
    home_->counted_->add(count::memory_kicks);
    return false;
}

// Bytes that the client does not take now wait in out_.
bool connection::send(std::string_view answers) {
    if (answers.empty()) return true;
    while (!answers.empty()) {
        const ssize_t sent = client_.send(answers);
        if (sent < 0) {
            if (errno == EINTR) continue;
            if (errno == EAGAIN || errno == EWOULDBLOCK) break;
            return false;
        }
        home_->counted_->add(count::bytes_written, static_cast<std::uint64_t>(sent));
        moved(static_cast<std::size_t>(sent));
        answers.remove_prefix(static_cast<std::size_t>(sent));
    }
    out_.append(answers);
    return true;
}

bool connection::send_pending() {
    while (!out_.empty()) {
        const std::string_view bytes = out_.view();
        const ssize_t sent = client_.send(bytes);
        if (sent < 0) {
            if (errno == EINTR) continue;
            return errno == EAGAIN || errno == EWOULDBLOCK;
        }
        home_->counted_->add(count::bytes_written, static_cast<std::uint64_t>(sent));
        moved(static_cast<std::size_t>(sent));
        out_.consume(static_cast<std::size_t>(sent));
    }
    get_on();
    out_.shrink(kept_bytes);
    return !closing_;
}

// Sets what `stats conns` reports of it until its next event.
void connection::show_state() const noexcept {
    listed_->now(held_ || paused_ || !out_.empty() ? client_state::write
                 : talk_.swallowing()              ? client_state::swallow
                 : wants_value_                    ? client_state::read_value
                                                   : client_state::read);
}

bool connection::update_events() {
    show_state();
    const bool wait = !out_.empty() || more_ || client_.continues();
    if (wait == writing_) return true;
    writing_ = wait;
    return event_del(wait ? readable_ : writable_) == 0 &&
           event_add(wait ? writable_ : readable_, nullptr) == 0;
}

worker::worker(service& serving, connection_list& connected, watch_hub& hub, tls& secured)
    : serving_(&serving), connected_(connected), hub_(&hub), secured_(&secured),
      counted_(&serving.items->counted().join()), base_(event_base_new()),
      wake_fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      gathers_(serving.items->pool().mode() == mode::power) {
    if (base_ == nullptr || wake_fd_ < 0) throw std::bad_alloc();
    wake_ = event_new(base_, wake_fd_, EV_READ | EV_PERSIST, on_wake, this);
    tick_ = event_new(base_, -1, EV_PERSIST, on_tick, this);
    const timeval second{1, 0};
    if (wake_ == nullptr || tick_ == nullptr || event_add(wake_, nullptr) != 0 ||
        event_add(tick_, &second) != 0)
        throw std::bad_alloc();
    counted_->events = &hub.join();
}

worker::~worker() {
    for (connection* c : connections_) delete c;
    for (const arrival& client : inbox_) ::close(client.socket);
    if (wake_ != nullptr) event_free(wake_);
    if (tick_ != nullptr) event_free(tick_);
    if (base_ != nullptr) event_base_free(base_);
    if (wake_fd_ >= 0) ::close(wake_fd_);
}

status worker::start() try {
    thread_ = std::thread([this] { run(); });
    return {};
} catch (const std::system_error& e) {
    return {errc::io_error, "cannot start a thread: " + e.code().message()};
}

void worker::run() {
    if (!gathers_) {
        event_base_dispatch(base_);
        return;
    }
    int ended = 0;
    do {
        ended = event_base_loop(base_, EVLOOP_ONCE); // serves the events that are there
        end_turn();
    } while (ended == 0 && event_base_got_break(base_) == 0);
}

// Before an event: (4) for all of the turn. No bytes that were read lie in in_, so that ending it
// is safe.
void worker::begin_turn() {
    if (turn_is_full()) end_turn();
    if (!turn_) turn_.emplace(serving_->items->pool());
}

bool worker::turn_is_full() const noexcept {
    return out_.size() >= gathered_bytes_max || turn_bytes_ >= turn_bytes_max;
}

void worker::hold(connection* answered, std::size_t bytes) {
    held_.push_back({answered, bytes});
    answered->held_ = true;
    held_bytes_ += bytes;
}

// Upholds (6). If the disk fails, the process ends here, and no client has got an answer.
void worker::end_turn() {
    if (!turn_) return;
    turn_.reset();
    std::string_view answers = out_.view();
    for (const auto [to, bytes] : held_) {
        const std::string_view its = answers.substr(0, bytes);
        answers.remove_prefix(bytes);
        if (to == nullptr) continue;
        bool stays = false;
        try {
            stays = to->answer_held(its);
        } catch (const std::bad_alloc&) {
            counted_->add(count::memory_kicks);
        }
        if (!stays) close(to);
    }
    held_.clear();
    held_bytes_ = turn_bytes_ = 0;
    out_.clear();
    out_.shrink(4 * gathered_bytes_max);
}

void worker::take(int socket, bool secured, const client_address& from) {
    {
        const std::lock_guard held(inbox_lock_);
        inbox_.push_back({socket, secured, from});
    }
    const std::uint64_t one = 1;
    (void)!::write(wake_fd_, &one, sizeof one); // fails only when a wake-up is pending anyway
}

void worker::stop() {
    {
        const std::lock_guard held(inbox_lock_);
        stopping_ = true;
    }
    const std::uint64_t one = 1;
    (void)!::write(wake_fd_, &one, sizeof one);
}

void worker::join() {
    if (thread_.joinable()) thread_.join();
}

void worker::on_wake(int fd, short, void* self) {
    auto* const w = static_cast<worker*>(self);
    std::uint64_t wakes = 0;
    (void)!::read(fd, &wakes, sizeof wakes);
    std::vector<arrival> arrived;
    bool stopping = false;
    {
        const std::lock_guard held(w->inbox_lock_);
        arrived.swap(w->inbox_);
        stopping = w->stopping_;
    }
    for (const arrival& client : arrived) w->accept(client);
    if (stopping) event_base_loopbreak(w->base_);
}

void worker::accept(arrival client) {
    connection* c = nullptr;
    try {
        stream its = client.secured ? secured_->accept(client.socket) : stream(client.socket);
        c = new connection(*this, std::move(its), client.from);
        connections_.insert(c);
    } catch (const std::bad_alloc&) {
        delete c;
        serving_->curr_connections.fetch_sub(1);
        return;
    }
    if (counted_->events->wants(watched::connections)) c->tell_begin(*counted_->events);
    if (!c->add_events()) close(c);
    else if (serving_->verbosity > 0) std::fprintf(stderr, "<%d new client\n", client.socket);
}

void worker::on_tick(int, short, void* self) {
    auto* const w = static_cast<worker*>(self);
    ++w->seconds_;
    w->end_turn(); // a client that gets its answer now is not overdue
    w->close_overdue();
    if (w->gathers()) w->begin_turn();
    w->serving_->items->reap(*w->counted_);
    w->publish_counters();
}

void worker::close(connection* gone, std::string_view why) {
    if (counted_->events->wants(watched::connections)) gone->tell_end(*counted_->events, why);
    for (held_answers& its : held_)
        if (its.to == gone) its.to = nullptr;
    connections_.erase(gone);
    delete gone;
    serving_->curr_connections.fetch_sub(1);
}

// In the shared buffers, everything but answers that wait for the end of the turn belongs to the
// client whose event ran out of memory. That client gets no message: a part of a reply may have
// been sent.
void worker::close_for_memory(connection* gone) {
    in_.clear();
    out_.cut(held_bytes_); // answers to others stay
    counted_->add(count::memory_kicks);
    close(gone);
}

// Upholds (5).
void worker::close_overdue() {
    const settings& limits = serving_->chosen;
    for (auto at = connections_.begin(); at != connections_.end();) {
        connection* const c = *at++; // close() takes it out of the set
        const bool unfinished = c->unfinished();
        const std::uint32_t limit = unfinished ? limits.request_timeout_s : limits.idle_timeout_s;
        if (limit == 0 || c->waiting_s() <= limit) continue;
        counted_->add(unfinished ? count::stalled_kicks : count::idle_kicks);
        close(c, "idle_timeout");
    }
}

// The persistence layer counts per thread; `stats holdfast` may be asked on any other.
void worker::publish_counters() {
    const auto& c = hf::persist::thread_counters();
    counted_->put(count::sections, c.sections);
    counted_->put(count::ordering_points, c.ordering_points);
    counted_->put(count::fences, c.fences);
    counted_->put(count::flushes, c.flushes);
    counted_->put(count::log_entries, c.log_entries);
    counted_->put(count::log_bytes, c.log_bytes);
    counted_->put(count::pm_bytes, c.pm_bytes);
}

} // namespace hf::kv
