// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The client's side of ring.hpp.
#include <base/assert.hpp>
#include <pool/file_checks.hpp>
#include <simpo/ring.hpp>

#include <holdfast/simpo/share.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hf::simpo {
namespace detail {

class connection {
public:
    connection(std::string path, own_socket socket, segment* shared) noexcept
        : path_(std::move(path)), socket_(std::move(socket)), shared_(shared) {}
    ~connection() { ::munmap(shared_, sizeof *shared_); }
    connection(const connection&) = delete;

    const std::string& path() const noexcept { return path_; }
    segment& shared() noexcept { return *shared_; }
    void wake_server() noexcept {
        std::atomic_thread_fence(std::memory_order_seq_cst); // (4) of ring.hpp
        wake(shared_->server_sleeps, socket_.get());
    }
    /// Posts a request; its arguments, if it is of words, come from there.
    status post(const request& head, const std::uint64_t* arguments);
    /// Waits for the answer of the last request. 'words': its result must have as many.
    status wait_for_answer(std::uint64_t* result, std::uint32_t words);

private:
    static constexpr std::uint64_t together = 16; // deferred calls
    void put(std::uint64_t turn, const request& head, const std::uint64_t* arguments);
    template <class IsThere> status wait_until(IsThere&& is_there);
    status has_ended() const;

    std::string path_;
    own_socket socket_;
    segment* shared_;
    std::uint64_t posted_ = 0, taken_ = 0; // turns
    // The first of some deferred calls. The others lie in the ring already, and the server, which
    // looks at the first one's place, leaves their lines to this process until it has all of them.
    std::uint64_t held_ = 0; // its turn; 0: nothing is held
    request held_call_;
};

status connection::has_ended() const {
    return refusal(path_, errc::io_error,
                   "the process that serves the pool has ended: join again, and repeat the calls "
                   "that had no answer");
}

template <class IsThere> status connection::wait_until(IsThere&& is_there) {
    if (spin_for(is_there)) return {};
    do {
        shared_->client_sleeps.store(1, std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_seq_cst); // (4) of ring.hpp
        if (is_there()) break;
        pollfd wait{socket_.get(), POLLIN, 0};
        (void)::poll(&wait, 1, -1);
        if (take_bytes(socket_.get())) continue;
        if (is_there()) break; // it has answered, and then ended
        return has_ended();
    } while (!spin_for(is_there));
    shared_->client_sleeps.store(0, std::memory_order_relaxed);
    return {};
}

status connection::post(const request& head, const std::uint64_t* arguments) {
    if (socket_.is_parents())
        return refusal(path_, errc::in_use,
                       "this is a child of the process that connected: it needs a client of its "
                       "own");
    if (posted_ - taken_ == ring_requests) {
        const auto is_room = [&] {
            taken_ = std::max({taken_, shared_->taken.load(std::memory_order_acquire),
                               shared_->said.turn.load(std::memory_order_acquire)});
            return posted_ - std::min(posted_, taken_) < ring_requests;
        };
        if (status s = wait_until(is_room); !s.ok()) return s;
    }
    const bool waits = head.kind != std::uint8_t(request_kind::defer);
    ++posted_;
    if (held_ == 0 && !waits) {
        held_ = posted_;
        held_call_ = head;
        std::copy_n(arguments, head.words, held_call_.arguments);
        return {};
    }
    put(posted_, head, arguments);
    if (held_ != 0 && (waits || posted_ - held_ + 1 == together)) {
        put(held_, held_call_, held_call_.arguments);
        held_ = 0;
    }
    if (held_ == 0) wake_server();
    return {};
}

void connection::put(std::uint64_t turn, const request& head, const std::uint64_t* arguments) {
    const std::size_t at = (turn - 1) % ring_requests;
    request_line& line = shared_->ring[at];
    std::memcpy(line.head, &head, request_head_bytes);
    for (std::size_t i = 0; i < head.words; ++i)
        (i < line.arguments_max ? line.arguments : shared_->more[at])[i] = arguments[i];
    line.turn.store(turn, std::memory_order_release);
}

status connection::wait_for_answer(std::uint64_t* result, std::uint32_t words) {
    const answer& said = shared_->said;
    const auto is_there = [&] { return said.turn.load(std::memory_order_acquire) == posted_; };
    if (status s = wait_until(is_there); !s.ok()) return s;
    taken_ = posted_;
    if (said.code != 0) {
        const std::string text(said.text, ::strnlen(said.text, sizeof said.text));
        return {static_cast<errc>(said.code), text};
    }
    if (said.words != words)
        return refusal(path_, errc::function_changed,
                       fmt::format("expected a result of {} words, found one of {}: the process "
                                   "that serves the pool has the function in another version",
                                   words, said.words));
    std::memcpy(result, said.result, words * word_bytes);
    return {};
}

void end_connection::operator()(connection* which) const noexcept { delete which; }

namespace {

/// The greeting, and the descriptor that comes with it; -1: none. Another protocol's may be
/// shorter. False: something else.
bool receive(int socket, greeting& to, int& memory) {
    iovec part{&to, sizeof to};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    ssize_t bytes = 0;
    do bytes = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_WAITALL);
    while (bytes < 0 && errno == EINTR);
    const cmsghdr* const first = CMSG_FIRSTHDR(&message);
    memory = -1;
    if (first != nullptr && first->cmsg_level == SOL_SOCKET && first->cmsg_type == SCM_RIGHTS &&
        first->cmsg_len == CMSG_LEN(sizeof(int)))
        std::memcpy(&memory, CMSG_DATA(first), sizeof memory);
    return bytes >= static_cast<ssize_t>(sizeof to.protocol);
}

segment* map(int memory) {
    struct stat is{};
    const int seals = ::fcntl(memory, F_GET_SEALS);
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || ::fstat(memory, &is) != 0 ||
        is.st_size < static_cast<off_t>(sizeof(segment)))
        return nullptr;
    void* const at =
        ::mmap(nullptr, sizeof(segment), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    return at == MAP_FAILED ? nullptr : static_cast<segment*>(at);
}

} // namespace

result<connection_pointer> connect(const std::string& path) {
    const auto name = socket_name::of(path);
    if (!name) return name.error();
    const auto nobody = [&] {
        return refusal(path, errc::not_found, "no process serves the pool");
    };
    auto socket = own_socket::of([] { return ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); });
    if (socket.get() < 0 ||
        ::connect(socket.get(), name->address(), socket_name::address_bytes) != 0) {
        if (errno == ENOENT || errno == ECONNREFUSED || errno == ENOTSOCK) return nobody();
        const int error = errno;
        if (error != EACCES)
            return refusal(path, errc::io_error,
                           fmt::format("its socket: {}", std::strerror(error)));
        status s = name->of_another_user(path);
        return s.ok() ? refusal(path, errc::permission, "its socket may not be used") : s;
    }
    if (!is_ours(socket.get()))
        return refusal(path, errc::permission,
                       "expected a process of this user to serve the pool, found another user's");
    greeting said{};
    int memory = -1;
    const bool greeted = receive(socket.get(), said, memory);
    segment* const shared = memory < 0 ? nullptr : map(memory);
    if (memory >= 0) ::close(memory);
    connection_pointer made(shared == nullptr ? nullptr
                                              : new connection(path, std::move(socket), shared));
    if (!greeted) return nobody(); // it has ended meanwhile
    if (said.protocol != greeting::this_protocol || said.segment_bytes != sizeof(segment))
        return refusal(path, errc::wrong_version,
                       "expected the protocol of this build of Holdfast, found another one in the "
                       "process that serves the pool");
    struct stat there{};
    if (::stat(path.c_str(), &there) != 0 || file_place::of(there) != said.pool)
        return refusal(path, errc::not_found,
                       "no process serves the pool: the process that has its socket serves another "
                       "file, which had the name before");
    if (said.code != 0)
        return refusal(path, errc::limit_reached,
                       "expected room for one more client, found as many as the process that "
                       "serves the pool allows (serve_options::clients)");
    if (made == nullptr)
        return refusal(path, errc::io_error,
                       "expected a sealed memory from the process that serves the pool, found "
                       "none that can be mapped");
    return made;
}

result<std::uint64_t> attach(connection& over, std::string_view name, const class_shape& what,
                             std::uint64_t id) {
    const bool has_zero = name.find('\0') != name.npos;
    if (name.empty() || name.size() > text_bytes_max || has_zero)
        return refusal(over.path(), errc::bad_argument,
                       fmt::format("expected an object's name of 1 to {} bytes, none of them 0, "
                                   "found {}{}",
                                   text_bytes_max, name.size(), has_zero ? " with a 0" : ""));
    attachment whole{id, what.version, what.bytes, {}, {}};
    name.copy(whole.object, text_bytes_max);
    std::string_view(what.text).copy(whole.class_text, text_bytes_max);
    request head{};
    head.kind = std::uint8_t(request_kind::attach);
    head.words = sizeof whole / word_bytes;
    std::uint64_t words[sizeof whole / word_bytes], handle = 0;
    std::memcpy(words, &whole, sizeof whole);
    status s = over.post(head, words);
    if (s.ok()) s = over.wait_for_answer(&handle, 1);
    if (!s.ok()) return s;
    return handle;
}

result<std::uint64_t> last_of(connection& over, std::uint64_t on) {
    request head{};
    head.kind = std::uint8_t(request_kind::last);
    head.handle = on;
    std::uint64_t last = 0;
    status s = over.post(head, nullptr);
    if (s.ok()) s = over.wait_for_answer(&last, 1);
    if (!s.ok()) return s;
    return last;
}

namespace {
status post_call(connection& over, request_kind kind, const function& f, std::uint64_t on,
                 std::uint64_t number, const std::uint64_t* arguments) {
    request head; // its arguments stay as they are
    head.number = number;
    head.function = f.id;
    head.schema = f.schema;
    head.version = f.version;
    head.words = f.words;
    head.kind = std::uint8_t(kind);
    head.handle = on;
    return over.post(head, arguments);
}
} // namespace

status defer_once(connection& over, const function& f, std::uint64_t on, std::uint64_t number,
                  const std::uint64_t* arguments) {
    return post_call(over, request_kind::defer, f, on, number, arguments);
}

status call_once(connection& over, const function& f, std::uint64_t on, std::uint64_t number,
                 const std::uint64_t* arguments, std::uint64_t* result) {
    status s = post_call(over, request_kind::call, f, on, number, arguments);
    return s.ok() ? over.wait_for_answer(result, f.result_words) : s;
}

} // namespace detail

segment& shared_of(detail::connection& over) noexcept { return over.shared(); }
void wake_server(detail::connection& over) noexcept { over.wake_server(); }

result<client> client::connect(const std::string& path) {
    auto over = detail::connect(path);
    if (!over) return over.error();
    return client(std::move(*over));
}

result<client> client::join(const std::string& path, const open_options& how,
                            const std::function<status(hf::pool&)>& prepare) {
    constexpr int attempts = 10'000;
    constexpr useconds_t pause_us = 1000;
    for (int attempt = 1;; ++attempt) {
        auto there = connect(path);
        if (there || there.error().code() != errc::not_found) return there;
        auto opened = hf::pool::open(path, how);
        if (!opened) { // another process has it, and is about to serve it; or was just killed
            if (opened.error().code() != errc::in_use || attempt == attempts) return opened.error();
            ::usleep(pause_us);
            continue;
        }
        auto here = std::make_unique<hf::pool>(std::move(*opened));
        status s = prepare ? prepare(*here) : status{};
        if (s.ok()) s = serve(*here);
        if (!s.ok()) return s;
        there = connect(path);
        if (there) there->pool_ = std::move(here);
        return there;
    }
}

} // namespace hf::simpo
