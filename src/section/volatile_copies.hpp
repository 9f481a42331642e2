// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies of bytes that a section reads, which none of its stores changes.
#pragma once

#include <base/assert.hpp>
#include <base/line.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

namespace hf {

class volatile_copies {
public:
    /// A copy that stays until forget(). Throws std::bad_alloc.
    const void* keep(const void* bytes, std::uint64_t count) {
        if (used_ == 0) long_.clear();
        std::byte* copy = here_ + used_;
        if (count <= sizeof here_ - used_) used_ += round_up(count, alignof(std::max_align_t));
        else copy = keep_long(count);
        HF_ASSERT_SLOW(used_ <= sizeof here_);
        HF_ASSERT_SLOW(reinterpret_cast<std::uintptr_t>(copy) % alignof(std::max_align_t) == 0);
        if (count > 0) std::memcpy(copy, bytes, count);
        return copy;
    }
    /// Memory that a long one takes is free with the next one.
    void forget() noexcept { used_ = 0; }

private:
    std::byte* keep_long(std::uint64_t count) {
        std::byte* const copy =
            long_.emplace_back(std::make_unique_for_overwrite<std::byte[]>(count)).get();
        used_ = std::max(used_, alignof(std::max_align_t)); // there is one
        return copy;
    }

    std::size_t used_ = 0;                           // of here_; 0: there is no copy
    std::vector<std::unique_ptr<std::byte[]>> long_; // what here_ has no room for
    alignas(std::max_align_t) std::byte here_[512];
};

} // namespace hf
