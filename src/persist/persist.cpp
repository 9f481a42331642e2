// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The only code that calls flush, fence and non-temporal instructions (processor.hpp).
//
// (1) In the process domain nothing is flushed or waited for. The mapped file outlives the process.
//     A killed thread has made its stores up to an instruction, and none behind it, on every
//     processor; the compiler must keep their order (docs/internals/persistency-model.md).
// (2) In the eADR domain a fence orders; caches are inside the domain, so nothing is flushed.
// (3) In the ADR domain a line is durable once flushed (or stored non-temporally) and then fenced.
// (4) A latency model only makes fences longer: the instructions are the same with it and without.
#include <base/assert.hpp>
#include <base/line.hpp>
#include <base/words.hpp>
#include <persist/order.hpp>
#include <persist/processor.hpp>
#include <trace/trace.hpp>

#include <holdfast/author/persist.hpp>

#include <chrono>
#include <cstring>

namespace hf::persist {
namespace {

const processor::write_back instruction = processor::detected();

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
    const std::uint64_t begun = processor::ticks();
    processor::wait_for_stores();
    detail::wait_as_modelled(lines, begun);
    waiting = {detail::events.flushes, 0};
}

double ticks_per_ns() noexcept {
    const auto start = std::chrono::steady_clock::now();
    const std::uint64_t first = processor::ticks();
    std::chrono::duration<double, std::nano> passed{};
    do passed = std::chrono::steady_clock::now() - start;
    while (passed < std::chrono::milliseconds(20));
    return static_cast<double>(processor::ticks() - first) / passed.count();
}

} // namespace

constinit thread_local counters detail::events{};

std::uint64_t detail::ticks() noexcept { return processor::ticks(); }

void detail::wait_as_modelled(std::uint64_t lines, std::uint64_t begun) noexcept {
    if (lines == 0 || model.first_line == 0) return;
    const double ticks = model.first_line + static_cast<double>(lines - 1) * model.further_line;
    while (processor::ticks() - begun < static_cast<std::uint64_t>(ticks)) processor::pause();
}

void set_latency_model(const latency_model& given) noexcept {
    const double scale = given.first_line_ns == 0 ? 0 : ticks_per_ns();
    model = {given.first_line_ns * scale, given.further_line_ns * scale};
}

const char* flush_instruction() noexcept { return processor::name(instruction); }

void flush(domain d, const void* address, std::size_t bytes) noexcept {
    if (d != domain::adr || bytes == 0) return;
    const std::uintptr_t first = line_of(address);
    const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(address) + bytes;
    detail::events.flushes += (end - first + line_bytes - 1) / line_bytes;
    processor::write_back_lines(instruction, first, end);
    trace::announce(trace::flush, address, bytes);
}

void fence(domain d) noexcept {
    ++detail::events.ordering_points;
    if (d == domain::process) {
        order_stores(); // upholds (1)
        return;
    }
    ++detail::events.fences;
    if (model.first_line != 0) [[unlikely]]
        fence_as_modelled();
    else processor::wait_for_stores();
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
        order_stores();
        return;
    }
    ++detail::events.nt_stores;
    if (model.first_line != 0) [[unlikely]]
        waiting.nt_lines += lines_in(to, bytes);
    processor::copy_past_caches(instruction, to, from, bytes);
    trace::announce(trace::nt_store, to, bytes);
}

void store_word(domain d, std::uint64_t* to, std::uint64_t value) noexcept {
    __atomic_store_n(to, value, __ATOMIC_RELEASE);
    trace::announce(trace::store, to, sizeof value);
    flush(d, to, sizeof value);
}

} // namespace hf::persist
