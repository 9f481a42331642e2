// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a read of a stream is bounded by its request, for any form of the client's TLS. Method:
// records made beforehand, which wait in the socket.
#include "stream.hpp"

#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <array>
#include <cerrno>
#include <memory>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>

namespace {

using hf::kv::stream;

template <auto Free> struct freed_by {
    void operator()(auto* gone) const { Free(gone); }
};
using context = std::unique_ptr<SSL_CTX, freed_by<::SSL_CTX_free>>;
using session = std::unique_ptr<SSL, freed_by<::SSL_free>>;

context server_context() {
    const std::unique_ptr<EVP_PKEY, freed_by<::EVP_PKEY_free>> key(EVP_EC_gen("P-256"));
    const std::unique_ptr<X509, freed_by<::X509_free>> certificate(::X509_new());
    ::X509_gmtime_adj(X509_getm_notBefore(certificate.get()), 0);
    ::X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
    ::X509_set_pubkey(certificate.get(), key.get());
    ::X509_sign(certificate.get(), key.get(), ::EVP_sha256());
    context made(::SSL_CTX_new(::TLS_server_method()));
    ::SSL_CTX_use_certificate(made.get(), certificate.get());
    ::SSL_CTX_use_PrivateKey(made.get(), key.get());
    ::SSL_CTX_set_read_ahead(made.get(), 1);
    return made;
}

/// A client that has shaken hands with a stream.
class Stream : public testing::Test {
protected:
    void SetUp() override {
        int ends[2];
        ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
        client_.reset(::SSL_new(clients_.get()));
        socket_ = ends[1];
        ::SSL_set_fd(client_.get(), ends[1]);
        ::SSL_set_connect_state(client_.get());
        SSL* const served = ::SSL_new(servers_.get());
        ::SSL_set_fd(served, ends[0]);
        ::SSL_set_accept_state(served);
        server_ = std::make_unique<stream>(ends[0], served);
        while (server_->opening()) {
            (void)::SSL_do_handshake(client_.get());
            (void)read(100);
        }
        (void)::SSL_do_handshake(client_.get());
    }
    void TearDown() override {
        server_.reset(); // says goodbye
        ::close(socket_);
    }

    /// Returns when the client's words of 'saying' are in the socket.
    template <class Saying> void said(Saying&& saying) {
        BIO* const kept = ::BIO_new(::BIO_s_mem());
        ::SSL_set0_wbio(client_.get(), kept);
        saying();
        char* bytes = nullptr;
        const auto count = BIO_get_mem_data(kept, &bytes);
        ASSERT_EQ(::send(socket_, bytes, static_cast<std::size_t>(count), 0), count);
    }
    ssize_t read(std::size_t bytes) {
        const ssize_t got = server_->read(buffer_.data(), bytes);
        if (got > 0) found_.append(buffer_.data(), static_cast<std::size_t>(got));
        return got;
    }

    context servers_ = server_context(), clients_{::SSL_CTX_new(::TLS_client_method())};
    session client_;
    int socket_ = -1;
    std::unique_ptr<stream> server_;
    std::array<char, 4096> buffer_{};
    std::string found_;
};

TEST_F(Stream, ReadsNoMoreKeysThanItIsAskedForBytes) {
    said([&] {
        for (unsigned n = 0; n < 3000; ++n) { // of some 30 bytes
            ::SSL_key_update(client_.get(), SSL_KEY_UPDATE_NOT_REQUESTED);
            ASSERT_EQ(::SSL_do_handshake(client_.get()), 1);
        }
        ASSERT_EQ(::SSL_write(client_.get(), "text", 4), 4);
    });
    unsigned reads = 0;
    for (ssize_t got = -1; got < 0; ++reads) {
        got = read(buffer_.size());
        ASSERT_TRUE(got > 0 || (errno == EAGAIN && server_->continues()));
    }
    EXPECT_GT(reads, 4U);
    EXPECT_EQ(found_, "text");
    while (server_->continues()) EXPECT_LT(read(buffer_.size()), 0);
    EXPECT_EQ(found_, "text");
}

TEST_F(Stream, FindsAllOfSmallRecords) {
    said([&] {
        for (unsigned n = 0; n < 2000; ++n) ASSERT_EQ(::SSL_write(client_.get(), "x", 1), 1);
    });
    ssize_t got = 0; // until the socket, too, has no more
    for (unsigned n = 0; got >= 0 || server_->continues(); ++n) got = read(n % 7 == 0 ? 1 : 100);
    EXPECT_EQ(found_, std::string(2000, 'x'));
    EXPECT_FALSE(server_->broken());
}

} // namespace
