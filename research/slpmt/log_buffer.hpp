// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The log buffer: records of a word are joined to records of two, four and eight, each size in a
// tier of its own. A tier that is full, and has nothing to join, is drained. Source: SLPMT §III-B2,
// Fig. 6.
//
// (1) A record lies at a multiple of its size: it belongs to one line.
// (2) A tier holds at most eight records, and no two that join to an aligned one of twice the size,
//     except in the last tier.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace hf::slpmt {

inline constexpr unsigned tiers = 4, tier_records = 8, line_words = 8;

struct record {
    std::uint64_t word; // number of the first word
    unsigned tier;      // it has 1 << tier words
    std::array<std::uint64_t, line_words> values;
    std::uint64_t order = 0; // of its youngest word among all records: for experiments only

    unsigned words() const { return 1U << tier; }
    bool covers(std::uint64_t other) const { return other - word < words(); }
    std::uint64_t line() const { return word / line_words; }
};
/// Bytes of a record in the log: an address and the words. 16, 24, 40, 72.
constexpr std::uint64_t record_bytes(unsigned tier) { return 8 + (8U << tier); }
/// Lines that a full tier takes in the log: 2, 3, 5, 9.
constexpr std::uint64_t tier_lines(unsigned tier) { return tier_records * record_bytes(tier) / 64; }

class log_buffer {
public:
    /// Takes a record; full tiers on its way go to drain(tier, records), lowest tier first.
    template <class Drain> void add(record one, Drain&& drain) {
        for (;; ++one.tier) {
            auto& tier = tier_[one.tier];
            if (one.tier + 1 < tiers)
                if (const auto buddy = find(one.tier, one.word ^ one.words());
                    buddy != tier.end()) {
                    one = joined(*buddy, one);
                    tier.erase(buddy);
                    continue;
                }
            if (tier.size() == tier_records) {
                drain(one.tier, tier);
                tier.clear();
            }
            tier.push_back(one);
            return;
        }
    }

    /// The same without joining: records of one size, in the order in which they come (EDE). A
    /// line's worth of them is drained.
    template <class Drain> void append(const record& one, Drain&& drain) {
        auto& tier = tier_[one.tier];
        tier.push_back(one);
        if (tier.size() * record_bytes(one.tier) < 64) return;
        drain(one.tier, tier);
        tier.clear();
    }

    /// The youngest buffered record that covers a word, or null.
    record* covering(std::uint64_t word);
    /// Takes out the records that are chosen, in the order of their words' ages.
    template <class Choose> std::vector<record> take(Choose&& choose) {
        std::vector<record> taken;
        for (auto& tier : tier_)
            std::erase_if(tier, [&](const record& one) {
                if (!choose(one)) return false;
                taken.push_back(one);
                return true;
            });
        return taken;
    }
    std::vector<record> all() const {
        std::vector<record> held;
        for (const auto& tier : tier_) held.insert(held.end(), tier.begin(), tier.end());
        return held;
    }
    bool empty() const {
        for (const auto& tier : tier_)
            if (!tier.empty()) return false;
        return true;
    }
    const std::vector<record>& tier(unsigned number) const { return tier_[number]; }

private:
    using place = std::vector<record>::iterator;
    place find(unsigned tier, std::uint64_t word) {
        auto& in = tier_[tier];
        auto at = in.begin();
        while (at != in.end() && at->word != word) ++at;
        return at;
    }
    /// Two neighbours as one; its place in a tier is still the smaller one's.
    static record joined(const record& a, const record& b);

    std::array<std::vector<record>, tiers> tier_;
};

} // namespace hf::slpmt
