// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Announces actions on persistent memory, as they are done, to listeners: the crash checker, a
// test, a simulator. Without listeners an announcement costs one load.
//
// The events here are the persistence layer's. Other modules declare events of their own beside
// their code, for listeners that look for them; other listeners ignore them.
#pragma once

#include <atomic>
#include <cstddef>

namespace hf::trace {

/// A kind of event, identified by its address.
struct event {
    const char* name;
    friend bool operator==(const event& a, const event& b) noexcept { return &a == &b; }
};
/// A section will store to PM; code built in trace mode reports the store as well.
inline constexpr event store{"store"};
inline constexpr event nt_store{"nt_store"}; // a non-temporal store was made
inline constexpr event flush{"flush"};       // write-back of the range's lines was started
inline constexpr event fence{"fence"};       // the thread's earlier flushes have been waited for

/// Is called on the thread that does it.
using listener = void (*)(const event& what, const void* address, std::size_t bytes);

/// Adds one to the process's listeners (at most listeners_max); removes one. Call it while no
/// section runs.
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
