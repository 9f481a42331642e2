// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The server's side of TLS: certificate and key, and what is demanded of clients. By OpenSSL.
#pragma once

#include "service.hpp"
#include "stream.hpp"

#include <holdfast/result.hpp>

#include <atomic>
#include <cstdint>
#include <ctime>
#include <memory>
#include <mutex>

struct ssl_session_st;

namespace hf::kv {

/// From any thread.
class tls : public tls_state {
public:
    explicit tls(tls_settings chosen) : chosen_(std::move(chosen)) {}
    status load() override;
    /// Puts TLS over an accepted, non-blocking socket, which it owns from here on.
    stream accept(int socket);
    void count_failure() noexcept { failures_.fetch_add(1, std::memory_order_relaxed); }
    totals counted() const override { return {failures_, sessions_, loaded_at_}; }

private:
    static int on_session(SSL* of, ssl_session_st*);

    const tls_settings chosen_;
    std::mutex lock_;
    std::shared_ptr<SSL_CTX> context_; // under lock_
    std::atomic<std::uint64_t> failures_{0}, sessions_{0};
    std::atomic<std::time_t> loaded_at_{0};
};

} // namespace hf::kv
