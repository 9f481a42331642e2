// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "holdfast_map.hpp"
#include <structures/bptree.hpp>
#include <structures/bytes_key.hpp>

namespace hf::bench {
inline namespace HF_STRUCTURES_ENGINE {

std::unique_ptr<map_under_test> make_bptree(const map_options& given) {
    using key = structures::bytes_key<32>;
    using value = value_of<256>;
    return std::make_unique<holdfast_map<structures::bptree<key, value>, key, value>>(given);
}

} // namespace HF_STRUCTURES_ENGINE
} // namespace hf::bench
