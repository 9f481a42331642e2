// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "holdfast_map.hpp"
#include <structures/rb_tree.hpp>

namespace hf::bench {
inline namespace HF_STRUCTURES_ENGINE {

std::unique_ptr<map_under_test> make_rbtree(const map_options& given) {
    using key = std::uint64_t;
    using value = value_of<256>;
    return std::make_unique<holdfast_map<structures::rb_tree<key, value>, key, value>>(given);
}

} // namespace HF_STRUCTURES_ENGINE
} // namespace hf::bench
