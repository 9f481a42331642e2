// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tls.hpp"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <array>
#include <new>
#include <utility>

namespace hf::kv {
namespace {

status failed(const std::string& doing) {
    const unsigned long first = ::ERR_get_error();
    ::ERR_clear_error();
    char why[256] = "for an unknown reason";
    if (first != 0) ::ERR_error_string_n(first, why, sizeof why);
    return {errc::bad_argument, fmt::format("-Z: {}: {}", doing, why)};
}

constexpr std::array versions = {TLS1_VERSION, TLS1_1_VERSION, TLS1_2_VERSION, TLS1_3_VERSION};
constexpr std::array verifies = {
    SSL_VERIFY_NONE, SSL_VERIFY_PEER, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
    SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT | SSL_VERIFY_CLIENT_ONCE};

status fill(SSL_CTX* to, const tls_settings& from) {
    const std::string& key = from.key.empty() ? from.chain_cert : from.key;
    const int key_format = from.key_format == 2 ? SSL_FILETYPE_ASN1 : SSL_FILETYPE_PEM;
    if (::SSL_CTX_use_certificate_chain_file(to, from.chain_cert.c_str()) != 1)
        return failed(fmt::format("cannot load the certificate chain \"{}\" (-o ssl_chain_cert)",
                                  from.chain_cert));
    if (::SSL_CTX_use_PrivateKey_file(to, key.c_str(), key_format) != 1)
        return failed(fmt::format("cannot load the key \"{}\" (-o ssl_key)", key));
    if (::SSL_CTX_check_private_key(to) != 1)
        return failed(fmt::format("\"{}\" is not the key of \"{}\"", key, from.chain_cert));
    if (!from.ca_cert.empty()) {
        if (::SSL_CTX_load_verify_locations(to, from.ca_cert.c_str(), nullptr) != 1)
            return failed(fmt::format("cannot load the CA's certificates \"{}\" (-o ssl_ca_cert)",
                                      from.ca_cert));
        ::SSL_CTX_set_client_CA_list(to, ::SSL_load_client_CA_file(from.ca_cert.c_str()));
    }
    if (!from.ciphers.empty() && ::SSL_CTX_set_cipher_list(to, from.ciphers.c_str()) != 1)
        return failed(fmt::format("no cipher is \"{}\" (-o ssl_ciphers)", from.ciphers));
    if (::SSL_CTX_set_min_proto_version(to, versions.at(from.min_version)) != 1)
        return failed("this version is not allowed here (-o ssl_min_version)");
    ::SSL_CTX_set_verify(to, verifies.at(from.verify_mode), nullptr);
    return {};
}

// How a connection's reads and writes behave (stream.hpp).
void settle(SSL_CTX* context, const tls_settings& from) {
    ::SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    ::SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    ::SSL_CTX_set_read_ahead(context, 1); // one read(2) for many small records
    ::SSL_CTX_set_session_cache_mode(context, from.session_cache ? SSL_SESS_CACHE_SERVER
                                                                 : SSL_SESS_CACHE_OFF);
    constexpr unsigned char id[] = "holdfast-kv"; // sessions of clients that were verified need one
    ::SSL_CTX_set_session_id_context(context, id, sizeof id - 1);
}

} // namespace

status tls::load() {
    ::ERR_clear_error();
    const std::shared_ptr<SSL_CTX> made(::SSL_CTX_new(::TLS_server_method()), ::SSL_CTX_free);
    if (made == nullptr) return failed("cannot begin");
    if (status s = fill(made.get(), chosen_); !s.ok()) return s;
    settle(made.get(), chosen_);
    SSL_CTX_set_app_data(made.get(), this);
    ::SSL_CTX_sess_set_new_cb(made.get(), on_session);
    const std::scoped_lock held(lock_);
    context_ = made;
    loaded_at_ = std::time(nullptr);
    return {};
}

int tls::on_session(SSL* of, ssl_session_st*) {
    auto* const in = static_cast<tls*>(SSL_CTX_get_app_data(::SSL_get_SSL_CTX(of)));
    in->sessions_.fetch_add(1, std::memory_order_relaxed);
    return 0; // the session is not kept here
}

stream tls::accept(int socket) {
    SSL* made = nullptr;
    {
        const std::scoped_lock held(lock_);
        made = ::SSL_new(context_.get()); // keeps the context
    }
    stream secured(socket, made);
    if (made == nullptr || ::SSL_set_fd(made, socket) != 1) throw std::bad_alloc();
    ::SSL_set_accept_state(made);
    return secured;
}

} // namespace hf::kv
