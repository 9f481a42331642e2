// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <power/home.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace hf::power {
namespace {

constexpr std::uint64_t page_bytes = 4096, page_lines = page_bytes / line_bytes;
constexpr std::size_t run_bytes_max = 256 << 10;
/// Bytes of a piece. A sync of the log that comes meanwhile waits for about so much.
constexpr std::uint64_t unsynced_bytes_max = 4 << 20;

constexpr unsigned digit_bits = 11;
constexpr std::size_t digits = std::size_t{1} << digit_bits;

constexpr std::uint64_t page_of(const logged_line& line) noexcept {
    return line.number / page_lines;
}

} // namespace

/// A radix sort from the lowest digit: it keeps the order of equal numbers, and takes a few passes
/// where comparing took most of a checkpoint's time.
void way_home::sort_lines(const std::vector<logged_line>& lines) {
    sorted_.assign(lines.begin(), lines.end());
    scratch_.resize(lines.size());
    std::uint64_t highest = 0;
    for (const logged_line& line : lines) highest = std::max(highest, line.number);
    for (unsigned shift = 0; shift < 64 && highest >> shift != 0; shift += digit_bits) {
        std::array<std::size_t, digits> places{};
        for (const logged_line& line : sorted_) ++places[line.number >> shift & (digits - 1)];
        std::size_t before = 0;
        for (std::size_t& place : places) before += std::exchange(place, before);
        for (const logged_line& line : sorted_)
            scratch_[places[line.number >> shift & (digits - 1)]++] = line;
        sorted_.swap(scratch_);
    }
}

/// Writes sorted lines [first, end), whose pages follow each other.
status way_home::write_run(block_file& home, std::size_t first, std::size_t end) {
    const std::uint64_t first_page = page_of(sorted_[first]);
    const std::uint64_t pages = page_of(sorted_[end - 1]) - first_page + 1;
    run_.resize(run_bytes_max);
    std::size_t distinct = 1;
    for (std::size_t i = first + 1; i < end; ++i)
        distinct += sorted_[i].number != sorted_[i - 1].number ? 1 : 0;
    if (distinct != pages * page_lines)
        if (status ok = home.read(first_page * page_bytes, run_.data(), pages * page_bytes);
            !ok.ok())
            return ok;
    for (std::size_t i = first; i < end; ++i) // of one number the last stays
        std::memcpy(run_.data() + (sorted_[i].number - first_page * page_lines) * line_bytes,
                    sorted_[i].bytes, line_bytes);
    bytes_written_ += pages * page_bytes;
    return home.write(first_page * page_bytes, run_.data(), pages * page_bytes);
}

status way_home::bring(block_file& home, const std::vector<logged_line>& lines,
                       const progress& tell) {
    if (lines.empty()) return {};
    sort_lines(lines);
    std::uint64_t pages = 1;
    for (std::size_t i = 1; i < sorted_.size(); ++i)
        pages += page_of(sorted_[i]) != page_of(sorted_[i - 1]) ? 1 : 0;
    const std::size_t pieces = pages * page_bytes / unsynced_bytes_max + 1;
    if (tell) tell(0, pieces);
    const std::uint64_t before = bytes_written_;
    std::size_t first = 0;
    for (std::size_t piece = 1; piece <= pieces; ++piece) {
        while ((bytes_written_ - before) / page_bytes < pages * piece / pieces) {
            std::size_t end = first + 1;
            const std::uint64_t last_page =
                page_of(sorted_[first]) + run_bytes_max / page_bytes - 1;
            while (end < sorted_.size() && page_of(sorted_[end]) <= last_page &&
                   page_of(sorted_[end]) <= page_of(sorted_[end - 1]) + 1)
                ++end;
            if (status ok = write_run(home, first, end); !ok.ok()) return ok;
            first = end;
        }
        if (status ok = home.sync(); !ok.ok()) return ok;
        if (tell) tell(piece, pieces);
    }
    HF_ASSERT_SLOW(first == sorted_.size());
    return {};
}

status bring_home(block_file& log, block_file& home, const std::vector<logged_line>& lines) {
    if (lines.empty()) return {};
    if (status ok = log.sync(); !ok.ok()) return ok;
    return way_home().bring(home, lines);
}

} // namespace hf::power
