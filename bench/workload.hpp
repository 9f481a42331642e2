// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Keys and values of the benchmarks.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
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

/// A key as bytes that memcmp orders like the number: 8 bytes, or 32 in the shape of YCSB's keys,
/// "user", zeros, the number.
template <std::size_t Bytes> std::array<unsigned char, Bytes> key_bytes_of(std::uint64_t key) {
    static_assert(Bytes == 8 || Bytes == 32);
    static_assert(std::endian::native == std::endian::little);
    std::array<unsigned char, Bytes> bytes{};
    if constexpr (Bytes == 32) {
        bytes.fill('0');
        std::memcpy(bytes.data(), "user", 4);
    }
    const std::uint64_t big = __builtin_bswap64(key);
    std::memcpy(bytes.data() + Bytes - sizeof big, &big, sizeof big);
    return bytes;
}

/// The same where the length is known only when the program runs.
struct encoded_key {
    std::array<unsigned char, 32> bytes;
    std::size_t size;
    encoded_key(std::uint64_t key, std::size_t wanted) : size(wanted) {
        if (wanted == 32) {
            bytes = key_bytes_of<32>(key);
            return;
        }
        const auto eight = key_bytes_of<8>(key);
        std::memcpy(bytes.data(), eight.data(), eight.size());
    }
};

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
