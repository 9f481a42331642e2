// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Steps on trees, and a value that has a block of its own.
#pragma once

#include "ordered_map_program.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace hf::structures {
inline namespace HF_STRUCTURES_ENGINE {

using steps = std::vector<map_step>;

inline steps inserted(std::initializer_list<std::uint64_t> keys) {
    steps all;
    for (const std::uint64_t key : keys) all.push_back({key, 100 + key});
    return all;
}
inline steps erasing(std::initializer_list<std::uint64_t> keys) {
    steps all;
    for (const std::uint64_t key : keys) all.push_back({key, erased});
    return all;
}

/// A number in each of several words, across a cache line's end; words that differ are torn.
struct wide {
    std::array<std::uint64_t, 10> words;

    wide(std::uint64_t number) noexcept { words.fill(number); }
    operator std::uint64_t() const noexcept {
        const bool whole = std::ranges::count(words, words[0]) == std::ssize(words);
        return whole ? words[0] : ~std::uint64_t{0};
    }
};

} // namespace HF_STRUCTURES_ENGINE
} // namespace hf::structures
