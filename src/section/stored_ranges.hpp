// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranges that a section has stored to, and their sums. By these a later look finds what has changed
// since.
#pragma once

#include <base/checksum.hpp>
#include <log/lane.hpp>

#include <cstdint>
#include <vector>

namespace hf {

class stored_ranges {
public:
    struct range {
        std::uint64_t offset;
        std::uint64_t bytes;
        std::uint64_t sum;
    };

    /// A section begins; 'wanted': by somebody.
    void start(bool wanted) noexcept {
        wanted_ = wanted;
        all_.clear();
    }
    /// It is, by one more. Before the first add().
    void want() noexcept { wanted_ = true; }
    void add(std::uint64_t offset, std::uint64_t bytes) {
        if (wanted_) [[unlikely]]
            all_.push_back({offset, bytes, 0});
    }
    /// Takes the sums as they are now; returns the sum of all (sum_of_stores).
    std::uint64_t sum_up(std::uint64_t epoch, const std::byte* base) noexcept {
        sum_of_stores all(epoch);
        for (range& r : all_) r.sum = all.add(base + r.offset, r.bytes);
        return all.sum();
    }
    /// One that has changed since; null: none has.
    const range* changed(const std::byte* base) const noexcept {
        for (const range& r : all_)
            if (r.sum != XXH3_64bits(base + r.offset, r.bytes)) return &r;
        return nullptr;
    }
    auto begin() const noexcept { return all_.begin(); }
    auto end() const noexcept { return all_.end(); }

private:
    bool wanted_ = false;
    std::vector<range> all_;
};

} // namespace hf
