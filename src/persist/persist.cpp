// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The only code with flush, fence and non-temporal instructions.
//
// (1) In the process domain nothing is flushed or fenced: the mapped file outlives the process, and
//     x86 makes stores visible in program order; a compiler barrier keeps that order.
// (2) In the eADR domain an sfence orders; caches are inside the domain, so nothing is flushed.
// (3) In the ADR domain a line is durable once flushed (or stored non-temporally) and then fenced.
#include <base/assert.hpp>
#include <base/line.hpp>

#include <holdfast/persist.hpp>

#include <atomic>
#include <chrono>
#include <cpuid.h>
#include <cstring>
#include <immintrin.h>

namespace hf::persist {
namespace {

enum class write_back : std::uint8_t { clwb, clflushopt, clflush };

write_back detect() noexcept {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) {
        if ((b & (1u << 24)) != 0) return write_back::clwb;
        if ((b & (1u << 23)) != 0) return write_back::clflushopt;
    }
    return write_back::clflush;
}

const write_back instruction = detect();

__attribute__((target("clwb"))) void clwb_lines(std::uintptr_t first, std::uintptr_t end) noexcept {
    for (std::uintptr_t l = first; l < end; l += line_bytes) _mm_clwb(reinterpret_cast<void*>(l));
}

__attribute__((target("clflushopt"))) void clflushopt_lines(std::uintptr_t first,
                                                            std::uintptr_t end) noexcept {
    for (std::uintptr_t l = first; l < end; l += line_bytes)
        _mm_clflushopt(reinterpret_cast<void*>(l));
}

void clflush_lines(std::uintptr_t first, std::uintptr_t end) noexcept {
    for (std::uintptr_t l = first; l < end; l += line_bytes)
        _mm_clflush(reinterpret_cast<void*>(l));
}

} // namespace

constinit thread_local counters detail::events{};

std::atomic<trace_hook> detail::hook{nullptr};

void set_trace_hook(trace_hook given) noexcept { detail::hook.store(given); }

const char* flush_instruction() noexcept {
    switch (instruction) {
    case write_back::clwb: return "clwb";
    case write_back::clflushopt: return "clflushopt";
    case write_back::clflush: return "clflush";
    }
    return "";
}

void flush(domain d, const void* address, std::size_t bytes) noexcept {
    if (d != domain::adr || bytes == 0) return;
    const std::uintptr_t first = line_of(address);
    const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(address) + bytes;
    detail::events.flushes += (end - first + line_bytes - 1) / line_bytes;
    switch (instruction) {
    case write_back::clwb: clwb_lines(first, end); break;
    case write_back::clflushopt: clflushopt_lines(first, end); break;
    case write_back::clflush: clflush_lines(first, end); break;
    }
    trace(event::flush, address, bytes);
}

void fence(domain d) noexcept {
    ++detail::events.ordering_points;
    if (d == domain::process) {
        std::atomic_signal_fence(std::memory_order_seq_cst); // upholds (1)
        return;
    }
    ++detail::events.fences;
    _mm_sfence();
    trace(event::fence, nullptr, 0);
}

void persist(domain d, const void* address, std::size_t bytes) noexcept {
    flush(d, address, bytes);
    fence(d);
}

void copy(domain d, void* to, const void* from, std::size_t bytes) noexcept {
    HF_ASSERT_SLOW(bytes % word_bytes == 0 &&
                   reinterpret_cast<std::uintptr_t>(to) % word_bytes == 0);
    if (d != domain::adr) {
        std::memcpy(to, from, bytes);
        std::atomic_signal_fence(std::memory_order_seq_cst);
        return;
    }
    ++detail::events.nt_stores;
    auto* out = static_cast<long long*>(to);
    const auto* in = static_cast<const std::byte*>(from);
    for (std::size_t i = 0; i < bytes / word_bytes; ++i) {
        long long word;
        std::memcpy(&word, in + i * word_bytes, word_bytes);
        _mm_stream_si64(out + i, word);
    }
    trace(event::nt_store, to, bytes);
}

void store_word(domain d, std::uint64_t* to, std::uint64_t value) noexcept {
    __atomic_store_n(to, value, __ATOMIC_RELEASE);
    trace(event::store, to, sizeof value);
    flush(d, to, sizeof value);
}

} // namespace hf::persist
