// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "needed.hpp"

#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/abi/trace_abi.h>

#include <cstddef>
#include <map>

namespace hf::bench::plain {
namespace {

constexpr std::uint64_t word_bytes = 8;

/// The section's accesses to a word: a bit for each of its bytes.
struct word {
    std::uint8_t own = 0; // allocated by the section
    std::uint8_t input = 0, written = 0, logged = 0, needed = 0;
};

needs counted;
std::map<std::uint64_t, word> words; // by address / 8: in order, so that neighbours are
bool in_section = false;

/// Calls 'use(word, bits)' for each word of the range.
template <class Use> void for_words(const void* address, std::uint64_t bytes, Use use) {
    const auto begin = reinterpret_cast<std::uintptr_t>(address), end = begin + bytes;
    for (std::uint64_t w = begin / word_bytes; w * word_bytes < end; ++w) {
        unsigned bits = 0;
        for (unsigned i = 0; i < word_bytes; ++i)
            if (w * word_bytes + i >= begin && w * word_bytes + i < end) bits |= 1U << i;
        use(words[w], static_cast<std::uint8_t>(bits));
    }
}

void load(const void* address, std::uint64_t bytes) {
    for_words(address, bytes, [](word& w, std::uint8_t bits) {
        w.input |= bits & static_cast<std::uint8_t>(~(w.own | w.written));
    });
}

void store(const void* address, std::uint64_t bytes) {
    bool outside = false;
    for_words(address, bytes, [&](word& w, std::uint8_t bits) {
        const auto first = static_cast<std::uint8_t>(bits & ~w.written);
        const auto clobbered = static_cast<std::uint8_t>(first & w.input);
        outside |= (bits & ~w.own) != 0;
        w.needed |= clobbered;
        w.written |= bits;
        counted.missing += static_cast<unsigned>(__builtin_popcount(clobbered & ~w.logged));
    });
    counted.stores += outside;
}

bool in_pool(const void* address) {
    return reinterpret_cast<std::uintptr_t>(address) - hf_trace_watched.begin <
           hf_trace_watched.bytes;
}

/// An entry is of the section's own memory, or not, by where it begins; of volatile memory there is
/// none: as the runtime has it.
void log(const void* address, std::uint64_t bytes) {
    if (!in_pool(address)) return;
    bool first = true, own = false, news = false;
    for_words(address, bytes, [&](word& w, std::uint8_t bits) {
        if (first) own = (bits & w.own) != 0;
        first = false;
        if (own) return;
        news |= (bits & ~w.logged) != 0;
        w.logged |= bits;
    });
    counted.entries += news;
}

void end_section() {
    std::uint64_t last_needed = 0;
    for (const auto& [at, w] : words) {
        counted.unstored += static_cast<unsigned>(__builtin_popcount(w.logged & ~w.written));
        counted.overwritten += (w.written & ~w.own) != 0;
        counted.logged += w.logged != 0;
        if (w.needed == 0) continue;
        ++counted.needed;
        counted.needed_entries += at != last_needed + 1;
        last_needed = at;
    }
    ++counted.sections;
    words.clear();
    in_section = false;
}

} // namespace

const needs& thread_needs() noexcept { return counted; }

} // namespace hf::bench::plain

using namespace hf::bench::plain;

extern "C" {

int __real_hf_clobber_begin(const hf_txfunc* function, const void* packed_args) noexcept;
void __real_hf_clobber_commit() noexcept;
void __real_hf_clobber_log(const void* address, std::uint64_t bytes) noexcept;
void __real_hf_log_ahead(const void* address, std::uint64_t bytes) noexcept;
void* __real_hf_alloc(std::size_t bytes) noexcept;

int __wrap_hf_clobber_begin(const hf_txfunc* function, const void* packed_args) noexcept {
    const int opened = __real_hf_clobber_begin(function, packed_args);
    if (opened != 0) in_section = true;
    return opened;
}
void __wrap_hf_clobber_commit() noexcept {
    end_section();
    __real_hf_clobber_commit();
}
void __wrap_hf_clobber_log(const void* address, std::uint64_t bytes) noexcept {
    log(address, bytes);
    __real_hf_clobber_log(address, bytes);
}
void __wrap_hf_log_ahead(const void* address, std::uint64_t bytes) noexcept {
    log(address, bytes);
    __real_hf_log_ahead(address, bytes);
}
void* __wrap_hf_alloc(std::size_t bytes) noexcept {
    void* block = __real_hf_alloc(bytes);
    if (block != nullptr && in_section)
        for_words(block, bytes, [](word& w, std::uint8_t bits) { w.own |= bits; });
    return block;
}

// The address range of pools (docs/internals/design.md): volatile memory is of no interest.
alignas(64) hf_trace_region hf_trace_watched = {0x570000000000, 0x030000000000};
void hf_trace_load(const void* address, std::uint64_t bytes) {
    if (in_section) load(address, bytes);
}
void hf_trace_store(const void* address, std::uint64_t bytes) {
    if (in_section) store(address, bytes);
}
void hf_trace_nt_store(const void* address, std::uint64_t bytes) { hf_trace_store(address, bytes); }
// A section has no atomic access, and what it writes back and waits for is the runtime's.
void hf_trace_rmw(const void*, std::uint64_t) {}
void hf_trace_turn(const void*, std::uint64_t) {}
void hf_trace_flush(const void*, std::uint64_t) {}
void hf_trace_clflush(const void*, std::uint64_t) {}
void hf_trace_fence() {}

} // extern "C"
