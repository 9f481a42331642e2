// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <log/lane_set.hpp>

#include <algorithm>

namespace hf {

/// Makes durable what the section whose mark is due has left to the next fence. Where its lane's owner has
/// gone on meanwhile, and lines of a later section are read here, that has passed such a fence.
void lane_set::flush_unfenced(std::uint32_t lane) noexcept {
    const lane_state& state = states_[lane];
    const std::uint32_t lines = state.unfenced.load(std::memory_order_relaxed);
    if (lines == 0) return;
    const hf::medium pm = file_.medium();
    for (std::uint32_t i = 0; i < std::min(lines, lane_state::unfenced_max); ++i)
        pm.flush(
            reinterpret_cast<const void*>(state.unfenced_lines[i].load(std::memory_order_relaxed)),
            line_bytes);
    pm.fence(); // before the mark can be durable
}

void lane_set::store_due_mark(std::uint32_t lane) noexcept {
    const std::uint64_t due = states_[lane].mark_due.load(std::memory_order_acquire);
    if (due == 0) return;
    flush_unfenced(lane);
    lane_header* const header = lane_at(file_, lane);
    std::atomic_ref committed(header->committed);
    std::uint64_t seen = committed.load(std::memory_order_relaxed);
    while (seen < due && !committed.compare_exchange_weak(seen, due, std::memory_order_release)) {}
    HF_ASSERT_SLOW(committed.load() >= due);
    file_.medium().flush(header, sizeof *header);
    states_[lane].settled.store(due, std::memory_order_release);
}

void lane_set::settle_sums_of(const void* lock, std::uint32_t lane) noexcept {
    const lane_state& state = states_[lane];
    const auto at = reinterpret_cast<std::uintptr_t>(lock);
    if (at < state.summed_first.load(std::memory_order_relaxed) ||
        at >= state.summed_end.load(std::memory_order_relaxed))
        return;
    store_due_mark(lane);
    file_.medium().fence();
}

bool lane_set::valid() const noexcept {
    const std::uint32_t its = lazy.load();
    if (its != no_lane && its >= size()) return false;
    for (std::uint32_t l = 0; l < size(); ++l)
        if (l != its && states_[l].mark_due.load() != 0) return false;
    return true;
}

std::uint32_t lane_set::in_section() noexcept {
    std::scoped_lock held{lock};
    for (std::uint32_t l = 0; l < size(); ++l)
        if (states_[l].taken && lane_at(file_, l)->committed != states_[l].epoch) {
            HF_ASSERT_SLOW(lane_at(file_, l)->committed < states_[l].epoch);
            return l;
        }
    return no_lane;
}

} // namespace hf
