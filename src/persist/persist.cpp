// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The only code with flush, fence and non-temporal instructions.
//
// (1) In the process domain nothing is flushed or fenced: the mapped file outlives the process, and
//     x86 makes stores visible in program order; a compiler barrier keeps that order.
// (2) In the eADR domain an sfence orders; caches are inside the domain, so nothing is flushed.
// (3) In the ADR domain a line is durable once flushed (or stored non-temporally) and then fenced.
// (4) A latency model only makes fences longer: the instructions are the same with it and without.
#include <base/assert.hpp>
#include <base/line.hpp>
#include <base/words.hpp>
#include <trace/trace.hpp>

#include <holdfast/author/persist.hpp>

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

// Small records, which have just been put together. What is longer has waited for long.
constexpr std::size_t copied_by_words = 256;

// The latency model in the processor's ticks, and the lines that the thread's next fence waits for.
// Only looked at where a model is installed.
struct modelled_ticks {
    double first_line = 0;
    double further_line = 0;
};
modelled_ticks model;
struct waited_for {
    std::uint64_t flushes_before; // of events.flushes: those an earlier fence waited for
    std::uint64_t nt_lines;
};
constinit thread_local waited_for waiting{};

std::uint64_t lines_in(const void* address, std::size_t bytes) noexcept {
    const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(address) + bytes;
    return (end - line_of(address) + line_bytes - 1) / line_bytes;
}

__attribute__((noinline, cold)) void fence_as_modelled() noexcept {
    const std::uint64_t lines = detail::events.flushes - waiting.flushes_before + waiting.nt_lines;
    const std::uint64_t begun = __rdtsc();
    _mm_sfence();
    detail::wait_as_modelled(lines, begun);
    waiting = {detail::events.flushes, 0};
}

double ticks_per_ns() noexcept {
    const auto start = std::chrono::steady_clock::now();
    const std::uint64_t first = __rdtsc();
    std::chrono::duration<double, std::nano> passed{};
    do passed = std::chrono::steady_clock::now() - start;
    while (passed < std::chrono::milliseconds(20));
    return static_cast<double>(__rdtsc() - first) / passed.count();
}

} // namespace

constinit thread_local counters detail::events{};

std::uint64_t detail::ticks() noexcept { return __rdtsc(); }

void detail::wait_as_modelled(std::uint64_t lines, std::uint64_t begun) noexcept {
    if (lines == 0 || model.first_line == 0) return;
    const double ticks = model.first_line + static_cast<double>(lines - 1) * model.further_line;
    while (__rdtsc() - begun < static_cast<std::uint64_t>(ticks)) _mm_pause();
}

void set_latency_model(const latency_model& given) noexcept {
    const double scale = given.first_line_ns == 0 ? 0 : ticks_per_ns();
    model = {given.first_line_ns * scale, given.further_line_ns * scale};
}

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
    trace::announce(trace::flush, address, bytes);
}

void fence(domain d) noexcept {
    ++detail::events.ordering_points;
    if (d == domain::process) {
        std::atomic_signal_fence(std::memory_order_seq_cst); // upholds (1)
        return;
    }
    ++detail::events.fences;
    if (model.first_line != 0) [[unlikely]]
        fence_as_modelled();
    else _mm_sfence();
    trace::announce(trace::fence, nullptr, 0);
}

void persist(domain d, const void* address, std::size_t bytes) noexcept {
    flush(d, address, bytes);
    fence(d);
}

void copy(domain d, void* to, const void* from, std::size_t bytes) noexcept {
    HF_ASSERT_SLOW(bytes % word_bytes == 0 &&
                   reinterpret_cast<std::uintptr_t>(to) % word_bytes == 0);
    if (d != domain::adr) {
        if (bytes <= copied_by_words) copy_words(to, from, bytes);
        else std::memcpy(to, from, bytes);
        std::atomic_signal_fence(std::memory_order_seq_cst);
        return;
    }
    ++detail::events.nt_stores;
    if (model.first_line != 0) [[unlikely]]
        waiting.nt_lines += lines_in(to, bytes);
    auto* out = static_cast<long long*>(to);
    const auto* in = static_cast<const std::byte*>(from);
    for (std::size_t i = 0; i < bytes / word_bytes; ++i) {
        long long word;
        std::memcpy(&word, in + i * word_bytes, word_bytes);
        _mm_stream_si64(out + i, word);
    }
    trace::announce(trace::nt_store, to, bytes);
}

void store_word(domain d, std::uint64_t* to, std::uint64_t value) noexcept {
    __atomic_store_n(to, value, __ATOMIC_RELEASE);
    trace::announce(trace::store, to, sizeof value);
    flush(d, to, sizeof value);
}

} // namespace hf::persist
