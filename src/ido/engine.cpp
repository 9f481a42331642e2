// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// iDO logging, counted. The compiler cuts sections into idempotent regions
// (compiler/analysis/IdempotentRegions.cpp); here each boundary is put down to the thread's
// counters. Nothing is logged and nothing can be recovered: a pool is opened for this build without
// engines.
//
// (1) A section's first record holds its arguments, a boundary's record the registers that the
// region
//     set for later ones; both hold the program counter of the region that begins.
//     Preserved volatile bytes travel with the first.
// (2) A region's stores are written back at its end. They and the registers are durable before the
//     program counter says so: two ordering points a boundary.
// (3) The end of a section makes its last region's stores durable, then clears the program counter.
#include <base/assert.hpp>
#include <base/line.hpp>
#include <log/flush_set.hpp>
#include <open/pool_impl.hpp>
#include <open/registry.hpp>

#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/persist.hpp>

namespace hf::ido {
namespace {

/// What one thread's open section has stored and not yet written back.
struct open_section {
    bool open = false;
    hf::pool::impl* of = nullptr; // the pool of the newest store
    flush_set dirty;

    /// Whether nothing waits to be written back: before a section, and at the start of a region (2).
    bool settled() const noexcept { return dirty.empty() && dirty.valid(); }
};

thread_local open_section current;

medium current_medium() noexcept {
    const pool::impl* pool = current.of != nullptr ? current.of : registry::only_pool();
    return pool == nullptr ? medium() : pool->file->medium();
}

/// Write-backs of a log that is not written: registers have their places, side by side.
void count_log_lines(hf::medium pm, std::uint64_t bytes) noexcept {
    if (pm.loses_caches())
        persist::thread_counters().flushes += (bytes + line_bytes - 1) / line_bytes;
}

/// Ends a region: (2).
void end_region(std::uint64_t output_bytes) noexcept {
    const hf::medium pm = current_medium();
    current.dirty.flush_all(pm);
    count_log_lines(pm, output_bytes);
    pm.fence();
    count_log_lines(pm, word_bytes); // the program counter
    pm.fence();
    HF_ASSERT_SLOW(current.settled()); // upholds (2)
}

void count_record(std::uint64_t output_bytes) noexcept {
    persist::counters& count = persist::thread_counters();
    ++count.log_entries;
    count.log_bytes += output_bytes + word_bytes;
    count.pm_bytes += output_bytes + word_bytes;
}

} // namespace
} // namespace hf::ido

extern "C" {

int hf_ido_begin(const hf_txfunc* function, const void*) noexcept {
    if (hf::ido::current.open) return 0;
    HF_ASSERT_SLOW(function != nullptr);
    HF_ASSERT_SLOW(hf::ido::current.of == nullptr);
    hf::ido::current.open = true;
    hf::ido::count_record(function->args_bytes);
    hf::ido::end_region(function->args_bytes);
    return 1;
}

void hf_ido_commit(void) noexcept {
    HF_ASSERT_SLOW(hf::ido::current.open);
    hf::ido::end_region(0);
    ++hf::persist::thread_counters().sections;
    hf::ido::current.open = false;
    hf::ido::current.of = nullptr;
}

void hf_ido_log(const void* address, std::uint64_t bytes) noexcept {
    auto* pool = hf::registry::pool_of(address);
    if (pool == nullptr) return;
    if (hf::bits_with_sections(pool->engine_bits) != 0)
        hf::fatal(
            "%s: a function built for engine ido, which only counts, stores to a pool that was "
            "opened for engines that recover",
            pool->file->path().c_str());
    hf::ido::current.of = pool;
    hf::ido::current.dirty.add(address, bytes);
    hf::persist::thread_counters().pm_bytes += bytes;
}

void hf_ido_preserve(std::uint64_t bytes) noexcept {
    hf::persist::counters& count = hf::persist::thread_counters();
    count.log_bytes += bytes;
    count.pm_bytes += bytes;
    hf::ido::count_log_lines(hf::ido::current_medium(), bytes);
}

void hf_ido_region(std::uint64_t output_bytes) noexcept {
    HF_ASSERT_SLOW(hf::ido::current.open);
    hf::ido::count_record(output_bytes);
    hf::ido::end_region(output_bytes);
}

} // extern "C"
