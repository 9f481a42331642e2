// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The accesses of running code to one range of memory: reported by code built in trace mode
// (holdfast/abi/trace_abi.h) and by the persistence layer, on the accessing thread.
#pragma once

#include <base/symbols.hpp>

#include <cstddef>
#include <cstdint>

namespace hf::check {

/// Receives what happens in the watched range; offsets count from its start, ranges are clipped.
class observer {
public:
    virtual ~observer() = default;
    virtual void load(std::size_t offset, std::size_t bytes) = 0;  // before it
    virtual void store(std::size_t offset, std::size_t bytes) = 0; // after it
    virtual void nt_store(std::size_t offset, std::size_t bytes) = 0;
    virtual void flush(std::size_t offset, std::size_t bytes) = 0;
    virtual void fence() = 0; // sfence, mfence
    // believed::checked; goes_on: checked_on.
    virtual void checked(std::size_t offset, std::size_t bytes, bool goes_on) = 0;
    virtual void flush_now(std::size_t, std::size_t) {} // clflush
    virtual void turn(std::size_t, std::size_t) {}      // before a store
    // Announcements of mod::announced; most observers ignore them.
    virtual void fresh(std::size_t, std::size_t) {}
    virtual void named(std::size_t, std::size_t) {}
    virtual void commit(std::size_t, std::size_t) {}
    virtual void in_place(std::size_t, std::size_t) {}
};

/// Watches [base, base + bytes) until destroyed. One at a time.
class watch {
public:
    watch(std::byte* base, std::size_t bytes, observer& to);
    ~watch();
    watch(const watch&) = delete;
    watch& operator=(const watch&) = delete;
};

using hf::code_place; // of the code that has just been reported
/// Filled for every report when 'on': costs some nanoseconds.
void follow_places(bool on) noexcept;
/// The same of loads, which nobody else asks for.
void follow_places_of_loads(bool on) noexcept;
/// From here on follows places even after follow_places(false): to report a recovery that failed.
void follow_places_always() noexcept;
const code_place& reported_place() noexcept;

} // namespace hf::check
