// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <verify/image.hpp>

#include <algorithm>
#include <array>
#include <cstring>

namespace hf::verify {
namespace {

// 2^12 checksums of a page: about a millisecond.
constexpr std::size_t merge_words_max = 12;

} // namespace

header_copies read_headers(std::span<const std::byte> file) noexcept {
    const auto from = [&](std::uint64_t offset) {
        return file.subspan(std::min<std::size_t>(offset, file.size()));
    };
    return judge_copies(from(header_a_offset), from(header_b_offset));
}

bool merge_headers(const header_copies& copies, pool_header& out) noexcept {
    using words = std::array<std::uint64_t, sizeof(pool_header) / word_bytes>;
    words a, b;
    std::memcpy(a.data(), &copies.first, sizeof a);
    std::memcpy(b.data(), &copies.second, sizeof b);
    std::array<std::size_t, merge_words_max> differing{};
    std::size_t count = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (a[i] == b[i]) continue;
        if (count == merge_words_max) return false;
        differing[count++] = i;
    }
    for (std::uint64_t choice = 0; choice < std::uint64_t{1} << count; ++choice) {
        words mixed = a;
        for (std::size_t d = 0; d < count; ++d)
            if ((choice >> d & 1) != 0) mixed[differing[d]] = b[differing[d]];
        std::memcpy(&out, mixed.data(), sizeof out);
        if (out.magic == header_magic && header_checksum(out) == out.checksum) return true;
    }
    return false;
}

} // namespace hf::verify
