// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <power/home.hpp>

#include <algorithm>
#include <compare>

namespace hf::power {
namespace {
constexpr std::size_t run_bytes_max = 256 << 10;
}

status bring_home(block_file& home, const std::vector<logged_line>& lines) {
    if (lines.empty()) return {};
    struct key {
        std::uint64_t number, index;
        auto operator<=>(const key&) const = default;
    };
    std::vector<key> keys;
    keys.reserve(lines.size());
    for (const logged_line& line : lines) keys.push_back({line.number, keys.size()});
    std::ranges::sort(keys);
    std::vector<std::byte> together;
    together.reserve(run_bytes_max);
    std::uint64_t first = 0;
    const auto write = [&]() -> status {
        if (together.empty()) return {};
        status ok = home.write(first * line_bytes, together.data(), together.size());
        together.clear();
        return ok;
    };
    for (std::size_t i = 0; i < keys.size(); ++i) {
        const std::uint64_t number = keys[i].number;
        if (i + 1 < keys.size() && keys[i + 1].number == number) continue; // an older version
        const bool follows = number == first + together.size() / line_bytes;
        if (!follows || together.size() == run_bytes_max)
            if (status ok = write(); !ok.ok()) return ok;
        if (together.empty()) first = number;
        const std::byte* const bytes = lines[keys[i].index].bytes;
        together.insert(together.end(), bytes, bytes + line_bytes);
    }
    if (status ok = write(); !ok.ok()) return ok;
    return home.sync();
}

} // namespace hf::power
