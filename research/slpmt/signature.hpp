// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A transaction's working set, as 2048 bits: it may say yes for a line that it does not contain,
// never no for one that it contains. All signatures share their hash functions. Source: SLPMT
// §III-C3, Table III.
#pragma once

#include <bitset>
#include <cstdint>

namespace hf::slpmt {

class signature {
public:
    static constexpr unsigned bits = 2048, hashes = 4;

    void add(std::uint64_t line) {
        std::uint64_t mixed = mix(line);
        for (unsigned i = 0; i < hashes; ++i, mixed >>= 16) set_[mixed % bits] = true;
    }
    bool may_hold(std::uint64_t line) const {
        std::uint64_t mixed = mix(line);
        for (unsigned i = 0; i < hashes; ++i, mixed >>= 16)
            if (!set_[mixed % bits]) return false;
        return true;
    }
    void clear() { set_.reset(); }

private:
    static std::uint64_t mix(std::uint64_t line) {
        line = (line ^ line >> 31) * 0x7fb5d329728ea185;
        line = (line ^ line >> 27) * 0x81dadef4bc2dd44d;
        return line ^ line >> 33;
    }
    std::bitset<bits> set_;
};

} // namespace hf::slpmt
