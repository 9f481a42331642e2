// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "memory_limit.hpp"

#include <algorithm>

namespace hf::kv {
namespace {

constexpr std::uint64_t headroom = 8;            // addresses, which cost nothing
constexpr std::uint64_t most_bytes = 1ULL << 40; // of any pool

} // namespace

result<pool> open_to_grow(const std::string& path, const open_options& how) {
    open_options wide = how;
    wide.max_bytes = std::min(how.max_bytes * headroom, std::max(most_bytes, how.max_bytes));
    auto opened = pool::open(path, wide);
    // For a pool at an address without so much room, or that was left open at another address.
    if (!opened && opened.error().code() == errc::bad_argument) opened = pool::open(path, how);
    if (!opened) return opened;
    const std::uint64_t asked = std::min(how.max_bytes, opened->max_bytes());
    if (status s = limit_memory(*opened, asked); !s.ok()) return s;
    return opened;
}

status limit_memory(pool& of, std::uint64_t bytes) {
    return of.limit_growth(std::max(bytes, of.size_bytes()));
}

} // namespace hf::kv
