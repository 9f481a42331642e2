// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A persistent class (simpo_readings.cpp). docs/guide/simpo.md is cut from it, and holdfast
// classify makes histogram_calls.hpp of it.
#pragma once

#include <holdfast/simpo.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

// [class]
class histogram {
public:
    static constexpr hf::simpo::class_name simpo_class{"histogram", 1};

    void count(double reading) noexcept {            // returns nothing: can be deferred
        cells_[place_of(reading)] += 1;
        ++count_;
    }
    std::uint64_t clear() noexcept {                 // returns something: instant
        const std::uint64_t had = count_;
        cells_ = {};
        count_ = 0;
        return had;
    }
    std::uint64_t readings() const { return count_; } // changes nothing: not logged at all

private:
    static std::size_t place_of(double reading) noexcept {
        return reading < 0 ? 0 : reading >= 255 ? 255 : static_cast<std::size_t>(reading);
    }
    std::array<std::uint64_t, 256> cells_{};
    std::uint64_t count_ = 0;
};
// [/class]
