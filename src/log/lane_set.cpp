// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <log/lane_set.hpp>

namespace hf {

void lane_set::store_due_mark(std::uint32_t lane) noexcept {
    const std::uint64_t due = states_[lane].mark_due.load(std::memory_order_acquire);
    if (due == 0) return;
    lane_header* const header = lane_at(file_, lane);
    std::atomic_ref committed(header->committed);
    std::uint64_t seen = committed.load(std::memory_order_relaxed);
    while (seen < due && !committed.compare_exchange_weak(seen, due, std::memory_order_release)) {}
    HF_ASSERT_SLOW(committed.load() >= due);
    file_.medium().flush(header, sizeof *header);
    states_[lane].settled.store(due, std::memory_order_release);
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
