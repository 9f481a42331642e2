// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What makes bytes of a pool durable: code that stores to a pool is given its medium, and asks that
// for flushes and fences. A medium is a persistence domain and the instructions it wants (persist.hpp),
// or, in mode power, a log of lines that stands for the ADR domain (persist/line_log.hpp).
#pragma once

#include <persist/line_log.hpp>
#include <trace/trace.hpp>

#include <holdfast/author/persist.hpp>

#include <atomic>

namespace hf {

/// A value: copied freely.
class medium {
public:
    constexpr explicit medium(hf::domain d = hf::domain::process) noexcept : domain_(d) {}
    /// Requires: the log outlives all copies.
    constexpr explicit medium(line_log& log) noexcept : domain_(hf::domain::adr), log_(&log) {}

    /// With a log: adr, as that is what the log stands for.
    constexpr hf::domain domain() const noexcept { return domain_; }
    /// What is stored survives in the order in which it was stored, and nothing is torn off: fences
    /// only keep the compiler from changing that order.
    constexpr bool keeps_order() const noexcept { return domain_ == hf::domain::process; }
    /// A line survives for certain only once it is written back, and that has been waited for.
    constexpr bool loses_caches() const noexcept { return domain_ == hf::domain::adr; }

    /// Starts write-back of the range's lines. Unordered.
    void flush(const void* address, std::size_t bytes) const noexcept {
        if (!loses_caches()) return;
        if (log_ != nullptr) [[unlikely]]
            return persist::flush(*log_, address, bytes);
        persist::flush(domain_, address, bytes);
    }
    /// Waits for this thread's earlier flushes and non-temporal stores: an ordering point.
    void fence() const noexcept { fence(true); }
    /// A fence before which nothing is promised to anybody: it orders what survives, and with a log
    /// waits for no disk. Elsewhere it is a fence.
    void order() const noexcept { fence(false); }
    /// What this thread has fenced is durable on return. Without a log it is already.
    void promise() const noexcept {
        if (log_ != nullptr) [[unlikely]]
            log_->wait();
    }
    /// Whether fence() promises: without a group always.
    bool promises() const noexcept { return log_ == nullptr || !persist::in_group(*log_); }
    /// From here to end_group() this thread's fences only order; the end promises what they have fenced.
    void begin_group() const noexcept {
        if (log_ != nullptr) [[unlikely]]
            persist::begin_group(*log_);
    }
    void end_group() const noexcept {
        if (log_ != nullptr) [[unlikely]]
            persist::end_group(*log_);
    }
    /// flush, then fence.
    void persist(const void* address, std::size_t bytes) const noexcept {
        flush(address, bytes);
        fence();
    }
    /// Copies words so that the next fence makes them durable (persist::copy).
    void copy(void* to, const void* from, std::size_t bytes) const noexcept {
        if (log_ != nullptr) [[unlikely]]
            return persist::copy(*log_, to, from, bytes);
        persist::copy(domain_, to, from, bytes);
    }
    /// Stores one failure-atomic word and starts its write-back.
    void store_word(std::uint64_t* to, std::uint64_t value) const noexcept {
        if (!loses_caches()) {
            __atomic_store_n(to, value, __ATOMIC_RELEASE);
            return trace::announce(trace::store, to, sizeof value);
        }
        if (log_ != nullptr) [[unlikely]]
            return persist::store_word(*log_, to, value);
        persist::store_word(domain_, to, value);
    }

private:
    void fence(bool promises) const noexcept {
        if (!keeps_order()) {
            if (log_ != nullptr) [[unlikely]]
                return persist::fence(*log_, promises);
            return persist::fence(domain_);
        }
        ++persist::thread_counters().ordering_points;
        std::atomic_signal_fence(std::memory_order_seq_cst);
    }

    hf::domain domain_;
    line_log* log_ = nullptr;
};

} // namespace hf
