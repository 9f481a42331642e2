// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stores that need no log, by the program's word, and those that need not be durable at the commit either.
#include <base/assert.hpp>
#include <section/section.hpp>
#include <section/thread.hpp>

#include <memory>

namespace hf {

/// False: there is nothing to note.
bool section::may_store_unlogged(std::uint64_t offset, std::uint64_t bytes) {
    if (offset == outside || bytes == 0) return false;
    if (bytes > pool_->file->shape().max_bytes - offset)
        fatal("%s (%s) stores %llu bytes across the end of the pool", function_->name,
              function_->where, static_cast<unsigned long long>(bytes));
    if (marks_.due() && unfenced_) fence(); // upholds (section.hpp, 12)
    return true;
}

void section::note_log_free(const void* address, std::uint64_t bytes) {
    HF_ASSERT_SLOW(running());
    if (may_store_unlogged(checked_offset(address, bytes), bytes)) will_store(address, bytes);
}

void section::note_lazy(const void* address, std::uint64_t bytes) {
    HF_ASSERT_SLOW(running());
    if (!pool_->file->stores_lazily()) return log_old_bytes(address, bytes);
    const std::uint64_t offset = checked_offset(address, bytes);
    if (!may_store_unlogged(offset, bytes)) return;
    // Bytes with a sum are durable when the section is (5), and so is what recovery may read (13).
    if (medium_.keeps_order() || prepared_.in_filled(offset, bytes) || pool_->runs_again)
        return will_store(address, bytes);
    persist::thread_counters().pm_bytes += bytes;
    trace::announce(trace::store, address, bytes);
    std::unique_ptr<flush_set>& lazy_lines = marks_.state().lazy_lines;
    if (lazy_lines == nullptr) lazy_lines = std::make_unique<flush_set>();
    lazy_lines->add(address, bytes);
}

} // namespace hf
