// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a section asserts of itself; and what debug builds and the crash checker look for in the stores that
// a program makes between sections (section.hpp, 5).
#include <base/assert.hpp>
#include <base/names.hpp>
#include <section/section.hpp>

namespace hf {

bool section::valid() const noexcept {
    // A mark that waits is this lane's, of the last section of it that has committed (4).
    if (turns_ == nullptr && mark_due_ && state_->mark_due.load() == 0) return false;
    if (mark_due_ && (turns_ != nullptr || medium_.keeps_order())) return false;
    if (!freed_.empty() && !mark_due_) return false; // (3)
    return epoch_ <= state_->epoch && state_->valid();
}

bool section::idle() const noexcept {
    if (!blocks_.empty() || !dirty_.empty()) return false;
    // Only while a section commits is one due to others alone (9).
    if (turns_ == nullptr && !mark_due_ && state_->mark_due.load() != 0) return false;
    return valid() && (!mark_due_ || state_->mark_due.load() == epoch_);
}

bool section::running() const noexcept {
    if (function_ == nullptr || engine_ == nullptr || (log_begun_ && !log_.valid())) return false;
    if (!log_begun_ && !buffered()) return false;                               // (8)
    if (first_ == nullptr && epoch_ != state_->epoch) return false;             // (6)
    if (keeping_ && engine_->sections != engine_sections::inputs) return false; // (7)
    return valid() && std::atomic_ref(header_->committed).load() < epoch_;
}

/// Sums up what the section left of its inputs that it overwrote. Not of fresh memory: there may be
/// locks in it, which change between sections; but of a section that leaves its stores, which is settled then.
std::uint64_t section::remember_left() noexcept { return left_.sum_up(epoch_, base_); }

void section::check_left() const noexcept {
    if (!mark_due_) return;
    const stored_ranges::range* const changed = left_.changed(base_);
    // Another thread's section may have settled the mark before it stored.
    if (changed == nullptr || state_->settled.load(std::memory_order_acquire) >= epoch_) return;
    fatal("%s: a plain store between sections changed offset %#llx, an input that %s (%s) had "
          "overwritten: "
          "a power failure would take it back; call hf::settle first",
          pool_->file->path().c_str(), static_cast<unsigned long long>(changed->offset),
          readable_name(function_->name), function_->where);
}

} // namespace hf
