// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What code does to persistent memory, announced as it is done to whoever listens: the crash
// checker, a test, a simulator. Where nobody listens an announcement costs one load.
//
// The events here are the persistence layer's. Whoever has more to say declares events of its own
// beside its code, for listeners that look for them; others pass them over.
#pragma once

#include <atomic>
#include <cstddef>

namespace hf::trace {

/// A kind of event, told by its address.
struct event {
    const char* name;
    friend bool operator==(const event& a, const event& b) noexcept { return &a == &b; }
};
/// A store to PM will be made, by a section; where code is built in trace mode, that reports it,
/// too.
inline constexpr event store{"store"};
inline constexpr event nt_store{"nt_store"}; // a non-temporal store was made
inline constexpr event flush{"flush"};       // write-back of the range's lines was started
inline constexpr event fence{"fence"};       // what the thread flushed before has been waited for

/// Is called on the thread that does it.
using listener = void (*)(const event& what, const void* address, std::size_t bytes);

/// Adds one to the process's listeners, of which there may be listeners_max; takes one away. Done
/// while no section runs.
void listen(listener to);
void leave(listener to) noexcept;
inline constexpr std::size_t listeners_max = 4;
/// Listens while it lives.
class listening {
public:
    explicit listening(listener to) : to_(to) { listen(to); }
    ~listening() { leave(to_); }
    listening(const listening&) = delete;
    listening& operator=(const listening&) = delete;

private:
    listener to_;
};

namespace detail {
extern std::atomic<bool> heard;
void tell(const event& what, const void* address, std::size_t bytes);
} // namespace detail

/// Whether anybody listens.
inline bool heard() noexcept { return detail::heard.load(std::memory_order_relaxed); }

inline void announce(const event& what, const void* address, std::size_t bytes) noexcept {
    if (heard()) [[unlikely]]
        detail::tell(what, address, bytes);
}

} // namespace hf::trace
