// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which item an operation is for: the distributions of YCSB (Cooper et al., SoCC 2010), whose
// generators ZipfianGenerator, ScrambledZipfianGenerator and SkewedLatestGenerator these follow.
// The formula is Gray et al., "Quickly generating billion-record synthetic databases", SIGMOD 1994.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>

namespace hf::bench {

using generator = std::mt19937_64;

inline double unit(generator& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

/// Item 0 is the most popular, item i has probability proportional to 1 / (i + 1)^theta.
class zipfian {
public:
    static constexpr double theta = 0.99;

    explicit zipfian(std::uint64_t items) : zipfian(0, 0) { grow_to(items); }
    /// For item numbers whose zeta is known already.
    zipfian(std::uint64_t items, double zeta) : items_(items), zeta_(zeta) {
        if (items != 0) prepare();
    }

    /// Cost: O(items that are new).
    void grow_to(std::uint64_t items) {
        while (items_ < items) zeta_ += 1 / std::pow(static_cast<double>(++items_), theta);
        prepare();
    }
    std::uint64_t operator()(generator& random) const {
        const double u = unit(random);
        const double scaled = u * zeta_;
        if (scaled < 1) return 0;
        if (scaled < 1 + std::pow(0.5, theta)) return 1;
        const double n = static_cast<double>(items_);
        const auto item = static_cast<std::uint64_t>(n * std::pow(eta_ * u - eta_ + 1, alpha));
        return item < items_ ? item : items_ - 1;
    }

private:
    static constexpr double alpha = 1 / (1 - theta);

    void prepare() {
        const double zeta_of_two = 1 + std::pow(0.5, theta);
        const double n = static_cast<double>(items_);
        eta_ = (1 - std::pow(2 / n, 1 - theta)) / (1 - zeta_of_two / zeta_);
    }

    std::uint64_t items_;
    double zeta_;
    double eta_ = 0;
};

/// Popular items are spread over [0, items): YCSB draws from 10^10 items, whose zeta it has as a
/// constant, and hashes the result with 64-bit FNV-1a.
class scrambled_zipfian {
public:
    explicit scrambled_zipfian(std::uint64_t items) : items_(items) {}
    std::uint64_t operator()(generator& random) const { return fnv(many_(random)) % items_; }

private:
    static std::uint64_t fnv(std::uint64_t value) {
        std::uint64_t hash = 0xcbf29ce484222325ULL;
        for (int octet = 0; octet < 8; ++octet, value >>= 8)
            hash = (hash ^ (value & 0xff)) * 1099511628211ULL;
        // YCSB takes Java's absolute value.
        return hash >> 63 != 0 ? 0 - hash : hash;
    }

    std::uint64_t items_;
    zipfian many_{10'000'000'000ULL, 26.46902820178302};
};

/// The newest item is the most popular.
class skewed_latest {
public:
    explicit skewed_latest(std::uint64_t items) : items_(items), back_(items) {}
    void grow() { back_.grow_to(++items_); }
    std::uint64_t operator()(generator& random) const { return items_ - 1 - back_(random); }

private:
    std::uint64_t items_;
    zipfian back_;
};

} // namespace hf::bench
