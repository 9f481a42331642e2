// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makes a pool's bytes durable. Code that stores to a pool gets its medium, and asks the medium for
// flushes and fences. A medium is a persistence domain and the instructions that it needs
// (persist.hpp), or, in mode power, a log of lines that represents the ADR domain
// (persist/line_log.hpp).
//
// The kind of a medium is what a failure can take:
//   ordered  nothing: every store that was made is there, in program order: mode process, and mode
//            pmem where caches persist (eADR). There a failure may take what the processor has not
//            yet put into its cache: a thread's last stores, which nobody has seen, and with them
//            all that the thread did after them
//   fenced   what was not flushed and fenced, in any order: mode pmem elsewhere
//   batched  everything since the last batch, together: mode power. A batch can be made to have all
//            of a section (persist/line_log.hpp, 3)
// Code that each store passes through is compiled for a kind (as_its_kind), and checks nothing when
// it runs. The code for fenced media serves a batched one if nothing is compiled for that.
#pragma once

#include <base/assert.hpp>
#include <persist/line_log.hpp>
#include <persist/order.hpp>
#include <trace/trace.hpp>

#include <holdfast/author/persist.hpp>

namespace hf {

/// A value: copied freely.
class medium {
public:
    constexpr explicit medium(hf::domain d = hf::domain::process) noexcept : domain_(d) {}
    /// Requires: the log outlives all copies.
    constexpr explicit medium(line_log& log) noexcept : domain_(hf::domain::adr), log_(&log) {}

    /// With a log: adr, which the log represents.
    constexpr hf::domain domain() const noexcept { return domain_; }
    /// Whether stores survive in the order in which they were made, and none is torn: fences only
    /// keep the compiler from changing that order.
    constexpr bool keeps_order() const noexcept { return !loses_caches(); }
    /// A line survives for certain only once it is written back, and that has been waited for.
    constexpr bool loses_caches() const noexcept { return domain_ == hf::domain::adr; }
    /// Whether a fenced store may still be lost, with all later ones: the batch to which it
    /// belongs.
    constexpr bool loses_batches() const noexcept { return log_ != nullptr; }
    /// The log. Requires: there is one.
    line_log& lines() const noexcept {
        HF_ASSERT_SLOW(log_ != nullptr);
        return *log_;
    }

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
    /// Makes what this thread has fenced durable on return. Without a log it is durable already.
    void promise() const noexcept {
        if (log_ != nullptr) [[unlikely]]
            log_->wait();
    }
    /// Whether fence() promises: without a group always.
    bool promises() const noexcept { return log_ == nullptr || !persist::in_group(*log_); }
    /// From here to end_group() this thread's fences only order; the end promises their stores.
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
        persist::order_stores();
    }

    hf::domain domain_;
    line_log* log_ = nullptr;
};

/// A medium that is known to keep order. It flushes nothing.
class ordered_medium {
public:
    constexpr explicit ordered_medium([[maybe_unused]] hf::medium m) noexcept {
        HF_ASSERT_SLOW(m.keeps_order());
    }
    static constexpr bool keeps_order() noexcept { return true; }

    void fence() const noexcept {
        ++persist::thread_counters().ordering_points;
        persist::order_stores();
    }
    void copy(void* to, const void* from, std::size_t bytes) const noexcept {
        persist::copy(hf::domain::process, to, from, bytes);
    }
    void store_word(std::uint64_t* to, std::uint64_t value) const noexcept {
        __atomic_store_n(to, value, __ATOMIC_RELEASE);
        trace::announce(trace::store, to, sizeof value);
    }
};

/// Any other medium.
class fenced_medium : public medium {
public:
    constexpr explicit fenced_medium(hf::medium m) noexcept : medium(m) {
        HF_ASSERT_SLOW(!m.keeps_order());
    }
    static constexpr bool keeps_order() noexcept { return false; }
};

/// A batched one: for code that knows more of it than that it is fenced.
class batched_medium;

/// Calls 'step' with the medium as the kind that it is.
template <class Step> decltype(auto) as_its_kind(medium m, Step&& step) {
    if (m.keeps_order()) return step(ordered_medium(m));
    return step(fenced_medium(m));
}

} // namespace hf
