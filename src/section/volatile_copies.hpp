// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies of bytes that a section reads, which none of its stores changes.
#pragma once

#include <base/assert.hpp>
#include <base/line.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

namespace hf {

class volatile_copies {
public:
    /// A copy that stays until clear(). Throws std::bad_alloc.
    const void* keep(const void* bytes, std::uint64_t count) {
        std::byte* copy = here_ + used_;
        if (count <= sizeof here_ - used_) used_ += round_up(count, alignof(std::max_align_t));
        else copy = long_.emplace_back(std::make_unique_for_overwrite<std::byte[]>(count)).get();
        HF_ASSERT_SLOW(used_ <= sizeof here_);
        HF_ASSERT_SLOW(reinterpret_cast<std::uintptr_t>(copy) % alignof(std::max_align_t) == 0);
        if (count > 0) std::memcpy(copy, bytes, count);
        return copy;
    }
    /// Whether clear() has next to nothing to do.
    bool few() const noexcept { return long_.empty(); }
    /// The same as clear(). Requires: few().
    void forget_few() noexcept {
        HF_ASSERT_SLOW(few());
        used_ = 0;
    }
    void clear() noexcept {
        used_ = 0;
        if (!long_.empty()) [[unlikely]]
            long_.clear();
    }

private:
    std::size_t used_ = 0;
    std::vector<std::unique_ptr<std::byte[]>> long_; // what here_ has no room for
    alignas(std::max_align_t) std::byte here_[512];
};

} // namespace hf
