// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a section asserts of itself; and what debug builds and the crash checker look for in the
// stores that a program makes between sections (section.hpp, 3).
#include <base/assert.hpp>
#include <base/names.hpp>
#include <section/section.hpp>

namespace hf {

bool section::valid() const noexcept {
    return marks_.valid(turns_ != nullptr) && epoch_ <= marks_.state().epoch;
}

bool section::idle() const noexcept {
    if (!blocks_.empty()) return false;
    // Only while a section commits is one due to others alone (commit_marks.hpp, 3).
    const std::uint64_t due = marks_.state().mark_due.load();
    if (turns_ == nullptr && !marks_.due() && due != 0) return false;
    return valid() && (!marks_.due() || due == epoch_);
}

bool section::running() const noexcept {
    if (function_ == nullptr || protocol_ == nullptr) return false;
    if (!watched() && epoch_ != marks_.state().epoch) return false; // commit_marks.hpp (6)
    return valid() && std::atomic_ref(marks_.header().committed).load() <= epoch_;
}

void section::check_left() const noexcept {
    if (!marks_.due()) return;
    const stored_ranges::range* const changed = left_.changed(base_);
    // Another thread's section may have settled the mark before it stored.
    if (changed == nullptr || marks_.state().settled.load(std::memory_order_acquire) >= epoch_)
        return;
    fatal("%s: a plain store between sections changed offset %#llx, an input that %s (%s) had "
          "overwritten: a power failure would take it back; call hf::settle first",
          pool_->file->path().c_str(), static_cast<unsigned long long>(changed->offset),
          readable_name(function_->name), function_->where);
}

} // namespace hf
