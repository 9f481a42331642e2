// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/few_signals.hpp>
#include <pool/file_checks.hpp>
#include <simpo/functions.hpp>
#include <simpo/objects.hpp>
#include <simpo/server.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hf::simpo {

using detail::core;
using detail::function;

namespace {

constexpr unsigned rounds_between_looks = 256; // at sockets
constexpr std::uint32_t clients_max = 1024;
constexpr int rest_ms = 100;

/// Whether these words can be values of the parameters: no other byte is a bool.
bool can_be_values(const function& f, const std::uint64_t* words) {
    for (const detail::parameter& each : f.parameters) {
        if (each.kind == 'b' && (*words & 0xff) > 1) return false;
        words += (each.bytes + word_bytes - 1) / word_bytes;
    }
    return true;
}

bool zero_ended(const char (&text)[text_bytes_max + 1]) {
    return text[0] != 0 && text[text_bytes_max] == 0;
}

/// A memory that nobody can shorten, with all its bytes there; -1: none.
int sealed_memory() {
    const int made = ::memfd_create("holdfast", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (made >= 0 && ::fallocate(made, 0, 0, sizeof(segment)) == 0 &&
        ::fcntl(made, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        return made;
    if (made >= 0) ::close(made);
    return -1;
}

/// 'memory': -1: none.
bool greet(int socket, greeting what, int memory) {
    iovec part{&what, sizeof what};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof memory)] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (memory >= 0) {
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        cmsghdr* const first = CMSG_FIRSTHDR(&message);
        first->cmsg_level = SOL_SOCKET;
        first->cmsg_type = SCM_RIGHTS;
        first->cmsg_len = CMSG_LEN(sizeof memory);
        std::memcpy(CMSG_DATA(first), &memory, sizeof memory);
    }
    return ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof what;
}

/// Whether the process at the other end has ended.
bool has_hung_up(int socket) {
    pollfd now{socket, POLLRDHUP, 0};
    return ::poll(&now, 1, 0) == 1;
}

} // namespace

void server::unmap::operator()(segment* which) const noexcept { ::munmap(which, sizeof *which); }

server::server(objects& of, const pool_file& file, const serve_options& how, socket_name name)
    : of_(&of), file_(&file), how_(how), name_(std::move(name)), listening_(own_socket::of([] {
          return ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
      })),
      stopped_(own_socket::of([] { return ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); })) {}

result<std::unique_ptr<server>> server::start(objects& of, const pool_file& file,
                                              const serve_options& how) {
    if (how.clients == 0 || how.clients > clients_max)
        return refusal(file.path(), errc::bad_argument,
                       fmt::format("serve_options::clients: expected 1 to {}, found {}",
                                   clients_max, how.clients));
    if (file.own_file() == nullptr)
        return refusal(file.path(), errc::bad_argument,
                       "expected a pool in a file, found one in memory");
    auto name = socket_name::of(file.own_file()->full_path());
    if (!name) return name.error();
    std::unique_ptr<server> made(new server(of, file, how, std::move(*name)));
    if (status s = made->listen(); !s.ok()) return s;
    const few_signals held; // the guard of HOLDFAST_GUARD needs its faults
    made->thread_ = std::thread([serves = made.get()] { serves->run(); });
    return made;
}

/// This process has the file at that name to write. So a socket beside it is of a process that has
/// ended, or that serves another file, which had the name before.
status server::listen() {
    const os_file& mine = *file_->own_file();
    if (const std::string moved = mine.misplaced(); !moved.empty())
        return refusal(file_->path(), errc::not_found, moved);
    struct stat there{}, served{};
    if (::lstat(name_.path(), &there) == 0 && !S_ISSOCK(there.st_mode))
        return refusal(file_->path(), errc::exists,
                       "expected no file of the pool's name with \".socket\" behind it, or a "
                       "socket that was left there; found another file");
    if (::unlink(name_.path()) != 0 && errno != ENOENT)
        if (status s = name_.of_another_user(file_->path()); !s.ok()) return s;
    if (listening_.get() >= 0 && stopped_.get() >= 0 &&
        ::bind(listening_.get(), name_.address(), socket_name::address_bytes) == 0 &&
        ::chmod(name_.path(), S_IRUSR | S_IWUSR) == 0 &&
        ::listen(listening_.get(), static_cast<int>(how_.clients)) == 0 &&
        ::lstat(name_.path(), &there) == 0 && ::fstat(mine.descriptor(), &served) == 0) {
        socket_ = file_place::of(there);
        pool_ = file_place::of(served);
        return {};
    }
    return refusal(file_->path(), errc::io_error,
                   fmt::format("its socket: {}", std::strerror(errno)));
}

server::~server() {
    if (!thread_.joinable()) return;
    (void)::eventfd_write(stopped_.get(), 1);
    thread_.join();
    struct stat there{};
    if (::lstat(name_.path(), &there) == 0 && file_place::of(there) == socket_)
        (void)::unlink(name_.path());
}

void server::run() {
    for (unsigned rounds = 0;; ++rounds) {
        if (rounds % rounds_between_looks == 0 && !look(0)) return;
        if (serve_round()) continue;
        if (spin_for([this] { return anybody_waits(); })) continue;
        say_sleeps(true);
        if (!look(anybody_waits() ? 0 : -1)) return;
        say_sleeps(false);
    }
}

bool server::anybody_waits() const noexcept {
    return std::ranges::any_of(clients_, [](const auto& each) { return each->waits(); });
}

/// While it does, a client that posts a request sends a byte. (4) of ring.hpp
void server::say_sleeps(bool sleeps) {
    for (const auto& each : clients_)
        each->shared->server_sleeps.store(sleeps ? 1 : 0, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

/// Sees clients that come and go. False: the server shall end.
bool server::look(int timeout_ms) try {
    const bool rests = std::exchange(rests_, false);
    if (rests && timeout_ms < 0) timeout_ms = rest_ms;
    std::vector<pollfd> at{{stopped_.get(), POLLIN, 0}, {rests ? -1 : listening_.get(), POLLIN, 0}};
    for (const auto& each : clients_) at.push_back({each->socket.get(), POLLIN, 0});
    if (::poll(at.data(), at.size(), timeout_ms) <= 0) return true;
    if (at[0].revents != 0) return false;
    for (std::size_t i = 2; i < at.size(); ++i)
        if (at[i].revents != 0 && !take_bytes(at[i].fd)) clients_[i - 2]->gone = true;
    std::erase_if(clients_, [](const auto& each) { return each->gone; });
    if (at[1].revents != 0) accept_one();
    return true;
} catch (const std::bad_alloc&) {
    return true; // what it has not seen, it sees the next time
}

void server::accept_one() {
    auto socket = own_socket::of(
        [this] { return ::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC); });
    rests_ = socket.get() < 0; // there may be no descriptor for it
    if (rests_ || !is_ours(socket.get())) return;
    greeting hello{greeting::this_protocol, sizeof(segment), 0, pool_};
    if (clients_.size() >= how_.clients) hello.code = std::uint64_t(errc::limit_reached);
    const int memory = hello.code == 0 ? sealed_memory() : -1;
    void* const at = memory < 0 ? MAP_FAILED
                                : ::mmap(nullptr, sizeof(segment), PROT_READ | PROT_WRITE,
                                         MAP_SHARED, memory, 0);
    if (at != MAP_FAILED)
        clients_.push_back(std::make_unique<connected>(
            std::move(socket), std::unique_ptr<segment, unmap>(static_cast<segment*>(at))));
    const int to = at == MAP_FAILED ? socket.get() : clients_.back()->socket.get();
    if (!greet(to, hello, memory) && at != MAP_FAILED) clients_.pop_back();
    if (memory >= 0) ::close(memory);
}

/// False: nobody had posted anything.
bool server::serve_round() {
    bool worked = false;
    for (const auto& each : clients_) {
        each->worked = !each->gone && each->waits();
        worked = worked || each->worked;
        if (each->worked) take_requests(*each);
    }
    if (!worked) return false;
    make_calls();
    for (const auto& each : clients_)
        if (each->worked && each->answered != each->taken)
            each->shared->taken.store(each->taken, std::memory_order_release);
    std::atomic_thread_fence(std::memory_order_seq_cst); // (4) of ring.hpp
    for (const auto& each : clients_)
        if (each->worked) wake(each->shared->client_sleeps, each->socket.get());
    return true;
}

/// Upholds (1).
void server::take_requests(connected& from) {
    for (std::uint64_t n = 0; n < ring_requests && !from.gone && from.waits(); ++n) {
        const std::size_t at = from.taken % ring_requests;
        const request_line& line = from.shared->ring[at];
        std::memcpy(&from.now, line.head, request_head_bytes); // (4)
        std::memcpy(from.now.arguments, line.arguments, sizeof line.arguments);
        const std::size_t words = from.now.words;
        if (words > line.arguments_max && words <= std::size(from.now.arguments))
            std::memcpy(from.now.arguments + line.arguments_max,
                        from.shared->more[at] + line.arguments_max,
                        (words - line.arguments_max) * word_bytes);
        std::atomic_thread_fence(std::memory_order_acquire);
        ++from.taken;
        __builtin_prefetch(&from.shared->ring[(from.taken + 4) % ring_requests]);
        try {
            if (!take_request(from)) return;
        } catch (const std::bad_alloc&) {
            refuse(from, out_of_memory(file_->path()));
        }
    }
}

/// Looks at 'now'. False: it has an answer, now or at the round's end.
bool server::take_request(connected& from) {
    const request& r = from.now;
    if (!from.refused.ok()) return say(from, from.refused), false; // upholds (2)
    if (r.words > std::size(r.arguments)) return refuse(from, malformed("its arguments")), false;
    const auto kind = static_cast<request_kind>(r.kind);
    if (kind == request_kind::attach) return attach(from);
    if (r.handle >= from.handles.size()) return refuse(from, malformed("its handle")), false;
    if (kind == request_kind::last) return last(from);
    if (kind != request_kind::defer && kind != request_kind::call)
        return refuse(from, malformed("its kind")), false;
    handle& on = from.handles[r.handle];
    auto found = function_of(on, r);
    if (!found) return refuse(from, found.error()), false;
    if (!can_be_values(**found, r.arguments)) return refuse(from, malformed("a bool")), false;
    if (status s = make_usable(*on.of); !s.ok()) return refuse(from, s), false;
    if (kind == request_kind::call) return from.calls = *found, false;
    on.of->defer_once(**found, {on.caller, r.number}, r.arguments);
    return true;
}

status server::malformed(const char* what) const {
    return refusal(file_->path(), errc::corrupt,
                   fmt::format("a request of a client: expected one that makes sense, found {} "
                               "out of bounds",
                               what));
}

/// Upholds (2).
void server::refuse(connected& whom, status why) {
    whom.refused = std::move(why);
    say(whom, whom.refused);
}

void server::say(connected& to, const status& how, const std::uint64_t* words,
                 std::uint32_t count) {
    answer& said = to.shared->said;
    said.code = std::uint32_t(how.code());
    said.words = count;
    if (count != 0) std::memcpy(said.result, words, count * word_bytes);
    if (!how.ok()) {
        const std::size_t bytes = how.what().copy(said.text, sizeof said.text - 1);
        said.text[bytes] = 0;
    }
    said.turn.store(to.answered = to.taken, std::memory_order_release);
}

/// The object may have ended, or be in a file, since the client found it.
status server::make_usable(core& of) const {
    if (of.destroyed())
        return refusal(file_->path(), errc::not_found,
                       "the persistent object was destroyed: a handle is of no use after that");
    return of.swapped() ? of.come_back() : status{};
}

/// It must be the object's own class: another one would take its bytes for something else.
result<const function*> server::function_of(handle& on, const request& r) const {
    const auto is = [&](const function& f) {
        return f.id == r.function && f.schema == r.schema && f.version == r.version &&
               f.words == r.words;
    };
    const function*& known = on.known[r.function % known_functions];
    if (known != nullptr && is(*known)) return known;
    const record_head named{0, 0, r.function, r.schema, r.version, r.words, 0};
    std::string why;
    const function* const found = find_function(on.shape, named, &why);
    if (found == nullptr || on.class_text != found->class_text)
        return refusal(file_->path(), errc::function_changed,
                       fmt::format("a client's call: expected a function of class {} that this "
                                   "process knows, found {}",
                                   on.class_text, found == nullptr ? why : "another class's"));
    return known = found;
}

bool server::attach(connected& from) {
    attachment a;
    std::memcpy(&a, from.now.arguments, sizeof a);
    if (from.now.words != sizeof a / word_bytes || !zero_ended(a.object) ||
        !zero_ended(a.class_text) || a.class_version > UINT32_MAX)
        return refuse(from, malformed("a name")), false;
    const auto version = static_cast<std::uint32_t>(a.class_version);
    const auto found = of_->find(a.object, {a.class_text, version, a.object_bytes});
    if (!found) return say(from, found.error()), false;
    const auto has = [&](const handle& h) { return h.of == *found && h.caller == a.caller; };
    const auto known = std::ranges::find_if(from.handles, has);
    status s;
    std::uint64_t which = known - from.handles.begin();
    if (known != from.handles.end()) return say(from, {}, &which, 1), false;
    if (from.handles.size() == handles_max)
        s = refusal(
            file_->path(), errc::limit_reached,
            fmt::format("expected at most {} handles of a client, found one more", handles_max));
    else if (is_taken(*found, a.caller))
        s = refusal(
            file_->path(), errc::in_use,
            fmt::format("object \"{}\": another connection has caller {}", a.object, a.caller));
    else s = (*found)->add_caller(a.caller);
    if (!s.ok()) return say(from, s), false;
    handle made{*found, a.caller, {}, a.class_text, {}};
    made.shape.class_version = version;
    made.shape.object_bytes = a.object_bytes;
    from.handles.push_back(std::move(made));
    return say(from, {}, &which, 1), false;
}

/// Upholds (3).
bool server::is_taken(const core* of, std::uint64_t caller) {
    for (const auto& each : clients_) {
        const bool has = std::ranges::any_of(
            each->handles, [&](const handle& h) { return h.of == of && h.caller == caller; });
        if (!has || each->gone) continue;
        if (!has_hung_up(each->socket.get())) return true;
        each->gone = true;
    }
    return false;
}

bool server::last(connected& from) {
    const handle& on = from.handles[from.now.handle];
    status s = make_usable(*on.of);
    if (!s.ok()) return say(from, s), false;
    const auto number = on.of->last_of(on.caller);
    if (!number) return say(from, number.error()), false;
    return say(from, {}, &*number, 1), false;
}

/// The calls of this round, of each object in a group.
void server::make_calls() {
    for (const auto& each : clients_)
        if (each->calls != nullptr) make_calls(*each->handles[each->now.handle].of);
}

void server::make_calls(core& of) try {
    group_.clear();
    whose_.clear();
    for (const auto& each : clients_) {
        if (each->calls == nullptr) continue;
        const handle& on = each->handles[each->now.handle];
        if (on.of != &of) continue;
        whose_.push_back(each.get());
        group_.push_back({each->calls,
                          {on.caller, each->now.number},
                          each->now.arguments,
                          each->result.data(),
                          false,
                          {}});
        each->calls = nullptr;
    }
    of.call_all_once(group_);
    for (std::size_t i = 0; i < group_.size(); ++i)
        say(*whose_[i], group_[i].said, whose_[i]->result.data(), group_[i].f->result_words);
} catch (const std::bad_alloc&) {
    for (connected* const each : whose_) refuse(*each, out_of_memory(file_->path()));
}

} // namespace hf::simpo
