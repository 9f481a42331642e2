// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "stream.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace hf::kv {

void stream::hang_up::operator()(SSL* gone) const noexcept { ::SSL_free(gone); }

stream::stream(int socket, SSL* secured) noexcept : socket_(socket), secured_(secured) {}

stream::stream(stream&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), secured_(std::move(other.secured_)),
      shaken_(other.shaken_), continues_(other.continues_), broken_(other.broken_) {
    if (secured_ != nullptr) ::BIO_set_callback_arg(::SSL_get_rbio(secured_.get()), nullptr);
}

stream::~stream() {
    if (secured_ != nullptr && !opening() && !broken_) {
        // Without it a client cannot distinguish the end of the answers from a cut. It does not
        // wait for a full socket.
        (void)::SSL_shutdown(secured_.get());
        ::ERR_clear_error();
    }
    if (socket_ >= 0) ::close(socket_);
}

// Upholds (2), around every read(2) of OpenSSL's.
long stream::on_raw_bytes(BIO* of, int what, const char*, std::size_t, int, long, int returned,
                          std::size_t* moved) noexcept {
    auto* const left = reinterpret_cast<std::size_t*>(::BIO_get_callback_arg(of));
    if (left == nullptr) return returned;
    if (what == BIO_CB_READ && *left == 0) {
        BIO_set_retry_read(of);
        return -1;
    }
    if (what == (BIO_CB_READ | BIO_CB_RETURN) && returned > 0) *left -= std::min(*left, *moved);
    return returned;
}

// Translates what OpenSSL returned without a byte into the system's form.
ssize_t stream::ended(int returned) noexcept {
    const int why = ::SSL_get_error(secured_.get(), returned);
    continues_ =
        why == SSL_ERROR_WANT_WRITE || (why == SSL_ERROR_WANT_READ && raw_bytes_left_ == 0);
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) {
        errno = EAGAIN;
        return -1;
    }
    if (why == SSL_ERROR_ZERO_RETURN) return 0;
    broken_ = true; // nothing may be sent any more, no goodbye either
    errno = why == SSL_ERROR_SYSCALL && errno != 0 && errno != EAGAIN ? errno : EPROTO;
    return -1;
}

ssize_t stream::read(char* to, std::size_t bytes_max) noexcept {
    if (secured_ == nullptr) return ::read(socket_, to, bytes_max);
    raw_bytes_left_ = bytes_max;
    BIO* const raw = ::SSL_get_rbio(secured_.get());
    ::BIO_set_callback_arg(raw, reinterpret_cast<char*>(&raw_bytes_left_));
    ::BIO_set_callback_ex(raw, on_raw_bytes);
    if (!shaken_) {
        ::ERR_clear_error();
        if (const int done = ::SSL_do_handshake(secured_.get()); done != 1) return ended(done);
        shaken_ = true;
    }
    const ssize_t got = read_records(to, bytes_max);
    part_of_record_ = !continues_ && !broken_ && ::SSL_has_pending(secured_.get()) != 0;
    return got;
}

ssize_t stream::read_records(char* to, std::size_t bytes_max) noexcept {
    std::size_t got = 0;
    do { // a record at a time, while there is one
        ::ERR_clear_error();
        const int most = static_cast<int>(std::min<std::size_t>(bytes_max - got, INT_MAX));
        const int read = ::SSL_read(secured_.get(), to + got, most);
        if (read <= 0) {
            const ssize_t why = ended(read);
            if (got == 0) return why;
            // The next read finds the end again; continues_ announces it.
            if (why == 0 || errno != EAGAIN) continues_ = true;
            return static_cast<ssize_t>(got);
        }
        got += static_cast<std::size_t>(read);
        continues_ = ::SSL_has_pending(secured_.get()) != 0;
    } while (continues_ && got < bytes_max);
    return static_cast<ssize_t>(got);
}

ssize_t stream::send(std::string_view bytes) noexcept {
    if (secured_ == nullptr) return ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    ::ERR_clear_error();
    const int most = static_cast<int>(std::min<std::size_t>(bytes.size(), INT_MAX));
    const int sent = ::SSL_write(secured_.get(), bytes.data(), most);
    if (sent > 0) return sent;
    const bool continued = continues_;
    const ssize_t why = ended(sent);
    continues_ = continued;
    if (why == 0) errno = EPIPE;
    return -1;
}

} // namespace hf::kv
