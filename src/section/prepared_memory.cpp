// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/checksum.hpp>
#include <section/prepared_memory.hpp>

namespace hf {

namespace {
constexpr std::size_t filled_max = 16; // sums in one section's log
}

void prepared_memory::note_filled(hf::medium pm, std::uint64_t offset, std::uint64_t bytes,
                                  std::uint64_t sum) {
    if (filled_.size() == filled_max) { // durable, they need no sum
        pm.fence();
        filled_.clear();
    }
    // Bytes filled in twice have the sum of neither: the first ones wait for no fence any more.
    if (in_filled(offset, bytes)) {
        pm.fence();
        filled_.clear();
    }
    filled_.push_back({offset, {bytes, sum}, persist::thread_counters().fences});
}

/// Such a fence (hf::staged::persist, hf::persist …) made durable whatever was stored there before
/// it, too.
void prepared_memory::forget_durable() {
    std::erase_if(filled_, [now = persist::thread_counters().fences](const filled_bytes& f) {
        return f.fences != now;
    });
}

void prepared_memory::forget_filled(block inside) noexcept {
    std::erase_if(filled_, [&](const filled_bytes& f) { return f.lies_in(inside); });
}

void prepared_memory::check(const pool_file& file) const noexcept {
    for (const filled_bytes& f : filled_)
        if (f.what.sum != XXH3_64bits(file.base() + f.offset, f.what.bytes))
            fatal("%s: a plain store changed offset %#llx after hf::staged::copy_words or "
                  "note_written: a power failure would take back the section that follows; "
                  "persist it before",
                  file.path().c_str(), static_cast<unsigned long long>(f.offset));
}

} // namespace hf
