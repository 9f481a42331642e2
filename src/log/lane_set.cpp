// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <base/raise.hpp>
#include <log/lane_set.hpp>

namespace hf {

void lane_set::store_due_mark(std::uint32_t lane) noexcept {
    lane_state& state = states_[lane];
    if (!is_due(lane)) return;
    const std::uint64_t due = state.mark_due.load(std::memory_order_acquire);
    const hf::medium pm = file_.medium();
    lane_header* const header = lane_at(file_, lane);
    if (state.settled.load(std::memory_order_acquire) < due) {
        // Flushes what the section has left to the next fence. If its lane's owner has begun
        // another section meanwhile, lines of that one may be read here: it has passed such a
        // fence.
        if (state.left[due % 2].flush(pm)) pm.fence(); // before the mark can be durable
        std::atomic_ref committed(header->committed);
        raise(committed, due);
    }
    HF_ASSERT_SLOW(std::atomic_ref(header->committed).load() >= due);
    pm.flush(header, sizeof *header);
    raise(state.settled, due);
}

void lane_set::settle(std::uint32_t lane) noexcept {
    if (!is_due(lane)) return;
    const std::uint64_t due = states_[lane].mark_due.load(std::memory_order_acquire);
    store_due_mark(lane);
    file_.medium().fence();
    raise(states_[lane].durable, due);
}

void lane_set::note_deferring(std::uint32_t lane) noexcept { raise(deferring_, lane + 1); }

bool lane_set::valid() const noexcept {
    const std::uint32_t its = leaves_out.load();
    if (its != no_lane && its >= size()) return false;
    for (std::uint32_t l = 0; l < size(); ++l)
        if (l != its && l >= deferring() && states_[l].mark_due.load() != 0) return false;
    return true;
}

std::uint32_t lane_set::in_section() noexcept {
    std::scoped_lock held{lock};
    for (std::uint32_t l = 0; l < size(); ++l) {
        const lane_header& header = *lane_at(file_, l);
        HF_ASSERT_SLOW(!states_[l].taken || header.committed <= states_[l].epoch);
        // A section that logs words has no epoch of its own.
        const bool open = header.committed != states_[l].epoch ||
                          std::atomic_ref(header.logged).load(std::memory_order_acquire) != 0;
        if (states_[l].taken && open) return l;
    }
    return no_lane;
}

} // namespace hf
