// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The persistence layer: the only code that flushes, fences or stores non-temporally.
//
// A persistence domain says where a store survives the failure considered:
//   process  the mapped file outlives the process; program order is enough (JUSTDO §7.1)
//   eadr     caches are inside the domain; fences order, flushes are not needed
//   adr      only the memory controller is; every dirty line is flushed before a fence counts
#pragma once

#include <cstddef>
#include <cstdint>

namespace hf {

enum class domain : std::uint8_t { process, eadr, adr };

namespace persist {

/// Events so far on the calling thread. Only the owning thread writes them: no atomics, no cost.
struct counters {
    std::uint64_t flushes;         // lines written back (flush_instruction())
    std::uint64_t fences;          // fences issued to a persistence domain
    std::uint64_t nt_stores;       // non-temporal copies issued (calls, whatever their length)
    std::uint64_t ordering_points; // fences an operation had to wait for; in process mode, the
                                   // places where one would stand
    std::uint64_t log_entries;     // section log records; not begin records, nor kept ones
    std::uint64_t log_bytes;       // bytes of section log records, begin records included
    std::uint64_t pm_bytes;        // bytes stored to PM: data noted by sections, those, allocator
    std::uint64_t sections;        // sections committed
    // In no other count, pm_bytes included: what engine clobber logs for rolling back alone.
    std::uint64_t kept_entries;
    std::uint64_t kept_bytes;
};
namespace detail {
extern constinit thread_local counters events __attribute__((tls_model("initial-exec")));
}
inline counters& thread_counters() noexcept { return detail::events; }
/// From here on the calling thread's events belong to process_counters, also after the thread has
/// ended. Without memory to note it they do not.
void count_this_thread() noexcept;
/// The events of all counted threads; events of this very moment may be missing.
counters process_counters() noexcept;

/// Starts write-back of every line of [address, address + bytes), without an order. Does nothing in
/// the domains process and eadr.
///
/// Cost:     one instruction for each line of 64 bytes.
/// Ordering: 0 points.
void flush(domain d, const void* address, std::size_t bytes) noexcept;
/// Waits for this thread's earlier flushes and non-temporal stores, and orders later stores behind
/// them.
///
/// Ordering: 1 point.
/// Source:   MOD §3, the unit of cost.
void fence(domain d) noexcept;
/// flush, then fence. Ordering: 1 point.
void persist(domain d, const void* address, std::size_t bytes) noexcept;
/// Copies to PM so that the next fence makes it durable: non-temporal in the ADR domain (95-105 ns
/// with its fence, against 160 for store + clwb + fence), plain stores elsewhere.
///
/// Requires: 'to' and 'bytes' are multiples of 8; the ranges do not overlap.
/// Ordering: 0 points.
void copy(domain d, void* to, const void* from, std::size_t bytes) noexcept;
/// Stores one failure-atomic word, 8 aligned bytes, and starts its write-back. Ordering: 0 points.
void store_word(domain d, std::uint64_t* to, std::uint64_t value) noexcept;

/// A model of other memory's waiting times, for experiments. In the ADR domain a fence takes at
/// least this long for the lines that were flushed or stored non-temporally since the thread's last
/// fence. MOD §3 fits Optane: 353 ns for one line, and 18 % of that for each further line.
struct latency_model {
    double first_line_ns = 0; // 0: no model
    double further_line_ns = 0;
};
/// Installs the process-wide model. For benchmarks; install it while no section runs.
void set_latency_model(const latency_model& model) noexcept;

namespace detail {
std::uint64_t ticks() noexcept; // the processor's clock
/// Returns when a wait for this many lines that began at 'begun' is over by the model.
void wait_as_modelled(std::uint64_t lines, std::uint64_t begun) noexcept;
} // namespace detail

/// Name of the write-back instruction in use: "clwb", "clflushopt" or "clflush"; on ARM64 "dc cvap"
/// or "dc cvac".
const char* flush_instruction() noexcept;

} // namespace persist
} // namespace hf
