// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The peers by name. One file per peer says how it is used and what survives.
#pragma once

#include "../map_under_test.hpp"

#include <memory>

namespace hf::bench {

using make_peer = std::unique_ptr<map_under_test>(const map_options& options);
// libpmemobj: transactions with the value inside the entry, in a second object; reserve and
// publish.
make_peer make_map_pmdk, make_map_pmdk_outside, make_map_pmdk_actions;
// make_map_pmdk by structure
make_peer make_pmdk_hashmap, make_pmdk_bptree, make_pmdk_skiplist, make_pmdk_rbtree, make_pmdk_avl;
make_peer make_map_lmdb, make_map_lmdb_writemap_nosync;
make_peer make_map_rocksdb, make_map_rocksdb_nosync;
make_peer make_map_sqlite, make_map_sqlite_normal;
make_peer make_map_bdb, make_map_bdb_nosync, make_map_bdb_hash, make_map_bdb_hash_nosync;
make_peer make_map_floor_1f, make_map_floor_2f, make_map_floor_append;
make_peer make_map_volatile;
make_peer make_volatile_hashmap, make_volatile_ordered_map; // make_map_volatile by structure

} // namespace hf::bench
