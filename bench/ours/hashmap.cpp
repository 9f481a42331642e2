// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "holdfast_map.hpp"
#include <structures/hash_map.hpp>

namespace hf::bench {
inline namespace HF_STRUCTURES_ENGINE {
namespace {

template <std::size_t ValueBytes> std::unique_ptr<map_under_test> make(const map_options& given) {
    using value = value_of<ValueBytes>;
    using map = structures::hash_map<std::uint64_t, value>;
    return std::make_unique<holdfast_map<map, std::uint64_t, value>>(given);
}

} // namespace

std::unique_ptr<map_under_test> make_hashmap(const map_options& given) {
    switch (given.value_bytes) {
    case 64: return make<64>(given);
    case 256: return make<256>(given);
    case 1024: return make<1024>(given);
    default: give_up("--value-bytes is 64, 256 or 1024");
    }
}

} // namespace HF_STRUCTURES_ENGINE
} // namespace hf::bench
