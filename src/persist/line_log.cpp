// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <base/line.hpp>
#include <persist/line_log.hpp>
#include <trace/trace.hpp>

#include <cstring>

namespace hf {

constinit thread_local line_log* line_log::of_section = nullptr;

namespace persist {
namespace {

struct open_group {
    line_log* of = nullptr;
    unsigned depth = 0;
    bool fenced = false;
};
constinit thread_local open_group group{};

} // namespace

void flush(line_log& to, const void* address, std::size_t bytes) noexcept {
    if (bytes == 0) return;
    const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(address) + bytes;
    detail::events.flushes += (end - line_of(address) + line_bytes - 1) / line_bytes;
    to.note(address, bytes);
    trace::announce(trace::flush, address, bytes);
}

void fence(line_log& to, bool promises) noexcept {
    ++detail::events.ordering_points;
    ++detail::events.fences;
    to.order();
    trace::announce(trace::fence, nullptr, 0);
    if (group.of == &to) group.fenced = true;
    else if (promises) to.wait();
}

void copy(line_log& log, void* to, const void* from, std::size_t bytes) noexcept {
    HF_ASSERT_SLOW(bytes % word_bytes == 0 &&
                   reinterpret_cast<std::uintptr_t>(to) % word_bytes == 0);
    ++detail::events.nt_stores;
    std::memcpy(to, from, bytes);
    if (bytes != 0) log.note(to, bytes);
    trace::announce(trace::nt_store, to, bytes);
}

void store_word(line_log& log, std::uint64_t* to, std::uint64_t value) noexcept {
    __atomic_store_n(to, value, __ATOMIC_RELEASE);
    trace::announce(trace::store, to, sizeof value);
    flush(log, to, sizeof value);
}

void ended(line_log& in, std::uint64_t lines) noexcept {
    detail::events.flushes += lines;
    ++detail::events.ordering_points;
    ++detail::events.fences;
    if (group.of == &in) group.fenced = true;
    else in.wait();
}

void begin_group(line_log& of) noexcept {
    if (group.depth == 0) group = {&of, 0, false};
    if (group.of == &of) ++group.depth;
}

void end_group(line_log& of) noexcept {
    if (group.of != &of) return;
    HF_ASSERT(group.depth > 0);
    if (--group.depth > 0) return;
    const bool fenced = group.fenced;
    group = {};
    if (fenced) of.wait();
}

void forget_group() noexcept {
    group = {};
    line_log::forget_section();
}

bool in_group(const line_log& of) noexcept { return group.of == &of; }

} // namespace persist
} // namespace hf
