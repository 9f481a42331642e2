// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Keys and values of the benchmarks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace hf::bench {

// A bijection, so keys are unique and their order is scrambled (splitmix64's finaliser).
inline std::uint64_t scrambled(std::uint64_t i) {
    i += 0x9e3779b97f4a7c15ULL;
    i = (i ^ i >> 30) * 0xbf58476d1ce4e5b9ULL;
    i = (i ^ i >> 27) * 0x94d049bb133111ebULL;
    return i ^ i >> 31;
}

// Values differ from key to key and cost nothing to make: windows of one block of noise.
class noise {
public:
    explicit noise(std::size_t value_bytes) : words_(value_bytes / 8 + windows) {
        std::mt19937_64 random(1);
        for (std::uint64_t& word : words_) word = random();
    }
    const void* value_of(std::uint64_t key) const { return &words_[key % windows]; }

private:
    static constexpr std::size_t windows = 256;
    std::vector<std::uint64_t> words_;
};

} // namespace hf::bench
