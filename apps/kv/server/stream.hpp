// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The stream of a client's bytes: its socket, or TLS over it. The serving code sees the same of
// both, with one difference: TLS may hold bytes that the socket no longer announces, or may have to
// write before it can read.
//
// (1) continues() announces such bytes until a read has found nothing: check it before waiting for
//     the socket to be readable.
// (2) A read takes about as many bytes from the socket as it is asked for. So records without bytes
//     (changes of keys, each more expensive than a request), or with few, keep no other client
//     waiting.
#pragma once

#include <openssl/types.h>

#include <memory>
#include <string_view>
#include <sys/types.h>

namespace hf::kv {

class stream {
public:
    /// Owns the socket, which is non-blocking. With 'secured' its client has yet to shake hands.
    explicit stream(int socket, SSL* secured = nullptr) noexcept;
    stream(stream&& other) noexcept;
    stream& operator=(stream&&) = delete;
    ~stream(); // says goodbye, where TLS does, and hangs up

    /// As read(2) and send(2): 0 when the client has hung up; -1, with errno EAGAIN, to try again
    /// later. The caller passes what send() did not take again, at the front of the next call's
    /// bytes.
    ssize_t read(char* to, std::size_t bytes_max) noexcept;
    ssize_t send(std::string_view bytes) noexcept;

    /// Whether a read may find something though the socket is not readable: once it can be written
    /// (1).
    bool continues() const noexcept { return continues_; }
    /// Whether hands are still being shaken: nothing can be sent.
    bool opening() const noexcept { return secured_ != nullptr && !shaken_; }
    /// Whether the client has still to send the rest of something: its handshake, a record.
    bool unfinished() const noexcept { return opening() || part_of_record_; }
    /// Whether the handshake failed, or what follows it was no TLS, or cut.
    bool broken() const noexcept { return broken_; }
    int socket() const noexcept { return socket_; }

private:
    struct hang_up {
        void operator()(SSL* gone) const noexcept;
    };
    static long on_raw_bytes(BIO* of, int what, const char*, std::size_t, int, long, int returned,
                             std::size_t* moved) noexcept;
    ssize_t ended(int returned) noexcept;
    ssize_t read_records(char* to, std::size_t bytes_max) noexcept;

    int socket_;
    std::unique_ptr<SSL, hang_up> secured_; // null: plain
    std::size_t raw_bytes_left_ = 0;        // of the read that is being made (2)
    bool shaken_ = false, continues_ = false, part_of_record_ = false, broken_ = false;
};

} // namespace hf::kv
