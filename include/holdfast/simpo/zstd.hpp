// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Zstandard for the files of swapped-out objects. A program that includes this links libzstd;
// Holdfast itself does not.
//
//     static const hf::simpo::zstd packing(3);
//     auto s = hf::simpo::swap_to(pool, "/ssd/objects", {.packing = &packing});
#pragma once

#include <holdfast/simpo/swap.hpp>

#include <zstd.h>

namespace hf::simpo {

class zstd final : public compression {
public:
    /// Reads what any level wrote.
    explicit zstd(int level = ZSTD_CLEVEL_DEFAULT) noexcept : level_(level) {}

    const char* name() const noexcept override { return "zstd"; }
    std::size_t pack(void* to, std::size_t room, const void* from,
                     std::size_t bytes) const noexcept override {
        const std::size_t packed = ZSTD_compress(to, room, from, bytes, level_);
        return ZSTD_isError(packed) != 0 ? 0 : packed;
    }
    bool unpack(void* to, std::size_t bytes, const void* from,
                std::size_t packed) const noexcept override {
        return ZSTD_decompress(to, bytes, from, packed) == bytes; // an error is a larger number
    }

private:
    int level_;
};

} // namespace hf::simpo
