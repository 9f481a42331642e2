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
    return epoch_ <= state_->epoch && state_->valid() && keep_here_used_ <= sizeof keep_here_;
}

bool section::idle() const noexcept {
    if (!allocs_.empty() || !adopted_.empty() || !frees_.empty() || !unused_.empty()) return false;
    if (!unadopted_.empty() || !segments_.empty() || !dirty_.empty()) return false;
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
std::uint64_t section::remember_left() noexcept {
    sum_of_stores all(epoch_);
    for (left_bytes& l : left_) l.sum = all.add(base_ + l.offset, l.bytes);
    return all.sum();
}

void section::check_left() const noexcept {
    if (!mark_due_) return;
    for (const left_bytes& l : left_) {
        if (l.sum == XXH3_64bits(base_ + l.offset, l.bytes)) continue;
        // Another thread's section has settled the mark before it stored.
        if (state_->settled.load(std::memory_order_acquire) >= epoch_) return;
        fatal("%s: a plain store between sections changed offset %#llx, an input that %s (%s) had "
              "overwritten: "
              "a power failure would take it back; call hf::settle first",
              pool_->file->path().c_str(), static_cast<unsigned long long>(l.offset),
              readable_name(function_->name), function_->where);
    }
}

void section::check_filled() const noexcept {
    for (const filled_bytes& f : filled_)
        if (f.what.sum != XXH3_64bits(base_ + f.offset, f.what.bytes))
            fatal("%s: a plain store changed offset %#llx after hf::stage_words or stage_written: "
                  "a power failure would undo the section that follows; persist it before",
                  pool_->file->path().c_str(), static_cast<unsigned long long>(f.offset));
}

} // namespace hf
