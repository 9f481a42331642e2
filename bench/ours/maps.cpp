// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "maps.hpp"

#include "holdfast_map.hpp"

namespace hf::bench {

std::unique_ptr<map_under_test> HF_STRUCTURES_JOIN(make_map_,
                                                   HF_BENCH_BUILD)(const map_options& given) {
    if (given.which != structure::hashmap && given.value_bytes != 256)
        give_up("--value-bytes is 256 except in the hash map");
    switch (given.which) {
    case structure::hashmap: return make_hashmap(given);
    case structure::bptree: return make_bptree(given);
    case structure::skiplist: return make_skiplist(given);
    case structure::rbtree: return make_rbtree(given);
    case structure::avl: return make_avl(given);
    case structure::map:
    case structure::set: break; // engine mod's
    }
    return nullptr;
}

} // namespace hf::bench
