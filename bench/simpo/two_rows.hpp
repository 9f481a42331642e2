// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The object of SIMPO's microbenchmarks (§4.1): two rows of numbers, 500 in all.
#pragma once

#include <holdfast/simpo.hpp>

#include <array>
#include <cstdint>

namespace hf::bench {

template <std::uint32_t Cells> class rows_of {
public:
    static constexpr simpo::class_name simpo_class{"rows_of", Cells};
    static constexpr std::uint32_t row_count = 2, row_cells = Cells;

    void all_inc(std::int32_t by) noexcept {
        for (std::uint32_t row = 0; row < row_count; ++row) row_inc(by, row);
    }
    void row_inc(std::int32_t by, std::uint32_t row) noexcept {
        for (std::int32_t& cell : cells_[row % row_count]) cell += by;
    }
    std::int64_t sum() const {
        std::int64_t all = 0;
        for (const auto& row : cells_)
            for (const std::int32_t cell : row) all += cell;
        return all;
    }

private:
    std::array<std::array<std::int32_t, row_cells>, row_count> cells_{};
};
using two_rows = rows_of<250>;
/// Rows whose calls take 2 us, as the paper's do by its figure 16.
using long_rows = rows_of<12'500>;

} // namespace hf::bench
