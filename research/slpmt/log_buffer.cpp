// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <slpmt/log_buffer.hpp>

#include <algorithm>

namespace hf::slpmt {

static_assert(record_bytes(0) == 16 && record_bytes(1) == 24 && record_bytes(2) == 40 &&
              record_bytes(3) == 72);
static_assert(tier_lines(0) == 2 && tier_lines(1) == 3 && tier_lines(2) == 5 && tier_lines(3) == 9);

record* log_buffer::covering(std::uint64_t word) {
    record* youngest = nullptr;
    for (auto& tier : tier_)
        for (record& one : tier)
            if (one.covers(word) && (youngest == nullptr || one.order > youngest->order))
                youngest = &one;
    return youngest;
}

record log_buffer::joined(const record& a, const record& b) {
    const record& low = a.word < b.word ? a : b;
    const record& high = a.word < b.word ? b : a;
    record both = low;
    std::copy_n(high.values.begin(), high.words(), both.values.begin() + low.words());
    both.order = std::max(a.order, b.order);
    return both; // its tier is the next one's when add() has counted on
}

} // namespace hf::slpmt
