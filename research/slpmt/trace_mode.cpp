// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <base/line.hpp>
#include <slpmt/trace_mode.hpp>

#include <holdfast/abi/trace_abi.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace hf::slpmt {
namespace {
trace_mode_recorder* recording = nullptr;
}

trace_mode_recorder::trace_mode_recorder(std::span<std::byte> arena) : arena_(arena) {
    HF_ASSERT(recording == nullptr);
    HF_ASSERT(reinterpret_cast<std::uintptr_t>(arena.data()) % line_bytes == 0);
    made_.where.bytes = round_up(made_.where.heap() + arena.size(), 4096);
    recording = this;
    hf_trace_watched = {reinterpret_cast<std::uintptr_t>(arena.data()), arena.size()};
}

trace_mode_recorder::~trace_mode_recorder() {
    hf_trace_watched = {};
    recording = nullptr;
}

recorded trace_mode_recorder::take() {
    made_.add({event_kind::stop});
    for (int i = 0; i < 4; ++i) { // everything lazy becomes durable, and is counted
        begin();
        commit();
    }
    return std::exchange(made_, recorded{made_.where, {}, {}});
}

/// Calls 'visit(offset in the simulated memory, place)' for each word that the bytes touch.
template <class Visit>
void trace_mode_recorder::for_each_word(const void* address, std::uint64_t bytes, Visit visit) {
    // Ranges may begin and end outside (trace_abi.h, 4).
    const auto base = reinterpret_cast<std::uintptr_t>(arena_.data());
    const auto from = reinterpret_cast<std::uintptr_t>(address);
    const std::uintptr_t first = std::max(from, base) - base;
    const std::uintptr_t end = std::min(from + bytes, base + arena_.size()) - base;
    for (std::uintptr_t at = round_down(first, word_bytes); at < end; at += word_bytes)
        visit(made_.where.heap() + at, arena_.data() + at);
}

void trace_mode_recorder::load(const void* address, std::uint64_t bytes) {
    for_each_word(address, bytes, [&](std::uint64_t offset, const std::byte*) {
        made_.add({event_kind::load, {}, offset, 0});
    });
}

/// The new bytes are in memory already (trace_abi.h, 2); of a word that is stored to in part, the
/// others are, too.
void trace_mode_recorder::store(const void* address, std::uint64_t bytes) {
    for_each_word(address, bytes, [&](std::uint64_t offset, const std::byte* at) {
        std::uint64_t value = 0;
        std::memcpy(&value, at, sizeof value);
        made_.add({event_kind::store, eager_logged, offset, value});
    });
}

} // namespace hf::slpmt

extern "C" {

struct hf_trace_region hf_trace_watched = {};

void hf_trace_load(const void* address, std::uint64_t bytes) {
    if (hf::slpmt::recording != nullptr) hf::slpmt::recording->load(address, bytes);
}
void hf_trace_store(const void* address, std::uint64_t bytes) {
    if (hf::slpmt::recording != nullptr) hf::slpmt::recording->store(address, bytes);
}
void hf_trace_rmw(const void* address, std::uint64_t bytes) { hf_trace_store(address, bytes); }
void hf_trace_nt_store(const void* address, std::uint64_t bytes) { hf_trace_store(address, bytes); }
// The simulated machine writes back by itself, and orders what it must.
void hf_trace_turn(const void*, std::uint64_t) {}
void hf_trace_flush(const void*, std::uint64_t) {}
void hf_trace_clflush(const void*, std::uint64_t) {}
void hf_trace_fence() {}

} // extern "C"
