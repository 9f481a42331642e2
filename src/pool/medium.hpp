// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What makes bytes of a pool durable: code that stores to a pool is given its medium, and asks that
// for flushes and fences. Today a medium is a persistence domain and the instructions it wants
// (persist.hpp); one that groups fences into one write of the file would be another.
#pragma once

#include <holdfast/persist.hpp>

namespace hf {

/// A value: copied freely.
class medium {
public:
    constexpr explicit medium(hf::domain d = hf::domain::process) noexcept : domain_(d) {}

    constexpr hf::domain domain() const noexcept { return domain_; }
    /// What is stored survives in the order in which it was stored, and nothing is torn off: fences
    /// only keep the compiler from changing that order.
    constexpr bool keeps_order() const noexcept { return domain_ == hf::domain::process; }
    /// A line survives for certain only once it is written back, and that has been waited for.
    constexpr bool loses_caches() const noexcept { return domain_ == hf::domain::adr; }

    /// Starts write-back of the range's lines. Unordered.
    void flush(const void* address, std::size_t bytes) const noexcept {
        persist::flush(domain_, address, bytes);
    }
    /// Waits for this thread's earlier flushes and non-temporal stores: an ordering point.
    void fence() const noexcept { persist::fence(domain_); }
    /// flush, then fence.
    void persist(const void* address, std::size_t bytes) const noexcept {
        persist::persist(domain_, address, bytes);
    }
    /// Copies words so that the next fence makes them durable (persist::copy).
    void copy(void* to, const void* from, std::size_t bytes) const noexcept {
        persist::copy(domain_, to, from, bytes);
    }
    /// Stores one failure-atomic word and starts its write-back.
    void store_word(std::uint64_t* to, std::uint64_t value) const noexcept {
        persist::store_word(domain_, to, value);
    }

private:
    hf::domain domain_;
};

} // namespace hf
