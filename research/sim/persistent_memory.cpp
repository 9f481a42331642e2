// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <sim/persistent_memory.hpp>

#include <algorithm>
#include <cstring>

namespace hf::sim {

persistent_memory::persistent_memory(const memory_parameters& how, std::uint64_t bytes)
    : read_(how.read_ns * ticks_per_ns), media_(how.write_ns * ticks_per_ns),
      accept_(how.accept_ns * ticks_per_ns), lines_per_bank_(how.interleave_bytes / line_bytes),
      durable_(bytes), wear_(bytes / line_bytes), released_(how.queue_lines), idle_(how.banks) {
    HF_ASSERT(bytes % line_bytes == 0 && lines_per_bank_ > 0);
    HF_ASSERT(how.queue_lines > 0 && how.banks > 0);
}

void persistent_memory::preset(std::span<const std::byte> image) {
    HF_ASSERT(image.size() == durable_.size());
    std::ranges::copy(image, durable_.begin());
}

ticks persistent_memory::write(std::uint64_t line, const std::byte* bytes, ticks at) {
    HF_ASSERT(line < wear_.size());
    const auto entry = std::ranges::min_element(released_);
    accepted_ = std::max({at, *entry, accepted_}) + accept_;
    ticks& bank = idle_[line / lines_per_bank_ % idle_.size()];
    bank = std::max(accepted_, bank) + media_;                           // upholds (3)
    *entry = bank;                                                       // upholds (2)
    std::memcpy(durable_.data() + line * line_bytes, bytes, line_bytes); // upholds (1)
    ++lines_written_;
    ++wear_[line];
    if (observer_) observer_();
    return accepted_;
}

} // namespace hf::sim
