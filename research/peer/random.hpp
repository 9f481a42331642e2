// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The applications' numbers: the same from a seed on every machine, unlike the standard library's
// distributions.
#pragma once

#include <cstdint>

namespace hf::apps {

/// The upper half of the product: a * b / 2^64.
inline std::uint64_t high_product(std::uint64_t a, std::uint64_t b) noexcept {
    __extension__ using wide = unsigned __int128;
    return static_cast<std::uint64_t>(static_cast<wide>(a) * b >> 64);
}

/// splitmix64.
class random_words {
public:
    explicit random_words(std::uint64_t seed) noexcept : state_(seed) {}
    std::uint64_t word() noexcept {
        std::uint64_t mixed = state_ += 0x9e3779b97f4a7c15ULL;
        mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9ULL;
        mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebULL;
        return mixed ^ mixed >> 31;
    }
    /// In [0, limit).
    std::uint32_t below(std::uint32_t limit) noexcept {
        return static_cast<std::uint32_t>(high_product(word(), limit));
    }

private:
    std::uint64_t state_;
};

} // namespace hf::apps
